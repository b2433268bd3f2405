package ssh

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/record"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/locks"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/probe"
	"kubeone/internal/release"
)

func specOf(config string) v1alpha1.MachineSpec {
	spec := v1alpha1.MachineSpec{Versions: v1alpha1.MachineVersionInfo{Kubelet: "v1.36.3"}}
	if config != "" {
		spec.ProviderSpec.Value.CloudProviderSpec = &runtime.RawExtension{Raw: []byte(config)}
	}
	return spec
}

func TestConfigIsReadStrictly(t *testing.T) {
	t.Parallel()
	for config, says := range map[string]string{
		``: "", `{}`: "", `{"host": "w-1", "apiVersion": "ssh.kubeone.k8c.io/v1alpha1"}`: "",
		`{"hostSelector": {"matchLabels": {"rack": "a"}}}`:               "",
		`{"hostname": "w-1"}`:                                            `unknown field "hostname"`,
		`{"apiVersion": "ssh.kubeone.k8c.io/v2"}`:                        "kubeone reads",
		`{"hostSelector": {"matchExpressions": [{"operator": "Near"}]}}`: "hostSelector",
		`[]`: "cloudProviderSpec",
	} {
		err := (&Provider{}).Validate(specOf(config))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", config, err, says)
		}
	}
	docker := specOf("")
	docker.Versions.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{Name: "docker"}
	if err := (&Provider{}).Validate(docker); err == nil || !strings.Contains(err.Error(), "installs containerd") {
		t.Errorf("another runtime: %v", err)
	}
	for field, text := range map[string]string{
		"operatingSystem": `"ubuntu"`, "operatingSystemSpec": `{"distUpgradeOnBoot": false}`, "network": `{}`,
		"sshPublicKeys": `["ssh-ed25519 AAAA"]`, "caPublicKey": `"x"`, "overwriteCloudConfig": `"#cloud-config"`,
	} {
		created := specOf("")
		if err := json.Unmarshal([]byte(`{"`+field+`": `+text+`}`), &created.ProviderSpec.Value); err != nil {
			t.Fatal(err)
		}
		err := (&Provider{}).Validate(created)
		if err == nil || !strings.HasPrefix(err.Error(), field+": this field does not apply to existing hosts") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestVersionsChangeInPlaceAndHostsDoNot(t *testing.T) {
	t.Parallel()
	older := specOf("")
	older.Versions.Kubelet = "1.35.4"
	for name, c := range map[string]struct {
		from, to v1alpha1.MachineSpec
		want     rollout.Change
	}{
		"up":               {older, specOf(""), rollout.InPlace},
		"down":             {specOf(""), older, rollout.InPlace},
		"another host":     {specOf(""), specOf(`{"host": "w-1"}`), rollout.Replace},
		"another selector": {specOf(""), specOf(`{"hostSelector": {"matchLabels": {"a": "b"}}}`), rollout.Replace},
	} {
		if got := (&Provider{}).Change(c.from, c.to); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestFreeHostsAreThoseThatNobodyHasAndThatAreNotToRest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := &Provider{site: &Site{Now: func() time.Time { return now }}}
	at := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(1000+seconds, 0)} }
	in := func(state kubeone.HostState, retry *metav1.Time) kubeone.Host {
		return kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Finalizers: []string{HostFinalizer}},
			Status:     kubeone.HostStatus{State: state, RetryAfter: retry},
		}
	}
	deleted := in("", nil)
	deleted.DeletionTimestamp = at(0)
	for name, c := range map[string]struct {
		host kubeone.Host
		free bool
	}{
		"new":           {in("", nil), true},
		"not known yet": {kubeone.Host{}, false},
		"free":          {in(kubeone.HostFree, nil), true},
		"claimed":       {in(kubeone.HostClaimed, nil), false},
		"joined":        {in(kubeone.HostJoined, nil), false},
		"returning":     {in(kubeone.HostReturning, nil), false},
		"failed":        {in(kubeone.HostFailed, at(1)), false},
		"to be retried": {in(kubeone.HostFailed, at(0)), true},
		"ahead of now":  {in(kubeone.HostFailed, at(86400)), true}, // the clock was set back since
		"being deleted": {deleted, false},
	} {
		if got := p.isFree(&c.host); got != c.free {
			t.Errorf("%s: %v", name, got)
		}
	}
	_, selector, err := parseConfig(specOf(`{"hostSelector": {"matchLabels": {"rack": "a"}}}`))
	if err != nil || !selector.Matches(labels.Set{"rack": "a"}) || selector.Matches(labels.Set{"rack": "b"}) {
		t.Errorf("selector %v, %v", selector, err)
	}
}

func TestVersionsOfAPIServersAreAllOrNone(t *testing.T) {
	t.Parallel()
	api := observed.API{
		Nodes: []observed.Node{{Name: "cp-1", ControlPlane: true}, {Name: "cp-2", ControlPlane: true}, {Name: "w-1"}},
		Pods: []observed.Pod{
			{App: "kube-apiserver", Node: "cp-1", Image: "registry.k8s.io/kube-apiserver:v1.36.3"},
			{App: "kube-scheduler", Node: "cp-2", Image: "registry.k8s.io/kube-scheduler:v1.36.1"},
		},
	}
	control := map[string]bool{"cp-1": true, "cp-2": true}
	if got := apiServers(api, control); got != nil {
		t.Errorf("one is not known: %v", got)
	}
	api.Pods = append(api.Pods, observed.Pod{App: "kube-apiserver", Node: "cp-2", Image: "x:v1.36.1"})
	both := []string{"1.36.3", "1.36.1"}
	if got := apiServers(api, control); !slices.Equal(got, both) {
		t.Errorf("got %v", got)
	}
	api.Nodes = append(api.Nodes, observed.Node{Name: "w-2", ControlPlane: true})
	if got := apiServers(api, control); !slices.Equal(got, both) {
		t.Errorf("a Node with the label alone stops all Machines: %v", got)
	}
	api.Pods = append(api.Pods, observed.Pod{App: "kube-apiserver", Node: "w-2", Image: "x:v1.35.4"})
	if got := apiServers(api, control); !slices.Equal(got, append(both, "1.35.4")) {
		t.Errorf("an API server of no host of the manifest does not count: %v", got)
	}
	api.Nodes[3].Labels = map[string]string{desired.OwnerLabel: "uid"}
	if got := apiServers(api, control); !slices.Equal(got, both) {
		t.Errorf("a Machine's Node has an API server: %v", got)
	}
	if got := apiServers(observed.API{Nodes: api.Nodes}, nil); got != nil {
		t.Errorf("none is known: %v", got)
	}
}

func TestNodesOfTheManifestsControlPlane(t *testing.T) {
	t.Parallel()
	nodes := []observed.Node{
		{Name: "cp-1"}, {Name: "cp-2"}, {Name: "own-name", Addresses: []string{"192.0.2.3"}}, {Name: "w-1"},
	}
	c := desired.Cluster{ControlPlane: []desired.Host{
		{ID: "1", Hostname: "CP-1"}, {ID: "2"}, {ID: "3", PrivateAddress: "192.0.2.3"}, {ID: "4", Hostname: "cp-4"},
	}}
	r := record.Record{Nodes: map[string]string{"2": "cp-2"}}
	got := slices.Sorted(maps.Keys(controlPlaneNodes(c, r, observed.API{Nodes: nodes})))
	if want := []string{"cp-1", "cp-2", "own-name"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHostKeysArePinned(t *testing.T) {
	t.Parallel()
	h := kubeone.Host{Spec: kubeone.HostSpec{Address: "192.0.2.1", User: "ops"}}
	if _, err := TargetOf(&h); err == nil || !strings.Contains(err.Error(), "no host key is pinned") {
		t.Errorf("without keys: %v", err)
	}
	h.Spec.HostKeys = []string{"ssh-ed25519 AAAA"}
	if _, err := TargetOf(&h); err == nil {
		t.Error("a key that is none is taken")
	}
	h.Spec.HostKeys = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Zs+FB3p6bQ1yE2+Qvp5o3nSTmJZYtGmMyPLVzPF8r"}
	h.Spec.Bastion = &kubeone.Bastion{Address: "192.0.2.2", User: "jump", HostKeys: h.Spec.HostKeys}
	to, err := TargetOf(&h)
	if err != nil || len(to.HostKeys) != 1 || len(to.Bastions) != 1 || to.Bastions[0].User != "jump" {
		t.Errorf("%+v, %v", to, err)
	}
}

// await repeats the call until the run has ended, and returns its result.
func await(t *testing.T, r *runs, uid types.UID, goal string, do func(context.Context) error) (bool, error) {
	t.Helper()
	for {
		done, err := r.ensureRun(t.Context(), uid, goal, "test", do)
		var waiting *provider.Waiting
		if done || !errors.As(err, &waiting) || waiting.Reason != "Working" {
			return done, err
		}
	}
}

func TestOneRunAMachineAtATime(t *testing.T) {
	t.Parallel()
	r := newRuns()
	fail := func(context.Context) error { return errors.New("broken") }
	succeed := func(context.Context) error { return nil }
	if done, err := await(t, r, "a", "one", fail); done || err == nil || err.Error() != "broken" {
		t.Errorf("a run that fails: %v, %v", done, err)
	}
	if done, err := await(t, r, "a", "one", succeed); done || err == nil || err.Error() != "broken" {
		t.Errorf("it is tried again at once: %v, %v", done, err)
	}
	if got := r.failureCount("a"); got != 1 {
		t.Errorf("one failure counts as %d", got)
	}
	if done, err := await(t, r, "a", "another", succeed); !done || err != nil {
		t.Errorf("another goal does not wait: %v, %v", done, err)
	}
	began, ended := make(chan struct{}), make(chan struct{})
	hang := func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	if done, _ := r.ensureRun(t.Context(), "b", "one", "test", hang); done {
		t.Error("it is done before it has begun")
	}
	<-began
	if done, err := r.ensureRun(t.Context(), "b", "two", "test", nil); done || err == nil {
		t.Errorf("another goal waits for the end of the run: %v, %v", done, err)
	}
	<-ended
	if done, err := await(t, r, "b", "two", succeed); !done || err != nil {
		t.Errorf("then it is reached: %v, %v", done, err)
	}
	if got := r.failureCount("b"); got != 0 {
		t.Errorf("a run that was ended counts as %d failures", got)
	}
	hung := make(chan struct{})
	_, _ = r.ensureRun(t.Context(), "c", "one", "test", func(ctx context.Context) error {
		<-ctx.Done()
		close(hung)
		return nil
	})
	r.stopAll()
	<-hung
	if done, err := r.ensureRun(t.Context(), "d", "one", "test", nil); done || err == nil {
		t.Errorf("nothing begins after the end: %v, %v", done, err)
	}
}

// A silent host is never free, even if its Machine was given up.
func TestASilentHostIsNotFree(t *testing.T) {
	t.Parallel()
	proposal := func(route fsm.Route, reach observed.Reach, problems ...problem.Problem) engine.Proposal {
		return engine.Proposal{
			Decisions: []decide.Decision{{Route: route, Problems: problems}},
			Observed: probe.Result{World: observed.World{
				Hosts: map[string]observed.Host{"uid-1": {Reach: reach}},
			}},
		}
	}
	if over, err := finalResult(proposal(fsm.Nothing, observed.Unreachable), engine.Worker{MachineDeleted: true}); !over ||
		!errors.Is(err, errUnresponsive) {
		t.Errorf("a silent host of a Machine that is gone: %v, %v", over, err)
	}
	if over, err := finalResult(proposal(fsm.Nothing, observed.Reached), engine.Worker{MachineDeleted: true}); !over ||
		err != nil {
		t.Errorf("one that answers, and is bare: %v, %v", over, err)
	}
	if over, _ := finalResult(proposal(fsm.Abandon, observed.Unreachable), engine.Worker{MachineDeleted: true}); over {
		t.Error("its Node is to go before that")
	}
	refused := problem.Problem{Code: problem.KubeletVersionRefused}
	over, err := finalResult(proposal(fsm.Error, observed.Reached, refused), engine.Worker{})
	if waiting := (*provider.Waiting)(nil); !over || !errors.As(err, &waiting) {
		t.Errorf("a version that no host could have counts against the host: %v, %v", over, err)
	}
}

// A deleted Machine waits for its host until that has been silent for a while. A kubelet that reports not ready is not
// silent.
func TestANodeThatSpeaksIsNotLost(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m-1"}}
	h := &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}}
	for status, lost := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true,
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "w-1", Labels: map[string]string{desired.OwnerLabel: "m-1"},
		}}
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Unix(1000, 0),
		}}
		p := &Provider{client: clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(n).Build()}
		if since, err := p.notReportingSince(t.Context(), m, h); err != nil || since.IsZero() == lost {
			t.Errorf("Ready is %s: lost since %v, %v", status, since, err)
		}
	}
}

func TestWhenASilentHostIsGivenUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(10000, 0)
	at := func(ago int) *metav1.Time { return &metav1.Time{Time: now.Add(-time.Duration(ago) * time.Second)} }
	for name, c := range map[string]struct {
		config        string
		deleted, lost int // seconds ago; 0 is not
		want          bool
	}{
		"not deleted":                  {"", 0, 5000, false},
		"ready, just deleted":          {"", 500, 0, false},
		"ready, deleted long ago":      {"", 601, 0, true},
		"silent for long, just asked":  {"", 20, 5000, false},
		"silent for long, asked":       {"", 31, 5000, true},
		"silent for a while":           {"", 300, 500, false},
		"silent for as long as wanted": {`{"silentHostTimeoutSeconds": 60}`, 40, 61, true},
		"not waited for":               {`{"silentHostTimeoutSeconds": 0}`, 1, 1, true},
		"a spec that is wrong":         {`{"silentHostTimeoutSeconds": -1}`, 500, 500, false},
	} {
		m := &v1alpha1.Machine{Spec: specOf(c.config)}
		if c.deleted > 0 {
			m.DeletionTimestamp = at(c.deleted)
		}
		lost := time.Time{}
		if c.lost > 0 {
			lost = at(c.lost).Time
		}
		if got := isGivenUp(m, lost, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A Host with the name or address of another host, the API or a Service is refused: its kubelet could impersonate that.
func TestReservedNamesAndAddresses(t *testing.T) {
	t.Parallel()
	c := desired.Cluster{
		Endpoint:     desired.Endpoint{Host: "api.example.com", AlternativeNames: []string{"198.51.100.7"}},
		Network:      desired.Network{ServiceSubnet: "10.96.0.0/12", DNSDomain: "cluster.local"},
		ControlPlane: []desired.Host{{ID: "a", PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1"}},
		Workers:      []desired.Host{{ID: "b", PublicAddress: "192.0.2.2", Hostname: "static"}},
	}
	r := record.Record{Nodes: map[string]string{"a": "cp-1"}, FormerEndpoints: []string{"old.example.com"}}
	of := func(name, address, private string) *kubeone.Host {
		return &kubeone.Host{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       kubeone.HostSpec{Address: address, PrivateAddress: private},
		}
	}
	for _, h := range []*kubeone.Host{
		of("w-1", "192.0.2.9", "10.0.0.9"), of("w-1", "w-1.example.com", ""), of("w-1", "fd00::9", ""),
	} {
		if err := CheckReserved(c, r, h); err != nil {
			t.Error(err)
		}
	}
	for _, h := range []*kubeone.Host{
		of("cp-1", "192.0.2.9", ""), of("static", "192.0.2.9", ""), of("w-1", "192.0.2.1", ""),
		of("w-1", "192.0.2.9", "10.0.0.1"), of("w-1", "::ffff:192.0.2.2", ""), of("w-1", "API.example.com.", ""),
		of("w-1", "192.0.2.9", "198.51.100.7"), of("w-1", "old.example.com", ""), of("w-1", "192.0.2.9", "10.96.0.1"),
		of("w-1", "kubernetes.default.svc", ""), of("kubernetes", "192.0.2.9", ""), of("w-1", "127.0.0.1", ""),
		of("w-1", "localhost", ""), of("w-1", "x.y.svc.cluster.local", ""),
	} {
		if err := CheckReserved(c, r, h); err == nil {
			t.Errorf("%s at %s, %s is let in", h.Name, h.Spec.Address, h.Spec.PrivateAddress)
		}
	}
}

// While a plan is carried out, a Machine does not report what the previous run waited for.
func TestWhatWasWaitedForIsOverWhenSomethingBegins(t *testing.T) {
	t.Parallel()
	r := newRuns()
	silent := &provider.Waiting{Reason: reasonHostSilent, Message: "no answer"}
	r.of["m"] = &run{goal: "one", finished: true, err: silent}
	on, begun := make(chan struct{}), make(chan struct{})
	defer r.stopAll()
	defer close(on)
	_, err := r.ensureRun(t.Context(), "m", "one", "install", func(context.Context) error {
		r.noteBegun("m")
		close(begun)
		<-on
		return nil
	})
	<-begun
	_, after := r.ensureRun(t.Context(), "m", "one", "install", nil)
	var waiting *provider.Waiting
	if !errors.Is(err, silent) && !errors.As(err, &waiting) || !errors.As(after, &waiting) ||
		waiting.Reason != provider.Working {
		t.Errorf("first %v, then %v", err, after)
	}
}

// A missing bundle does not count as a failure of the host, which would have to rest.
func TestAReleaseThatNoBundleHasIsWaitedFor(t *testing.T) {
	t.Parallel()
	var waiting *provider.Waiting
	for _, other := range []error{
		errors.New("no answer"), &engine.ConfigError{Err: errors.New("the cluster has no such host")},
	} {
		if got := planError(other); got != other { //nolint:errorlint // the same value
			t.Errorf("%v became %v", other, got)
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&engine.ConfigError{Err: &engine.ReleaseError{Err: &release.MissingError{}}}, reasonNoRelease},
		{&engine.ConfigError{Err: &engine.ReleaseError{Err: errors.New("the bundle was altered")}}, reasonNoRelease},
		{&engine.UnresolvedError{Err: &release.FetchError{}}, reasonNoRelease},
		{&locks.HeldError{}, reasonHostBusy},
		{&apicall.Error{Op: "create a token", Class: apicall.Transient, Err: errors.New("no answer")}, reasonAPISilent},
	} {
		if got := planError(c.err); !isWaiting(got) || !errors.As(got, &waiting) || waiting.Reason != c.want {
			t.Errorf("got %v, want %s, which counts against no host", got, c.want)
		}
	}
}
