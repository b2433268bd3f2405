package release

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	kubeletName = "dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet"
	pauseName   = "registry.k8s.io/pause:3.10.2 linux/amd64"
)

// digits returns a sha256 of one repeated digit.
func digits(digit string) string { return strings.Repeat(digit, 64) }

func TestListsOfDigestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	a, b := digits("a"), digits("b")
	line := a + "  " + kubeletName + "\n"
	kubelet := map[string]string{kubeletName: a}
	both := map[string]string{kubeletName: a, pauseName: b}
	for name, c := range map[string]struct {
		text string
		want map[string]string // digests by name; nil means an error
		says string
	}{
		"nothing":              {"", map[string]string{}, ""},
		"remarks":              {"# for us\n\n#\n", map[string]string{}, ""},
		"a file and an image":  {line + b + "  " + pauseName, both, ""},
		"from find":            {a + "  ./" + kubeletName + "\n", kubelet, ""},
		"binary mode":          {a + " *" + kubeletName + "\n", kubelet, ""},
		"upper case":           {strings.ToUpper(a) + "  " + kubeletName + "\n", kubelet, ""},
		"the same line twice":  {line + line, kubelet, ""},
		"two digests":          {line + b + "  " + kubeletName, nil, "us, line 2: us has sha256 " + b},
		"a wrong line":         {"# us\n" + line + "kubelet is fine\n", nil, `us, line 3: "kubelet is fine" is no`},
		"too short":            {a[1:] + "  " + kubeletName + "\n", nil, "us, line 1: "},
		"too long":             {a + "a  " + kubeletName + "\n", nil, "is not a line as printed by sha256sum"},
		"one space":            {a + " " + kubeletName + "\n", nil, "is not a line as printed by sha256sum"},
		"a digest alone":       {a + "\n", nil, "is not a line as printed by sha256sum"},
		"no digits":            {digits("x") + "  " + kubeletName + "\n", nil, "is not a sha256"},
		"a name without host":  {a + "  kubelet\n", nil, `line 1: "kubelet" is not an official location`},
		"a relative path":      {a + "  ../dl.k8s.io/kubelet\n", nil, "is not an official location"},
		"an absolute path":     {a + "  /srv/dl.k8s.io/kubelet\n", nil, "is not an official location"},
		"a URL":                {a + "  https://dl.k8s.io/kubelet\n", nil, "is not an official location"},
		"nothing for a name":   {a + "  \n", nil, "is not an official location"},
		"an image on no host":  {a + "  registry.k8s.io/pause:3.10.2\n", nil, "is not an official location"},
		"carriage returns":     {a + "  " + kubeletName + "\r\n", nil, "is not an official location"},
		"an escape sequence":   {a + "  dl.k8s.io/\x1b[2Jkubelet\n", nil, `\x1b`},
		"longer than any list": {strings.Repeat("#", MaxDigests+1), nil, "us is larger than 4 MiB"},
		"something quite else": {"\x7fELF\x02\x01\x01", nil, "is not a line as printed by sha256sum"},
		"an indented remark":   {"  # us\n", nil, "is not a line as printed by sha256sum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseDigests(c.text, "us")
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("got %v, want %q", err, c.says)
				}
				return
			}
			have := map[string]string{}
			for name, k := range got.known {
				have[name] = k.sum
			}
			if diff := cmp.Diff(c.want, have); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// listing returns a list of digests.
func listing(t *testing.T, by string, lines ...string) Digests {
	t.Helper()
	d, err := ParseDigests(strings.Join(lines, "\n"), by)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listOf returns the digests as a list.
func listOf(d Digests) string {
	var text strings.Builder
	for name, k := range d.known {
		text.WriteString(k.sum + "  " + name + "\n")
	}
	return text.String()
}

func TestADigestIsKnownOrNotOrAnother(t *testing.T) {
	t.Parallel()
	d := listing(t, "our list", digits("a")+"  "+kubeletName)
	claim := Claim{What: "kubelet 1.36.3", Name: kubeletName, SHA256: digits("a"), Source: "m.example.com"}
	if known, err := d.Check(claim); !known || err != nil {
		t.Errorf("the same: %t, %v", known, err)
	}
	other := claim
	other.Name = pauseName
	if known, err := d.Check(other); known || err != nil {
		t.Errorf("not known: %t, %v", known, err)
	}
	if known, err := (Digests{}).Check(claim); known || err != nil {
		t.Errorf("nothing is known: %t, %v", known, err)
	}
	claim.SHA256 = digits("b")
	_, err := d.Check(claim)
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatalf("another: %v", err)
	}
	for _, says := range []string{kubeletName, "m.example.com", digits("a"), digits("b"), "our list"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not name %s", err, says)
		}
	}
}

func TestAListIsAFileWithDigests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, says string }{
		"good":  {"# ours\n" + digits("a") + "  example.com/never/published\n", ""},
		"empty": {"", "contains no digests"},
		"wrong": {"# ours\nkubelet\n", "wrong, line 2: "},
		"long":  {strings.Repeat("# ours\n", MaxDigests/7+1), "larger than 4 MiB"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := ReadDigests(path)
		if c.says == "" {
			if _, ok := known.known["example.com/never/published"]; err != nil || !ok {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
	if _, err := ReadDigests(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzDigests: a list is refused, or every digest read from it can be looked up.
func FuzzDigests(f *testing.F) {
	f.Add(digits("a") + "  " + kubeletName + "\n" + digits("B") + " *./" + pauseName + "\n# ours\n")
	f.Add("kubelet\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDigests(text, "a list")
		if err != nil {
			return
		}
		for name, k := range d.known {
			if known, err := d.Check(Claim{Name: name, SHA256: k.sum}); !known || err != nil {
				t.Errorf("%q of %q: %t, %v", name, text, known, err)
			}
		}
	})
}
