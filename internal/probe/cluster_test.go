package probe

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/etcdtest"
)

var objects = map[string]string{
	"/version": `{"gitVersion":"v1.36.3"}`,
	"/readyz":  `ok`,
	"/api/v1/namespaces/kube-system": `{"kind":"Namespace","apiVersion":"v1",
		"metadata":{"name":"kube-system","uid":"u-1"}}`,
	"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[
		{"metadata":{"name":"cp-1","labels":{"node-role.kubernetes.io/control-plane":""}},
		 "spec":{"unschedulable":true,"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]},
		 "status":{"conditions":[{"type":"Ready","status":"True"}],
		  "addresses":[{"type":"InternalIP","address":"10.0.0.1"}],
		  "nodeInfo":{"kubeletVersion":"v1.36.3","containerRuntimeVersion":"containerd://2.4.2"}}},
		{"metadata":{"name":"w-1"},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}},
		{"metadata":{"name":"w-2"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}]}`,
	"/api/v1/namespaces/kube-system/pods": `{"kind":"PodList","apiVersion":"v1","items":[
		{"metadata":{"name":"etcd-cp-1","namespace":"kube-system","labels":{"component":"etcd"}},
		 "spec":{"nodeName":"cp-1","containers":[{"name":"etcd","image":"etcd:3.6.8-0"}]},
		 "status":{"conditions":[{"type":"Ready","status":"True"}],
		  "containerStatuses":[{"name":"etcd","restartCount":2}]}}]}`,
	"/api/v1/namespaces/kube-flannel/pods": `{"kind":"PodList","apiVersion":"v1","items":[
		{"metadata":{"name":"flannel-x","namespace":"kube-flannel","labels":{"app":"flannel"}}}]}`,
	"/apis/certificates.k8s.io/v1/certificatesigningrequests": `{
		"kind":"CertificateSigningRequestList","apiVersion":"certificates.k8s.io/v1","items":[
		{"metadata":{"name":"a"},"spec":{"signerName":"kubernetes.io/kubelet-serving"}},
		{"metadata":{"name":"b"},"spec":{"signerName":"kubernetes.io/kubelet-serving"},
		 "status":{"conditions":[{"type":"Approved","status":"True"}]}},
		{"metadata":{"name":"c"},"spec":{"signerName":"kubernetes.io/kube-apiserver-client"}}]}`,
	"/api/v1/namespaces/kube-system/configmaps/kubeadm-config": `{"kind":"ConfigMap","apiVersion":"v1",
		"data":{"ClusterConfiguration":"kind: ClusterConfiguration\ncontrolPlaneEndpoint: lb.example.com:6443\n"}}`,
	"/api/v1/namespaces/kube-system/configmaps/kubeone": `{
		"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"kubeone"},
		"data":{"cluster":"demo","manifestDigest":"d","manifest":"name: m","runID":"r","hardening":"baseline",
			"addons":"{\"flannel\":\"f\"}"}}`,
	"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kubeone": `{
		"kind":"Lease","apiVersion":"coordination.k8s.io/v1",
		"metadata":{"name":"kubeone","annotations":{"kubeone.k8c.io/run-id":"r"}},
		"spec":{"holderIdentity":"ann@laptop","leaseDurationSeconds":20,
		 "acquireTime":"2027-01-15T07:59:00.000000Z","renewTime":"2027-01-15T07:59:50.000000Z"}}`,
}

var wantAPI = observed.API{
	Reached: observed.Yes, Via: "a", Version: "1.36.3", ClusterID: "u-1", PendingCSRs: 1, AutoApproval: observed.No,
	Endpoint: "lb.example.com:6443",
	Nodes: []observed.Node{
		{
			Name: "cp-1", Addresses: []string{"10.0.0.1"}, Ready: observed.Yes, Unschedulable: true, ControlPlane: true,
			KubeletVersion: "1.36.3",
			Runtime:        "containerd://2.4.2",
			Labels:         map[string]string{"node-role.kubernetes.io/control-plane": ""},
			Taints:         []observed.Taint{{Key: "k", Value: "v", Effect: "NoSchedule"}},
		},
		{Name: "w-1", Ready: observed.Unknown},
		{Name: "w-2", Ready: observed.No},
	},
	Pods: []observed.Pod{
		{Namespace: "kube-system", Name: "etcd-cp-1", Node: "cp-1", App: "etcd", Ready: observed.Yes, Restarts: 2,
			Image: "etcd:3.6.8-0"},
		{Namespace: "kube-flannel", Name: "flannel-x", App: "flannel", Ready: observed.No},
	},
	Addons: map[string]string{"flannel": "f"},
	Record: &observed.Record{
		Cluster: "demo", ManifestDigest: "d", Manifest: "name: m", RunID: "r", Hardening: "baseline",
	},
	Lease: &observed.Lock{
		Holder: "ann@laptop", RunID: "r", Since: time.Date(2027, 1, 15, 7, 59, 0, 0, time.UTC), Live: true,
	},
}

func at() time.Time { return time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC) }

// through gives a host a tunnel to the API and sets the health of its API server.
func through(h *fakeHost, api *fakeAPI) *fakeHost {
	h.forward = map[string]string{"127.0.0.1:6443": api.address()}
	return h
}

func TestTheAPIIsReadThroughAHost(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	h := through(says(nil, api.secret()), api)
	r, err := Run(t.Context(), Request{Targets: []Target{{ID: "a", Host: h, ControlPlane: true}}, Now: at})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAPI, r.World.API); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
	if want := 10 + len(plugins.Namespaces()); r.Requests.API != want || len(api.paths) != want {
		t.Errorf("%d requests counted, %d came, want %d each: %q", r.Requests.API, len(api.paths), want, api.paths)
	}
	if r.Access == nil || len(r.Access.Via) != 1 || r.Access.Via[0].ID != "a" {
		t.Errorf("access %+v", r.Access)
	}
	if len(h.commands) != 1 {
		t.Errorf("%d commands on the host, want 1", len(h.commands))
	}
}

// Charts need to know what the API serves; without a desired Helm release, nothing does.
func TestAPIVersionsAreReadForHelmReleases(t *testing.T) {
	t.Parallel()
	served := maps.Clone(objects)
	maps.Copy(served, map[string]string{
		"/api/v1/secrets": `{"kind":"SecretList","apiVersion":"v1","items":[]}`,
		"/api":            `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"pods","kind":"Pod","namespaced":true}]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"x.example","versions":[
			{"groupVersion":"x.example/v1","version":"v1"}]},{"name":"broken.example","versions":[
			{"groupVersion":"broken.example/v1","version":"v1"}]}]}`,
		"/apis/x.example/v1": `{"kind":"APIResourceList","groupVersion":"x.example/v1","resources":[
			{"name":"widgets","kind":"Widget","namespaced":true}]}`,
	})
	for name, c := range map[string]struct{ releases, want []string }{
		"none": {releases: []string{}},
		"one": {[]string{"web/web"},
			[]string{"broken.example/v1", "v1", "v1/Pod", "x.example/v1", "x.example/v1/Widget"}},
	} {
		api := newAPI(t, served)
		r, err := Run(t.Context(), Request{
			Targets: []Target{{ID: "a", Host: through(says(nil, api.secret()), api), ControlPlane: true}},
			Now:     at, Releases: c.releases,
		})
		if err != nil || r.World.API.Reached != observed.Yes {
			t.Fatal(name, err, r.World.API.Problem)
		}
		if diff := cmp.Diff(c.want, r.World.API.APIVersions); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestAClusterWithoutUsHasNoRecord(t *testing.T) {
	t.Parallel()
	bare := map[string]string{}
	for path, object := range objects {
		bare[path] = object
	}
	delete(bare, "/api/v1/namespaces/kube-system/configmaps/kubeone")
	delete(bare, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kubeone")
	api := newAPI(t, bare)
	r, err := Run(t.Context(), Request{
		Targets: []Target{{ID: "a", Host: through(says(nil, api.secret()), api), ControlPlane: true}},
		Now:     at,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := wantAPI
	want.Record, want.Lease, want.Addons = nil, nil, nil
	if diff := cmp.Diff(want, r.World.API); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
}

func TestTheAPIDoesNotWaitForAPausedHost(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	// The paused host resumes only once the API was asked. A probe that waits for it would hang until its deadline.
	r, err := Run(t.Context(), Request{Now: at, Targets: []Target{
		{ID: "paused", Host: hangs(api.asked), ControlPlane: true},
		{ID: "a", Host: through(says(nil, api.secret()), api), ControlPlane: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.World.Hosts["paused"].Reach != observed.Reached || r.World.API.Reached != observed.Yes {
		t.Errorf("the API was asked after the paused host: %+v", r.World.Hosts["paused"])
	}
}

func TestTheAPIIsAskedWhileAHostStillTellsTheRest(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	h := through(&fakeHost{}, api)
	h.run = func(ctx context.Context, c host.Cmd) (host.Result, error) {
		if err := answer(c, []string{"kubeone-probe 1", "uid 0", api.secret(), "access 1"}); err != nil {
			return host.Result{}, err
		}
		select { // the host resumes only once the API was asked
		case <-api.asked:
			return host.Result{}, answer(c, []string{"hostname cp-1", "end 1"})
		case <-ctx.Done():
			return host.Result{ExitCode: -1}, context.Cause(ctx)
		}
	}
	r, err := Run(t.Context(), Request{Now: at, Targets: []Target{{ID: "a", Host: h, ControlPlane: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAPI, r.World.API); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
	if got := r.World.Hosts["a"]; got.Reach != observed.Reached || got.Hostname != "cp-1" {
		t.Errorf("host %+v", got)
	}
	var noted []string
	for _, span := range r.Spans {
		noted = append(noted, span.Host+" "+span.What)
	}
	slices.Sort(noted)
	if diff := cmp.Diff([]string{"a API", "a script"}, noted); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestAnAPIServerThatHangsDelaysTheNextByASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := make(chan candidate, 2)
		from <- candidate{target: Target{ID: "hung"}}
		from <- candidate{target: Target{ID: "well"}}
		close(from)
		start := time.Now()
		got, reached, err := attempts[string]{
			within: 4 * time.Second,
			health: func(candidate) observed.Tri { return observed.Unknown },
			try: func(ctx context.Context, c candidate) (string, error) {
				if c.target.ID == "hung" {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return "answer of " + c.target.ID, nil
			},
		}.firstOf(t.Context(), from)
		if got != "answer of well" || reached != observed.Yes || err != nil {
			t.Errorf("%q, reached %q, error %v", got, reached, err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want a second", took)
		}
	})
}

// The answer of a member that is cut off is not the state of etcd, however fast it comes.
func TestAnAnswerThatIsNotFinalCountsIfThereIsNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string // of the hosts; "" is a failure
		want    string
		reached observed.Tri
	}{
		"a final one after it":   {[]string{"cut off", "final"}, "final", observed.Yes},
		"a final one before it":  {[]string{"final", "cut off"}, "final", observed.Yes},
		"a failure after it":     {[]string{"cut off", ""}, "cut off", observed.Yes},
		"a failure before it":    {[]string{"", "cut off"}, "cut off", observed.Yes},
		"two that are not final": {[]string{"cut off", "too"}, "cut off", observed.Yes},
		"only failures":          {[]string{"", ""}, "", observed.No},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := make(chan candidate, len(c.answers))
			for _, answer := range c.answers {
				from <- candidate{target: Target{ID: answer}}
			}
			close(from)
			got, reached, err := attempts[string]{
				within: time.Second, health: func(candidate) observed.Tri { return observed.Unknown },
				try: func(_ context.Context, c candidate) (string, error) {
					if c.target.ID == "" {
						return "", errors.New("it does not answer")
					}
					return c.target.ID, nil
				},
				final: func(answer string) bool { return answer == "final" },
			}.firstOf(t.Context(), from)
			if got != c.want || reached != c.reached || (err != nil) != (c.reached == observed.No) {
				t.Errorf("%s: %q, reached %q, %v", name, got, reached, err)
			}
		})
	}
}

// A member that is cut off reports only itself; a member with a quorum reports all.
func TestAnswerOfCutOffMemberIsNotFinal(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"cut off", "quorum"}, {"quorum", "cut off"}} {
		synctest.Test(t, func(t *testing.T) {
			from := make(chan candidate, len(order))
			for _, id := range order {
				from <- candidate{target: Target{ID: id}}
			}
			close(from)
			search := (&prober{}).etcdAttempts()
			search.within = time.Second
			search.health = func(candidate) observed.Tri { return observed.Unknown }
			search.try = func(_ context.Context, c candidate) (etcdResult, error) {
				r := etcdResult{via: c.target.ID}
				if c.target.ID == "cut off" {
					r.Etcd.Problem = "etcd has no leader"
				}
				return r, nil
			}
			if got, reached, err := search.firstOf(t.Context(), from); got.via != "quorum" ||
				reached != observed.Yes || err != nil {
				t.Errorf("%v: through %q, reached %q, %v", order, got.via, reached, err)
			}
		})
	}
}

func TestTheNextHostIsTriedWhenAnAPIServerFails(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	half := map[string]string{"/version": objects["/version"]} // its storage is lost
	ill := newAPI(t, half)
	dead := says(nil, api.secret()) // its tunnel leads nowhere
	r, err := Run(t.Context(), Request{Now: at, Targets: []Target{
		{ID: "dead", Host: dead, ControlPlane: true},
		{ID: "ill", Host: through(says([]string{"health apiserver 200"}, ill.secret()), ill), ControlPlane: true},
		{ID: "a", Host: through(says([]string{"health apiserver 500"}, api.secret()), api), ControlPlane: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAPI, r.World.API); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
	var via []string
	for _, e := range r.Access.Via {
		via = append(via, e.ID)
	}
	if diff := cmp.Diff([]string{"a", "dead", "ill"}, via); diff != "" {
		t.Errorf("access: the host that answered is not first (-want +got):\n%s", diff)
	}
}

func TestUnreachableAPIIsDown(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	r, err := Run(t.Context(), Request{
		Now:     at,
		Targets: []Target{{ID: "a", Host: says(nil, api.secret()), ControlPlane: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.World.API.Reached != observed.No || r.World.API.Problem == "" {
		t.Errorf("API %+v, want known to be down, with a problem", r.World.API)
	}
	if r.Access == nil {
		t.Error("the credentials are known, and there is no access")
	}
}

func TestAnAPIServerIsAskedThroughTheTunnelWhereTheHostCannot(t *testing.T) {
	t.Parallel()
	api := newAPI(t, objects)
	manifest := "manifest /etc/kubernetes/manifests/kube-apiserver.yaml"
	r, err := Run(t.Context(), Request{Now: at, Targets: []Target{
		{ID: "a", Host: through(says([]string{manifest}, api.secret()), api), ControlPlane: true},
		{ID: "b", Host: says([]string{manifest}, api.secret()), ControlPlane: true},
		{ID: "c", Host: through(says([]string{manifest, "health apiserver 500"}, api.secret()), api),
			ControlPlane: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]observed.Tri{}
	for id, h := range r.World.Hosts {
		got[id] = h.APIServer
	}
	if diff := cmp.Diff(map[string]observed.Tri{"a": observed.Yes, "b": observed.No, "c": observed.No},
		got); diff != "" {
		t.Errorf("API servers (-want +got):\n%s", diff)
	}
	if n := len(slices.DeleteFunc(api.paths, func(p string) bool { return p != "/readyz" })); n != 1 {
		t.Errorf("/readyz was asked %d times, want once: who said it is not ready is not asked again", n)
	}
}

func TestEtcdIsReadThroughAHost(t *testing.T) {
	t.Parallel()
	members := etcdtest.Start(t, &etcdtest.Cluster{Members: []etcdtest.Member{
		{ID: 1, Name: "cp-1", Leader: 1}, {ID: 2, Name: "cp-2", Leader: 1, Learner: true},
		{ID: 3, Name: "cp-3", Down: true}, {ID: 4, Name: "cp-4", Leader: 1},
	}})
	access := members.Access()
	facts, secret := etcdFacts(access.Credentials)
	target := func(i int, more ...string) Target {
		h := says(append(append(more, "hostname "+access.Via[i].ID, "manifest /etc/kubernetes/manifests/etcd.yaml"),
			facts...), secret)
		h.forward = map[string]string{"127.0.0.1:2379": access.Via[i].Address}
		for _, e := range access.Via { // members reach each other at their advertised addresses
			h.forward[e.Address] = e.Address
		}
		return Target{ID: access.Via[i].ID, Host: h, ControlPlane: true}
	}
	r, err := Run(t.Context(), Request{Targets: []Target{target(2), target(1), target(0, "health etcd 500")}})
	if err != nil {
		t.Fatal(err)
	}
	var healthy []string
	for _, m := range r.World.Etcd.Members {
		if m.Healthy == observed.Yes {
			healthy = append(healthy, m.Name)
		}
	}
	if diff := cmp.Diff([]string{"cp-1", "cp-2", "cp-4"}, healthy); diff != "" || r.World.Etcd.Reached != observed.Yes {
		t.Errorf("etcd %+v; healthy (-want +got):\n%s", r.World.Etcd, diff)
	}
	for id, want := range map[string]observed.Tri{"cp-1": observed.No, "cp-2": observed.Yes, "cp-3": observed.No} {
		if got := r.World.Hosts[id].EtcdHealth; got != want {
			t.Errorf("etcd of %s is %q, want %q", id, got, want)
		}
	}
	if r.Etcd == nil || len(r.Etcd.Via) != 3 || r.Etcd.Via[0].ID != "cp-1" {
		t.Errorf("access to etcd %+v, want through cp-1 first", r.Etcd)
	}
	if _, port, err := net.SplitHostPort(r.Etcd.Via[0].Address); err != nil || port != "2379" {
		t.Errorf("address %q", r.Etcd.Via[0].Address)
	}
}
