package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"kubeone/internal/componentconfig/settings"
	"kubeone/internal/host"
	"kubeone/internal/testutil/short"
)

func TestSettingsAreReadFromFiles(t *testing.T) {
	t.Parallel()
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(settingsScript),
		"settings.sh"); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := write("config.toml", "a = 1\n\n\tb = 2")
	one, two := write("certs.d/a/hosts.toml", "one\n"), write("certs.d/b c/hosts.toml", "two\n")
	write("certs.d/a/other", "no")
	long := write("long", strings.Repeat("x\n", 40_000))
	write("ours/kept/123", "as it was\n")
	write("ours/files", "123  "+whole+"\n456  "+long+"\n")
	script := strings.Replace(settingsScript, "ours=/etc/kubeone", "ours="+filepath.Join(dir, "ours"), 1)
	asked := []string{whole, dir + "/certs.d/*/hosts.toml", long, dir + "/none", dir}
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		path := short.Tool(t, shell[0])
		out := output(t, exec.CommandContext(t.Context(), path, // #nosec G204 -- a shell that was named here
			append(shell[1:], "-c", script, "settings", strings.Join(asked, " "), whole)...))
		got := readSettings(string(out), asked)
		read := got.Texts[long]
		delete(got.Texts, long)
		if len(read) != 64<<10 || !got.Cut[long] {
			t.Errorf("%s: %d bytes of a long file", shell[0], len(read))
		}
		want := settings.Live{
			Texts: map[string]string{whole: "a = 1\n\n\tb = 2\n", one: "one\n", two: "two\n"},
			Kept:  map[string]string{whole: "as it was\n"}, Cut: map[string]bool{long: true},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", shell[0], d)
		}
	}
}

// saying is a host with the same answer to every command.
type saying struct {
	text string
	err  error
}

func (s saying) Run(_ context.Context, c host.Cmd) (host.Result, error) {
	if _, err := c.Stdout.Write([]byte(s.text)); err != nil {
		return host.Result{}, err
	}
	return host.Result{}, s.err
}

func (saying) Dial(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no") }

func TestAHostSaysOfItsSettingsWhatWasAsked(t *testing.T) {
	t.Parallel()
	const head, end = "Welcome!\n=no\nkubeone-settings\t1\n", "end\t1\n"
	asked, kept := []string{"/etc/a", "/etc/d/*/x"}, []string{"/etc/k"}
	for name, c := range map[string]struct {
		host saying
		want settings.Live
	}{
		"what moves a cursor": {saying{text: head + "text\t/etc/a\n=a\x1b[2Jb\r\n" + end}, texts("/etc/a", "a[2Jb\n")},
		"unrequested files": {
			saying{text: head + "text\t/etc/shadow\n=root\nkept\t/etc/d/../x\n=x\ncut\t/etc/y\n" +
				"text\t/etc/d/\x1bz/x\n=z\ntext\t/etc/d/a/b/x\n=x\n" + end}, settings.Live{},
		},
		"a pattern": {saying{text: head + "text\t/etc/d/y z/x\n=1\n" + end}, texts("/etc/d/y z/x", "1\n")},
		"a file twice": {
			saying{text: head + "text\t/etc/a\n=1\ntext\t/etc/a\n=2\n" + end}, texts("/etc/a", "2\n"),
		},
		"after its end":  {saying{text: head + end + "text\t/etc/a\n=1\n"}, settings.Live{}},
		"an empty file":  {saying{text: head + "text\t/etc/a\n\n" + end}, texts("/etc/a", "")},
		"no answer":      {saying{text: "Welcome!\n"}, settings.Live{Failed: "its output has an unknown format"}},
		"half an answer": {saying{text: head}, settings.Live{Failed: "its output is truncated"}},
		"too much": {
			saying{text: strings.Repeat("x", maxTextBytes+1)}, settings.Live{Failed: host.ErrOutput.Error()},
		},
		"a lost connection": {saying{err: errors.New("lost\x1b\nit")}, settings.Live{Failed: "lost it"}},
		"a long line": {
			saying{text: head + "text\t/etc/a\n=" + strings.Repeat("x", 10_000) + "\n" + end},
			texts("/etc/a", strings.Repeat("x", maxSettingBytes)+"\n"),
		},
	} {
		got := Settings(t.Context(), c.host, asked, kept)
		if c.want.Failed == "" && c.want.Texts == nil {
			c.want.Texts = map[string]string{}
		}
		if c.want.Failed == "" {
			c.want.Kept, c.want.Cut = map[string]string{}, map[string]bool{}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

func TestAHostHasNoMoreFilesThanItMay(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("kubeone-settings\t1\n")
	for n := range 1000 {
		fmt.Fprintf(&b, "text\t/etc/d/%d/x\n=1\n", n)
	}
	b.WriteString("end\t1\n")
	got := Settings(t.Context(), saying{text: b.String()}, []string{"/etc/d/*/x"}, nil)
	if got.Failed != "" || len(got.Texts) != maxValues {
		t.Errorf("%d files, %s", len(got.Texts), got.Failed)
	}
}

func texts(path, text string) settings.Live {
	return settings.Live{Texts: map[string]string{path: text}}
}
