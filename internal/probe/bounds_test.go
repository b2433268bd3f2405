package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/host"
	"kubeone/internal/model/observed"
)

// said parses an answer with these lines.
func said(t *testing.T, lines ...string) Answer {
	t.Helper()
	a, err := Parse([]byte("kubeone-probe\t1\n"+strings.Join(lines, "\n")+"\nend\t1\n"), sent, received)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// times repeats a line n times, with its number in it.
func times(n int, format string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

func TestNoListOfAHostIsEndless(t *testing.T) {
	t.Parallel()
	const many = 10_000
	var all []string
	for i := range many {
		all = append(all, fmt.Sprintf("address\t2: e inet 11.0.%d.%d/8", i/250, i%250+1))
	}
	for _, format := range []string{
		"missing\ttool%d", "manifest\t/etc/kubernetes/manifests/%d.yaml", "version\tp%d 1.2.3",
		"link\tl 1 root root 1 Jan 2 10:00 l%d -> /opt/kubeone/x/1.2.3/x", "file\t/etc/kubeone/digests:d%d 00",
		"part\tp%d 1 2",
	} {
		all = append(all, times(many, format)...)
	}
	began := time.Now()
	a := said(t, all...)
	for what, n := range map[string]int{
		"addresses": len(a.Host.Addresses), "tools": len(a.Host.Tools), "static pods": len(a.Host.Manifests),
		"programs": len(a.Host.Binaries), "digests": len(a.Host.Digests), "parts": len(a.Parts),
	} {
		if n == 0 || n > maxValues {
			t.Errorf("%d %s", n, what)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestNoTextOfAHostIsEndless(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 100_000)
	a := said(t, "uname\t"+long+" x", "machine-id\t"+long, "etcd-lost\t"+long, "file\t/etc/os-release:ID="+long,
		"file\t/etc/kubeone/marker:fenced="+long, "block\tfile", "/etc/kubeone/marker:role="+long, "block\t")
	text, err := json.Marshal(a.Host)
	if err != nil || len(text) > 8*maxLineBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if len(a.Host.EtcdLost) < maxLineBytes/2 {
		t.Errorf("only %d bytes are left", len(a.Host.EtcdLost))
	}
}

// A host's times are always valid in JSON; otherwise the status of all hosts would be lost.
func TestTimesOfAHostAreTimes(t *testing.T) {
	t.Parallel()
	for _, seconds := range []string{"1099511627776", "253402300800", "9223372036854775807", "-1", "NaN"} {
		a := said(t, "exists\t/var/lib/kubeone/lock/owner", "file\t/var/lib/kubeone/lock/owner:since="+seconds,
			"clock\t"+seconds)
		if _, err := json.Marshal(a.Host); err != nil || a.Host.Lock == nil || !a.Host.Lock.Since.IsZero() {
			t.Errorf("%s: %v, %+v", seconds, err, a.Host.Lock)
		}
	}
	a := said(t, "part\tall NaN NaN", "part\tall -Inf Inf", "part\tall 2 1", "part\tall 1 1e300", "part\tAPI 1 2",
		"part\tetcd 1 2", "part\t\x1b[2J 1 2", "part\tall 1 2")
	if len(a.Parts) != 1 || a.Parts[0].To > time.Second*math.MaxInt32 {
		t.Errorf("%+v", a.Parts)
	}
}

func TestAnEpochIsNoNumberBelowZero(t *testing.T) {
	t.Parallel()
	if m := said(t, "file\t/etc/kubeone/marker:epoch=-5").Host.Marker; m == nil || m.Epoch != 0 {
		t.Errorf("%+v", m)
	}
}

// A host's text in an error is one line of bounded length.
func TestWordsOfAFailureAreText(t *testing.T) {
	t.Parallel()
	words := "\x1b]0;owned\a\u202e" + strings.Repeat("no\n", 10_000)
	for _, err := range []error{
		&host.ExitError{Host: "w-1", Code: 1, Stderr: []byte(words)}, errors.New(words),
		&host.Error{Class: host.Auth, Host: "w-1", Addr: "root@w-1:22", Err: errors.New(words)},
	} {
		got := failedHost(t.Context(), err).Problem
		if len(got) > maxLineBytes || strings.ContainsAny(got, "\x1b\a\n\u202e") || !strings.Contains(got, "no no") {
			t.Errorf("%q", got)
		}
	}
}

// A kubelet controls its own Node and its own static pods.
func TestWhatAKubeletWritesIsNotBelieved(t *testing.T) {
	t.Parallel()
	const escape = "\x1b[2J\u202e"
	node := newNode(corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "w-1", Annotations: map[string]string{"a": escape}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Address: escape}},
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: escape + "v1.36.3", ContainerRuntimeVersion: escape},
		},
	})
	if text := fmt.Sprintf("%+v", node); strings.ContainsAny(text, escape[:1]+"\u202e") {
		t.Errorf("%q", text)
	}
	for _, app := range []string{"k8s-app", "app", "component"} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{app: "kube-proxy"}}}
		if newPod(pod).App != "kube-proxy" {
			t.Errorf("%s does not count", app)
		}
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		if counts := newPod(pod).App != ""; counts != (app == "component") {
			t.Errorf("%s of a static pod counts: %v", app, counts)
		}
	}
}

// Only hosts with an approved key determine the life of the cluster. Otherwise the number of an unknown host could
// exclude all others.
func TestAHostWithoutApprovalEndsNoLife(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	late := says([]string{"file /etc/kubeone/marker:epoch=999999", "file /etc/kubeone/marker:complete=yes"})
	late.contacts = []host.FirstContact{{Fingerprint: "SHA256:new"}}
	own := []string{"file /etc/kubeone/marker:epoch=2", "file /etc/kubeone/marker:complete=yes"}
	r, err := Run(t.Context(), Request{Now: at, Targets: []Target{
		{ID: "late", Host: late, ControlPlane: true},
		{ID: "a", Host: through(says(own, api.secret()), api), ControlPlane: true},
	}})
	if err != nil || r.World.API.Reached != observed.Yes || r.World.API.Via != "a" {
		t.Errorf("%v, %+v", err, r.World.API)
	}
	if !slices.ContainsFunc([]observed.Host{r.World.Hosts["late"]}, func(h observed.Host) bool {
		return h.FirstContact != "" && h.Marker != nil && h.Marker.Epoch == 999999
	}) {
		t.Errorf("%+v", r.World.Hosts["late"])
	}
}
