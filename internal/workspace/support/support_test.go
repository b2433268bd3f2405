package support_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"mvdan.cc/sh/v3/syntax"

	"kubeone/internal/host"
	"kubeone/internal/testutil/hostfake"
	"kubeone/internal/workspace/support"
)

// canary must not appear in a bundle. No pattern knows it by its own form.
const canary = "canary-Tweet-83"

// sung holds texts with the canary in the forms in which secrets occur, one for each.
func sung() string {
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----"
	return strings.Join([]string{
		"Authorization: Bearer " + canary, "password: " + canary, `{"token":"` + canary + `"}`, "--token " + canary,
		"http://u:" + canary + "@proxy:1",
		"known=" + canary, "client-key-data: " + base64.StdEncoding.EncodeToString([]byte(key)), key,
		"abcdef.0123456789abcdef",
	}, "\n")
}

// files returns the files of a bundle, by name without the top directory.
func files(t *testing.T, bundle []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	in, out := tar.NewReader(zip), map[string]string{}
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(header.Name, "demo-support/")
		if _, twice := out[name]; twice {
			t.Errorf("%s is in the bundle twice", name)
		}
		if !ok || strings.Contains(name, "..") || header.Mode != 0o600 {
			t.Errorf("%s, mode %o", header.Name, header.Mode)
		}
		out[name] = string(text)
	}
}

func inClear(text string) string {
	for _, form := range []string{
		canary, base64.StdEncoding.EncodeToString([]byte(canary))[:16], "0123456789abcdef", "BEGIN RSA",
	} {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}

// cluster returns an API whose collected texts all contain the canary.
func cluster() *fake.Clientset {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web-0"}
	return fake.NewClientset(
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "cp-1"},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", Message: sung()}},
			},
		},
		&corev1.Pod{
			ObjectMeta: meta,
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{
					{Image: "registry.example.com/web:1", Env: []corev1.EnvVar{{Name: "X", Value: canary}}},
				},
			},
			Status: corev1.PodStatus{
				Message: sung(),
				ContainerStatuses: []corev1.ContainerStatus{
					{
						State: corev1.ContainerState{
							Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: sung()},
						},
					},
				},
			},
		},
		&corev1.Event{
			ObjectMeta:     meta,
			Message:        sung(),
			Reason:         "BackOff",
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-0"},
		},
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte(canary)}},
	)
}

func TestNoSecretGetsIntoABundleFromAnywhere(t *testing.T) {
	t.Parallel()
	journals := t.TempDir()
	line := fmt.Sprintf(`{"type":"step-output","line":%q}`, sung()) + "\n"
	for i := range 12 {
		write(t, filepath.Join(journals, fmt.Sprintf("run-%02d.jsonl", i)), strings.Repeat(line, 3))
	}
	printed := "motd " + sung()
	for _, section := range []string{"kubelet.log", "step.log", "containers.txt", "lock.txt", "../../../escape.txt"} {
		printed += "\n::kubeone-section:: " + section + "\nkept " + section + "\n" + sung()
	}
	talks := hostfake.New(t, "cp-1",
		hostfake.Expect{Name: "collect logs", Do: func(_ context.Context, c host.Cmd) (host.Result, error) {
			_, err := io.WriteString(c.Stdout, printed)
			return host.Result{Stderr: []byte(sung())}, err
		}})
	breaks := hostfake.New(t, "w-1",
		hostfake.Expect{Name: "collect logs", Err: errors.New("connection lost " + sung())})
	var out bytes.Buffer
	missing, err := support.Write(t.Context(), &out, support.Input{
		Cluster: "demo", Now: time.Now, Journals: journals, Secrets: []string{canary}, Kubernetes: cluster(),
		Documents: []support.Document{
			{Name: "manifest.yaml", Text: []byte("name: demo\n" + sung())},
			{Name: "plan.json", Text: []byte(`{"ok":true,"reason":"` + canary + `"}`)},
			{Name: "status.json", Text: []byte("{\"no JSON\n" + sung())},
			{Name: "names/" + canary + ".txt", Text: []byte("x")},
		},
		Hosts:       map[string]support.Host{"cp-1": talks, "w-1": breaks},
		Unreachable: map[string]string{"w-2": "refused " + sung()},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := files(t, out.Bytes())
	for name, text := range got {
		if form := inClear(text + name); form != "" {
			t.Errorf("%s has %q:\n%s", name, form, text)
		}
	}
	for _, want := range []string{
		"manifest.yaml: name: demo", `plan.json: "ok": true`, "status.json: no JSON", "hosts/cp-1/before.txt: motd",
		"hosts/cp-1/kubelet.log: kept", "hosts/cp-1/step.log: kept",
		"hosts/cp-1/stderr.txt: [removed]", "api/pods.txt: registry.example.com/web:1",
		"api/pods.txt: CrashLoopBackOff", "api/events.txt: BackOff", "api/nodes.txt: cp-1",
		"journals/run-11.jsonl: step-output", "journals/run-02.jsonl: step-output",
		"missing.txt: hosts/w-1: connection lost", "missing.txt: hosts/w-2: refused",
	} {
		name, text, _ := strings.Cut(want, ": ")
		if !strings.Contains(got[name], text) {
			t.Errorf("%s has no %q:\n%s", name, text, got[name])
		}
	}
	if _, old := got["journals/run-01.jsonl"]; old {
		t.Error("more journals than the last ten")
	}
	if len(missing) != 3 || inClear(fmt.Sprint(missing)) != "" {
		t.Errorf("missing: %v", missing)
	}
}

// Without a list of known values, the patterns alone find all but the one that only the list knows.
func TestPatternsFindUnknownSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	text := strings.ReplaceAll(sung(), "known="+canary+"\n", "")
	_, err := support.Write(t.Context(), &out, support.Input{
		Cluster:   "demo",
		Now:       time.Now,
		Documents: []support.Document{{Name: "a.txt", Text: []byte(text)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if form := inClear(files(t, out.Bytes())["a.txt"]); form != "" {
		t.Errorf("%q is still there", form)
	}
}

func TestWhatCannotBeCollectedIsListed(t *testing.T) {
	t.Parallel()
	api := fake.NewClientset()
	api.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("not you"))
	})
	endless := hostfake.New(t, "cp-1", hostfake.Expect{Do: func(_ context.Context, c host.Cmd) (host.Result, error) {
		for {
			if _, err := c.Stdout.Write(bytes.Repeat([]byte(strings.Repeat("x", 250)+"\n"), 1<<12)); err != nil {
				return host.Result{}, err
			}
		}
	}})
	var out bytes.Buffer
	missing, err := support.Write(t.Context(), &out, support.Input{
		Cluster: "demo", Now: time.Now, Kubernetes: api, Hosts: map[string]support.Host{"cp-1": endless},
		Journals: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var what []string
	for _, m := range missing {
		what = append(what, m.What)
	}
	if diff := cmp.Diff([]string{"api/pods.txt", "hosts/cp-1", "journals"}, what); diff != "" {
		t.Error(diff)
	}
	missing, err = support.Write(t.Context(), io.Discard,
		support.Input{Cluster: "demo", Now: time.Now, NoAPI: "connection refused"})
	if diff := cmp.Diff([]support.Missing{{What: "api", Why: "connection refused"}}, missing); diff != "" ||
		err != nil {
		t.Error(err, diff)
	}
}

func TestABundleThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := support.Write(t.Context(), full{}, support.Input{Cluster: "demo", Now: time.Now}); err == nil {
		t.Error("a full disk is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := support.Write(ctx, io.Discard, support.Input{Cluster: "demo", Now: time.Now}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAJournalIsCutAtALine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run.jsonl"),
		"{\"password\":\""+strings.Repeat("x", 1<<20)+canary+"\"}\n{\"type\":\"last\"}\n")
	var out bytes.Buffer
	if _, err := support.Write(t.Context(), &out, support.Input{
		Cluster:  "demo",
		Now:      time.Now,
		Journals: dir,
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\"type\":\"last\"}\n", files(t, out.Bytes())["journals/run.jsonl"]); diff != "" {
		t.Error(diff)
	}
}

// The script is POSIX shell, and a machine without any of its programs still answers with all sections.
func TestTheScriptRunsEverywhere(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("collect.sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(bytes.NewReader(script),
		"collect.sh"); err != nil {
		t.Error(err)
	}
	if path, err := exec.LookPath("shellcheck"); err == nil {
		if out, err := exec.CommandContext(t.Context(), path, "-s", "sh", "collect.sh").CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-s", "1000")
	cmd.Stdin = bytes.NewReader(script)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{
		"machine.txt", "kubelet.log", "containerd.log", "step.log", "containers.txt", "images.txt",
	} {
		if !strings.Contains(string(out), "\n::kubeone-section:: "+section+"\n") {
			t.Errorf("there is no section %s in\n%s", section, out)
		}
	}
	if longest := slices.Max(lengths(string(out))); longest > 1200 {
		t.Errorf("a section has %d bytes", longest)
	}
}

func lengths(out string) []int {
	sizes := map[int]bool{}
	for _, section := range strings.Split(out, "::kubeone-section:: ") {
		sizes[len(section)] = true
	}
	return slices.Collect(maps.Keys(sizes))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A host names only files in its own directory.
func TestNoHostWritesIntoAnothersFolder(t *testing.T) {
	t.Parallel()
	const begins = "\n::kubeone-section:: "
	names := []string{
		"../cp-1/kubelet.log", "../../plan.txt", "/etc/passwd", "\x1b[2J.log", "x", strings.Repeat("a", 99) + ".log",
	}
	printed := ""
	for _, name := range append(names, "kubelet.log") {
		printed += begins + name + "\nforged\n"
	}
	for i := range 100 {
		printed += begins + strings.Repeat("a", i%30+1) + ".txt\nforged\n"
	}
	talks := hostfake.New(t, "w-1",
		hostfake.Expect{Name: "collect logs", Do: func(_ context.Context, c host.Cmd) (host.Result, error) {
			_, err := io.WriteString(c.Stdout, printed)
			return host.Result{}, err
		}})
	var out bytes.Buffer
	missing, err := support.Write(t.Context(), &out, support.Input{
		Cluster: "demo", Now: time.Now, Kubernetes: cluster(),
		Documents: []support.Document{{Name: "plan.txt", Text: []byte("the plan")}},
		Hosts:     map[string]support.Host{"w-1": talks},
	})
	if err != nil || len(missing) == 0 {
		t.Fatal(err, missing)
	}
	own := 0
	for name, text := range files(t, out.Bytes()) {
		if strings.HasPrefix(name, "hosts/w-1/") {
			own++
		} else if strings.Contains(text, "forged") {
			t.Errorf("%s is forged", name)
		}
	}
	if own == 0 || own > 64 {
		t.Errorf("%d files of its own", own)
	}
}

// Output of a host never replaces another file in the bundle.
func TestNoHostReplacesAFile(t *testing.T) {
	t.Parallel()
	const begins = "\n::kubeone-section:: "
	printed := "motd"
	for _, name := range []string{"kubelet.log", "kubelet.log", "before.txt", "stderr.txt", "plan.txt", "missing.txt"} {
		printed += begins + name + "\nprinted as " + name + "\n"
	}
	printed += begins + "kubelet.log\nforged\n"
	talks := func(name string) support.Host {
		return hostfake.New(t, name,
			hostfake.Expect{Name: "collect logs", Do: func(_ context.Context, c host.Cmd) (host.Result, error) {
				_, err := io.WriteString(c.Stdout, printed)
				return host.Result{Stderr: []byte("complaint")}, err
			}})
	}
	var out bytes.Buffer
	missing, err := support.Write(t.Context(), &out, support.Input{
		Cluster: "demo", Now: time.Now, NoAPI: "none",
		Documents: []support.Document{{Name: "plan.txt", Text: []byte("the plan")}},
		Hosts:     map[string]support.Host{"w-1": talks("w-1"), "..": talks("..")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := files(t, out.Bytes())
	for name, want := range map[string]string{
		"plan.txt": "the plan", "hosts/w-1/kubelet.log": "printed as kubelet.log\n", "hosts/w-1/before.txt": "\nmotd",
		"hosts/w-1/stderr.txt": "complaint", "hosts/w-1/plan.txt": "printed as plan.txt\n",
		"hosts/w-1/missing.txt": "printed as missing.txt\n",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 7 || !strings.Contains(got["missing.txt"], "hosts/w-1: unexpected and duplicate sections") ||
		!strings.Contains(fmt.Sprint(missing),
			"{hosts/../plan.txt another file has the same name, or the name is not a valid path}") {
		t.Errorf("%q, missing %v", slices.Sorted(maps.Keys(got)), missing)
	}
}
