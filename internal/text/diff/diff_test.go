package diff_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/text/diff"
)

func TestLinesThatDiffer(t *testing.T) {
	t.Parallel()
	const many = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"
	for _, c := range []struct {
		name, live, will string
		want             []string
	}{
		{"one line", "a\nb\nc\n", "a\nB\nc", []string{"@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"}},
		{"a new file", "", "a\nb\n", []string{"@@ -0,0 +1,2 @@", "+a", "+b"}},
		{"a file that goes", "a\n", "", []string{"@@ -1,1 +0,0 @@", "-a"}},
		{"far apart", many, strings.NewReplacer("2\n3", "2\nx\n3", "11\n", "").Replace(many), []string{
			"@@ -1,4 +1,5 @@", " 1", " 2", "+x", " 3", " 4", "@@ -9,4 +10,3 @@", " 9", " 10", "-11", " 12",
		}},
		{"near each other", "1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", []string{
			"@@ -1,5 +1,5 @@", "-1", "+x", " 2", " 3", " 4", "-5", "+y",
		}},
		{"another secret", "user = \"a\"\npassword = \"old-one\"\n", "user = \"b\"\npassword = \"new-one\"\n", []string{
			"@@ -1,2 +1,2 @@", "-user = \"a\"", "-password = \"<secret>\"", "+user = \"b\"",
			"+password = \"<secret, changed>\"",
		}},
		{"a secret beside it", "a: 1\npassword: hunter2\n", "a: 2\npassword: hunter2\n", []string{
			"@@ -1,2 +1,2 @@", "-a: 1", "+a: 2", " password: <secret>",
		}},
		{"a proxy's password", "HTTP_PROXY=http://me:one@proxy:3128", "HTTP_PROXY=http://me:two@proxy:3128", []string{
			"@@ -1,1 +1,1 @@", "-HTTP_PROXY=http://<secret>@proxy:3128",
			"+HTTP_PROXY=http://<secret, changed>@proxy:3128",
		}},
		{"a registry's credentials", "auth = \"YTpi\"", "auth = \"YTpj\"", []string{
			"@@ -1,1 +1,1 @@", "-auth = <secret>", "+auth = <secret, changed>",
		}},
		{"what moves a cursor", "a", "a\x1b[2J\u202e\tb", []string{"@@ -1,1 +1,1 @@", "-a", "+a[2J    b"}},
	} {
		got, differs := diff.Of("file", c.live, c.will)
		if d := cmp.Diff(diff.Change{Of: "file", Lines: c.want}, got); d != "" || !differs {
			t.Errorf("%s: %v\n%s", c.name, differs, d)
		}
	}
	if got, differs := diff.Of("file", "a\n\n", "a"); differs {
		t.Errorf("empty lines at the end: %+v", got)
	}
}

func TestAPrivateKeyIsNotShown(t *testing.T) {
	t.Parallel()
	key := func(body string) string {
		return "a\n-----BEGIN PRIVATE KEY-----\n" + body + "\n" + body + "\n-----END PRIVATE KEY-----\nb\n"
	}
	got, _ := diff.Of("file", key("CanaryOne"), key("CanaryTwo")+"c\n")
	if len(got.Lines) > 0 || got.Unknown != "it contains a private key and is not shown" {
		t.Errorf("%+v", got)
	}
}

func TestADiffHasItsBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	got, _ := diff.Of("file", "", strings.Repeat(long[:2000]+"\n", 400))
	if len(got.Lines) != 201 || got.Lines[200] != "@@ and 201 more lines @@" || len(got.Lines[1]) > 310 {
		t.Errorf("%d lines, the last is %q", len(got.Lines), got.Lines[len(got.Lines)-1])
	}
	if got, differs := diff.Of("file", "", strings.Repeat(long+"\n", 200)); got.Unknown == "" || !differs {
		t.Errorf("2 MB are compared: %d lines", len(got.Lines))
	}
	var sets []diff.Set
	for n := range 40 {
		c, _ := diff.Of("file", "", strings.Repeat(fmt.Sprint(n, "\n"), 150))
		sets = append(sets, diff.Set{Hosts: []string{fmt.Sprint("w-", n)}, Changes: []diff.Change{c}})
	}
	kept := diff.Within(4096, sets)
	size := 0
	for _, s := range kept {
		for _, c := range s.Changes {
			size += len(fmt.Sprint(c))
		}
	}
	last := kept[len(kept)-1].Changes[0]
	if size > 6000 || kept[0].Changes[0].Unknown != "" || last.Unknown == "" {
		t.Errorf("%d bytes; the last is %+v", size, last)
	}
}

func TestHostsWithTheSameChangesStandTogether(t *testing.T) {
	t.Parallel()
	one, _ := diff.Of("file", "a", "b")
	two := diff.Summary("kubelet", "nobody\nknows")
	got := diff.Together([]string{"cp-1", "w-1", "w-2", "w-3"}, map[string][]diff.Change{
		"cp-1": {one}, "w-1": {one, two}, "w-3": {one, two},
	})
	want := []diff.Set{
		{Hosts: []string{"cp-1"}, Changes: []diff.Change{one}},
		{Hosts: []string{"w-1", "w-3"}, Changes: []diff.Change{one, {Of: "kubelet", Unknown: "nobody knows"}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Applying a diff turns one text into the other.
func TestADiffOfRandomTextsMakesOneOfTheOther(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- a test
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			fmt.Fprintf(&b, "line %d\n", random.IntN(4))
		}
		return b.String() + "end\n"
	}
	for range 3000 {
		live, will := text(), text()
		c, _ := diff.Of("file", live, will)
		if got := patched(strings.Split(live, "\n"), c.Lines); got != will {
			t.Fatalf("%q and\n%s\ngive %q, want %q", live, strings.Join(c.Lines, "\n"), got, will)
		}
	}
}

// patched applies a unified diff.
func patched(live, lines []string) string {
	var out []string
	at := 0
	for _, line := range lines {
		switch line[0] {
		case '@':
			var from, count int
			_, _ = fmt.Sscanf(line, "@@ -%d,%d", &from, &count)
			if count > 0 {
				from--
			}
			out = append(out, live[at:from]...)
			at = from
		case '-':
			at++
		case ' ':
			out = append(out, live[at])
			at++
		case '+':
			out = append(out, line[1:])
		}
	}
	return strings.Join(append(out, live[at:]...), "\n")
}
