package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/golden"
)

// The operator's clock while the answers in testdata were under way; the hosts' clocks stood at 1800000000.3.
var (
	sent     = time.Unix(1_800_000_000, 0)
	received = sent.Add(200 * time.Millisecond)
)

func TestParseGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"empty", "control-plane", "worker", "half-installed", "foreign", "noisy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := Parse(read(t, name+".txt"), sent, received)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(a.Host, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".json"), string(got)+"\n")
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		out  []byte
		want error
	}{
		"nothing":                {nil, ErrGarbled},
		"garbage":                {read(t, "garbage.txt"), ErrGarbled},
		"half an answer":         {read(t, "truncated.txt"), ErrTruncated},
		"a later format":         {[]byte("kubeone-probe\t2\nend\t1\n"), ErrGarbled},
		"an end before the head": {[]byte("end\t1\nkubeone-probe\t1\n"), ErrGarbled},
		"a shell's greeting":     {[]byte("Welcome to node 1\nkubeone-probe\t1\nend\t1\n"), ErrGarbled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse(test.out, sent, received); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestEveryCutOfAnAnswerIsTruncated(t *testing.T) {
	t.Parallel()
	whole := read(t, "empty.txt")
	for i := len("kubeone-probe\t1"); i < len(whole)-len("\t1\n"); i++ {
		if _, err := Parse(whole[:i], sent, received); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut at %d: error %v, want ErrTruncated", i, err)
		}
	}
}

func TestUnknownIsNotAbsent(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte("kubeone-probe\t1\nend\t1\n"), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(observed.Host{Reach: observed.Reached}, a.Host); diff != "" {
		t.Errorf("a host that says nothing (-want +got):\n%s", diff)
	}
	notRoot := bytes.ReplaceAll(read(t, "empty.txt"), []byte("uid\t0"), []byte("uid\t1000"))
	if a, err = Parse(notRoot, sent, received); err != nil {
		t.Fatal(err)
	}
	for what, fact := range map[string]observed.Tri{
		"kubelet.conf": a.Host.KubeletConf, "admin.conf": a.Host.AdminConf, "PKI": a.Host.PKI,
		"etcd data": a.Host.EtcdData,
	} {
		if fact != observed.Unknown {
			t.Errorf("%s is %q to one who is not root, want unknown", what, fact)
		}
	}
}

func TestTheKubeletsCertificateIsWhereKubeletConfSaysItIs(t *testing.T) {
	t.Parallel()
	const usual = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	for _, test := range []struct {
		name, conf, file, uid string
		want                  observed.Tri
	}{
		{"it is there", "client-certificate: " + usual, "exists", "0", observed.Yes},
		{"it is gone, or empty", "client-certificate: " + usual, "absent", "0", observed.No},
		{"not root", "client-certificate: " + usual, "absent", "1000", observed.Unknown},
		{"not checked", "client-certificate: " + usual, "other", "0", observed.Unknown},
		{"another place", "client-certificate: /etc/ssl/kubelet.pem", "absent", "0", observed.Unknown},
		{"in the file itself", "client-certificate-data: Y2VydA==", "absent", "0", observed.Yes},
		{"no kubelet.conf", "server: https://10.0.0.1:6443", "absent", "0", observed.Unknown},
	} {
		facts := "kubeone-probe\t1\nuid\t" + test.uid + "\n" + test.file + "\t" + usual +
			"\nyaml\t/etc/kubernetes/kubelet.conf:    " + test.conf + "\nend\t1\n"
		a, err := Parse([]byte(facts), sent, received)
		if err != nil {
			t.Fatal(err)
		}
		if a.Host.KubeletCert != test.want {
			t.Errorf("%s: %q, want %q", test.name, a.Host.KubeletCert, test.want)
		}
	}
}

func TestHealthOfAStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]observed.Tri{
		"200": observed.Yes, "500": observed.No, "503": observed.No, "000": observed.No,
		"401": observed.Unknown, "403": observed.Unknown, "404": observed.Unknown, "": observed.Unknown,
		"20": observed.Unknown,
	} {
		if got := isHealthyStatus(status); got != want {
			t.Errorf("status %q is %q, want %q", status, got, want)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Kubernetes v1.36.3":             "1.36.3",
		"Client Version: v1.32.4-custom": "1.32.4-custom",
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3": "1.6.20",
		"containerd containerd.io v2.1.0-rc.1 abcdef":                                 "2.1.0-rc.1",
		"runc version 1.1.5+ds1":                                                      "1.1.5+ds1",
		"":                                                                            "",
		"command not found":                                                           "",
	} {
		if got := versionIn(said); got != want {
			t.Errorf("version in %q is %q, want %q", said, got, want)
		}
	}
	for image, want := range map[string]string{
		"registry.k8s.io/kube-apiserver:v1.36.3":           "1.36.3",
		"registry:5000/a/kube-apiserver:v1.35.0@sha256:ab": "1.35.0",
		"registry:5000/kube-apiserver":                     "",
		"":                                                 "",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("tag of %q is %q, want %q", image, got, want)
		}
	}
}

func TestLockIsLiveByTheHostsOwnClock(t *testing.T) {
	t.Parallel()
	for beat, want := range map[string]bool{
		"1799999999": true, "1799999971": true, "1799999969": false, "1800000029": true, "1800000031": false, "": false,
		"soon": false,
	} {
		out := "kubeone-probe\t1\nclock\t1800000000.0\nexists\t" + lockFile + "\nbeat\t" + beat + "\nend\t1\n"
		// The operator's clock is an hour off, which must not matter.
		a, err := Parse([]byte(out), sent.Add(time.Hour), received.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if a.Host.Lock == nil || a.Host.Lock.Live != want {
			t.Errorf("beat %q: lock %+v, want live %v", beat, a.Host.Lock, want)
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Time{
		"1800000000.5":                  time.Unix(1_800_000_000, 500_000_000),
		"1800000000":                    time.Unix(1_800_000_000, 0),
		"1800000000.%N":                 time.Unix(1_800_000_000, 0), // date without nanoseconds
		"yesterday":                     {},
		"-5":                            {},
		"9999999999999999999999":        {},
		"1800000000.123456789123456789": time.Unix(1_800_000_000, 123_456_789),
	} {
		if got := hostClock(lines{"clock": {said}}); !got.Equal(want) {
			t.Errorf("clock %q is %v, want %v", said, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		a, err := Parse(out, sent, received)
		again, err2 := Parse(out, sent, received)
		switch {
		case (err == nil) != (err2 == nil):
			t.Fatalf("once %v, once %v", err, err2)
		case err != nil && !errors.Is(err, ErrGarbled) && !errors.Is(err, ErrTruncated):
			t.Fatalf("error of no kind: %v", err)
		case err == nil && a.Host.Reach != observed.Reached:
			t.Fatalf("answered, and is %q", a.Host.Reach)
		}
		if diff := cmp.Diff(a.Host, again.Host); diff != "" {
			t.Fatalf("the same answer gives other facts:\n%s", diff)
		}
		text, err := json.Marshal(a.Host)
		if err != nil {
			t.Fatal(err)
		}
		var facts any
		if err := json.Unmarshal(text, &facts); err != nil {
			t.Fatal(err)
		}
		mustBePrinted(t, facts)
		name := a.Host.Hostname
		if name != "" && (filepath.Base(name) != name || strings.ContainsAny(name, " $`'\"*")) {
			t.Fatalf("it is called %q", name)
		}
	})
}

// mustBePrinted fails on a text with terminal control characters.
func mustBePrinted(t *testing.T, facts any) {
	t.Helper()
	switch f := facts.(type) {
	case string:
		if strings.ContainsFunc(f, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
			t.Fatalf("a fact is %q", f)
		}
	case []any:
		for _, one := range f {
			mustBePrinted(t, one)
		}
	case map[string]any:
		for key, one := range f {
			mustBePrinted(t, key)
			mustBePrinted(t, one)
		}
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A host's own clock decides whether a certificate has expired. Etcd's statements about its data are taken word for
// word.
func TestParseSaysWhatHasRunOutAndWhatIsLost(t *testing.T) {
	t.Parallel()
	text := string(read(t, "control-plane.txt"))
	before, err := Parse([]byte(text), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	first := before.Host.Certificates[0].NotAfter
	for _, c := range before.Host.Certificates {
		if c.Expired {
			t.Errorf("%s has expired", c.Name)
		}
		if c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	later := regexp.MustCompile(`(?m)^clock\t.*$`).ReplaceAllString(text, fmt.Sprintf("clock\t%d", first.Unix()+1))
	later = strings.Replace(later, "\nclock\t", "\netcd-lost\tcrc mismatch\nclock\t", 1)
	after, err := Parse([]byte(later), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	if after.Host.EtcdLost != "crc mismatch" || before.Host.EtcdLost != "" {
		t.Errorf("etcd said %q and %q", before.Host.EtcdLost, after.Host.EtcdLost)
	}
	for _, c := range after.Host.Certificates {
		if c.Expired != !c.NotAfter.After(first) {
			t.Errorf("%s, valid until %v: expired %t", c.Name, c.NotAfter, c.Expired)
		}
		if want := max(0, c.NotAfter.Sub(first)-time.Second); c.Left != want {
			t.Errorf("%s, valid until %v: %v left, want %v", c.Name, c.NotAfter, c.Left, want)
		}
		if c.Soon != (!c.Expired && c.NotAfter.Before(first.Add(soon))) {
			t.Errorf("%s, valid until %v: soon %t", c.Name, c.NotAfter, c.Soon)
		}
	}
}

func TestABlockIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	l, err := readLines([]byte("kubeone-probe\t1\nblock\tfile\n/a:x\tend\t1\n\nend\t1\nblock\t\nuid\t0\n" +
		"end\t1\nfile\tlate\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := lines{"file": {"/a:x\tend\t1", "", "end\t1"}, "uid": {"0"}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
	if _, err := readLines([]byte("kubeone-probe\t1\nblock\tfile\n/a:x\nend\t1\n")); !errors.Is(err, ErrTruncated) {
		t.Errorf("a block without an end: %v, want ErrTruncated", err)
	}
}

func TestPartsCountFromTheFirst(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte("kubeone-probe\t1\npart\tunits 100.25 100.50\npart\tfacts 100.00 100.25\npart\tno clock\n"+
		"part\tback 9 8\nend\t1\n"), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	want := []Span{{What: "units", From: 250 * ms, To: 500 * ms}, {What: "facts", To: 250 * ms}}
	if diff := cmp.Diff(want, a.Parts); diff != "" {
		t.Error(diff)
	}
}

// A host may claim anything about its files: only paths of our files are repeated, and only a few.
func TestEditedFiles(t *testing.T) {
	t.Parallel()
	said := []string{
		"/etc/containerd/config.toml: FAILED", "/var/lib/kubelet/config.yaml: FAILED open or read",
		"/etc/kubernetes/manifests/etcd.yaml: OK", "/etc/x\x1b[31m: FAILED", "/home/me/notes: FAILED", "FAILED",
		"/etc/" + strings.Repeat("a", 500) + ": FAILED",
	}
	want := []string{"/etc/containerd/config.toml", "/var/lib/kubelet/config.yaml"}
	if diff := cmp.Diff(want, parseEdited(said)); diff != "" {
		t.Error(diff)
	}
	// Only an edited file can be restorable.
	said = []string{"/var/lib/kubelet/config.yaml", "/etc/shadow", "/etc/containerd/certs.d/x/hosts.toml"}
	if diff := cmp.Diff([]string{"/var/lib/kubelet/config.yaml"}, parseRestorable(said, want)); diff != "" {
		t.Error(diff)
	}
	const pod = "/etc/kubernetes/manifests/etcd.yaml"
	pods := []string{
		pod + " --v", pod + " mountPath: /etc/x", pod + " mountPath: \x1b[31m", pod + " two words", "/etc/x --v",
		"/etc/kubernetes/manifests/other.yaml --v", pod + " " + strings.Repeat("a", 500), pod,
	}
	if diff := cmp.Diff(map[string][]string{pod: {"--v", "mountPath: /etc/x"}},
		parsePodEdits(pods, []string{pod, "/etc/x"})); diff != "" {
		t.Error(diff)
	}
	if many := parsePodEdits(slices.Repeat(pods[:1], 1000), []string{pod}); len(many[pod]) != maxPodEdits {
		t.Errorf("%d edits", len(many[pod]))
	}
	if many := parseEdited(slices.Repeat([]string{"/etc/x: FAILED"}, 1000)); len(many) != maxEdited {
		t.Errorf("%d files", len(many))
	}
}

// The reported modes count only for files with keys, and are bounded.
func TestExposedFiles(t *testing.T) {
	t.Parallel()
	said := []string{
		"644 0 /etc/kubernetes/admin.conf", "600 1000 /etc/kubernetes/pki/etcd/ca.key",
		"600 0 /etc/kubernetes/kubelet.conf",
		"640 0 /var/lib/kubelet/pki/kubelet-client-2026-01-02-03-04-05.pem", "644 0 /etc/passwd",
		"644 0 /etc/kubernetes/pki/../../shadow.key", "644 0 /etc/kubernetes/x/admin.conf",
		"999 0 /etc/kubernetes/admin.conf",
		"644 0 /etc/kubernetes/pki/x\x1b[31m.key", "644  /etc/kubernetes/admin.conf", "",
		"644 0 /etc/containerd/conf.d/kubeone-registry-registry.example.com.toml",
		"644 0 /etc/kubernetes/pki/" + strings.Repeat("a", 500) + ".key", "644 0 /etc/kubernetes/encryption/..",
	}
	kubelet := observed.FileAccess{Path: "/var/lib/kubelet/pki/kubelet-client-2026-01-02-03-04-05.pem", Mode: "640"}
	registry := observed.FileAccess{
		Path: "/etc/containerd/conf.d/kubeone-registry-registry.example.com.toml", Mode: "644",
	}
	want := []observed.FileAccess{
		{Path: "/etc/kubernetes/admin.conf", Mode: "644"},
		{Path: "/etc/kubernetes/pki/etcd/ca.key", Mode: "600", User: 1000}, kubelet, registry,
	}
	if diff := cmp.Diff(want, parseExposed(said, false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]observed.FileAccess{kubelet, registry}, parseExposed(said, true)); diff != "" {
		t.Errorf("components with users of their own: %s", diff)
	}
	if many := parseExposed(slices.Repeat(said[:1], 1000), false); len(many) != maxExposed {
		t.Errorf("%d files", len(many))
	}
}
