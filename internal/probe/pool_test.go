package probe

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/cluster"
	"kubeone/internal/model/observed"
)

// pooled returns the objects of a cluster with Machines, by path.
func pooled() map[string]string {
	out := maps.Clone(objects)
	const kinds = "/apis/cluster.k8s.io/v1alpha1/"
	list := func(kind, items string) string {
		return `{"kind":"` + kind + `List","apiVersion":"cluster.k8s.io/v1alpha1","items":[` + items + `]}`
	}
	out[kinds+"machinedeployments"] = list("MachineDeployment", `
		{"metadata":{"name":"workers","namespace":"kube-system"},
		 "spec":{"replicas":3,"template":{"spec":{"versions":{"kubelet":"v1.36.3"}}}},
		 "status":{"readyReplicas":1,"updatedReplicas":2}},
		{"metadata":{"name":"odd","namespace":"kube-system","deletionTimestamp":"2027-01-15T07:59:00Z"},
		 "spec":{"replicas":"many","template":7},"status":[]}`)
	out[kinds+"machinesets"] = list("MachineSet", `
		{"metadata":{"name":"workers-a","namespace":"kube-system","ownerReferences":[
		 {"kind":"MachineDeployment","name":"workers","controller":true}]}}`)
	out[kinds+"machines"] = list("Machine", `
		{"metadata":{"name":"workers-a-2","namespace":"kube-system","uid":"u-2","ownerReferences":[
		  {"kind":"MachineSet","name":"workers-a","controller":true}]},
		 "spec":{"versions":{"kubelet":"1.36.3"},"providerSpec":{"value":{"cloudProvider":"ssh"}}},
		 "status":{"phase":"Pending","conditions":[
		  {"type":"Ready","status":"False","reason":"NoNode","message":"it has none"},
		  {"type":"Allocated","status":"False","reason":"PoolEmpty","message":"no host is \u001b[2Jfree\nhere"}]}},
		{"metadata":{"name":"workers-a-1","namespace":"kube-system","uid":"u-1","ownerReferences":[
		  {"kind":"MachineSet","name":"workers-a","controller":true}]},
		 "spec":{"versions":{"kubelet":"v1.36.3"},"providerSpec":{"value":{"cloudProvider":"ssh"}}},
		 "status":{"phase":"Running","nodeRef":{"name":"w-1"},"versions":{"kubelet":"1.35.4"},"conditions":[
		  {"type":"Ready","status":"True","reason":"Ready"}]}},
		{"metadata":{"name":"alone","namespace":"default","uid":"u-3","deletionTimestamp":"2027-01-15T07:59:00Z",
		  "ownerReferences":[{"kind":"MachineSet","name":"gone","controller":true}]},
		 "spec":{"versions":3},"status":{"phase":"Failed","errorMessage":"versions.kubelet is newer",
		  "conditions":"none"}}`)
	out["/apis/kubeone.k8c.io/v1alpha1/hosts"] = list("Host", `
		{"metadata":{"name":"w-1"},"spec":{"address":"192.0.2.1"},
		 "status":{"state":"Joined","claim":{"namespace":"kube-system","name":"workers-a-1","uid":"u-1"}}},
		{"metadata":{"name":"w-2"},"spec":{"address":"192.0.2.2"}}`)
	for name, annotations := range map[string]string{
		"machines.cluster.k8s.io":    `{"kubeone.k8c.io/definitions-revision":"1"}`,
		"machinesets.cluster.k8s.io": `{"other":"1"}`, // of another program
	} {
		out["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name] = `{"kind":"CustomResourceDefinition",
			"apiVersion":"apiextensions.k8s.io/v1",
			"metadata":{"name":"` + name + `","annotations":` + annotations + `}}`
	}
	out["/apis/coordination.k8s.io/v1/namespaces/kubeone-system/leases/kubeone-controller"] = `{
		"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"kubeone-controller"},
		"spec":{"holderIdentity":"ops-1","leaseDurationSeconds":15,
		 "acquireTime":"2027-01-15T07:50:00.000000Z","renewTime":"2027-01-15T07:59:50.000000Z"}}`
	return out
}

// poolOf returns what is read of a cluster's Machines.
func poolOf(t *testing.T, objects map[string]string) (*observed.Pool, *fakeAPI) {
	t.Helper()
	api := newAPI(t, objects)
	r, err := Run(t.Context(), Request{
		Targets: []Target{{ID: "a", Host: through(says(nil, api.secret()), api), ControlPlane: true}}, Now: at,
	})
	if err != nil || r.World.API.Reached != observed.Yes {
		t.Fatalf("%v, %+v", err, r.World.API)
	}
	return r.World.API.Pool, api
}

func TestMachinesAreRead(t *testing.T) {
	t.Parallel()
	want := &observed.Pool{
		Controllers: observed.Yes,
		Deployments: []observed.MachineDeployment{
			{Namespace: "kube-system", Name: "odd", Replicas: 1, Deleting: true},
			{Namespace: "kube-system", Name: "workers", Kubelet: "1.36.3", Replicas: 3, Ready: 1, Updated: 2},
		},
		Machines: []observed.Machine{
			{
				Namespace: "default", Name: "alone", Owner: "MachineSet gone", Phase: "Failed", Deleting: true,
				Error: "versions.kubelet is newer",
			},
			{
				Namespace: "kube-system", Name: "workers-a-1", Owner: "MachineDeployment workers", Provider: "ssh",
				Phase: "Running", Node: "w-1", Host: "w-1", WantedKubelet: "1.36.3", Kubelet: "1.35.4",
			},
			{
				Namespace: "kube-system", Name: "workers-a-2", Owner: "MachineDeployment workers", Provider: "ssh",
				Phase: "Pending", WantedKubelet: "1.36.3", Waits: "PoolEmpty: no host is [2Jfree here",
			},
		},
		Hosts: []observed.PoolHost{
			{Name: "w-1", Address: "192.0.2.1", State: "Joined", Machine: "kube-system/workers-a-1"},
			{Name: "w-2", Address: "192.0.2.2", State: "Free"},
		},
		Sets: 1, Foreign: []string{"machinesets.cluster.k8s.io"},
	}
	got, api := poolOf(t, pooled())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := 19 + len(plugins.Namespaces()); len(api.paths) != want {
		t.Errorf("%d requests, want %d: %q", len(api.paths), want, api.paths)
	}
}

// A user who may create Machines must not be able to hide the cluster or to fill the memory of a probe.
func TestWhatAMachineSaysIsBounded(t *testing.T) {
	t.Parallel()
	var items []string
	for range maxObjects + 3 {
		items = append(items, `{"metadata":{"name":"m","namespace":"n"},"status":{"errorMessage":"x"}}`)
	}
	all := pooled()
	all["/apis/cluster.k8s.io/v1alpha1/machines"] = `{"kind":"MachineList","apiVersion":"cluster.k8s.io/v1alpha1",
		"items":[` + strings.Join(items, ",") + `,{"metadata":{"name":"z","namespace":"n"},
		"status":{"errorMessage":"` + strings.Repeat("x", 3*maxLineBytes) + `"}}]}`
	got, _ := poolOf(t, all)
	if len(got.Machines) != maxObjects || !got.More {
		t.Errorf("%d Machines, more: %t", len(got.Machines), got.More)
	}
	all["/apis/cluster.k8s.io/v1alpha1/machines"] = `{"kind":"MachineList","apiVersion":"cluster.k8s.io/v1alpha1",
		"items":[{"metadata":{"name":"z"},"status":{"errorMessage":"` + strings.Repeat("x", 3*maxLineBytes) + `"}}]}`
	if got, _ = poolOf(t, all); len(got.Machines) != 1 || len(got.Machines[0].Error) != maxLineBytes {
		t.Errorf("%d bytes", len(got.Machines[0].Error))
	}
}

func TestMachineControllersAreDetected(t *testing.T) {
	t.Parallel()
	const lease = "/apis/coordination.k8s.io/v1/namespaces/kubeone-system/leases/kubeone-controller"
	for name, change := range map[string]func(map[string]string){
		"none": func(all map[string]string) { delete(all, lease) },
		"dead": func(all map[string]string) { all[lease] = strings.Replace(all[lease], "07:59:50", "07:58:50", 1) },
		"left": func(all map[string]string) { all[lease] = strings.Replace(all[lease], "ops-1", "", 1) },
	} {
		all := pooled()
		change(all)
		if got, _ := poolOf(t, all); got.Controllers != observed.No {
			t.Errorf("%s: %q", name, got.Controllers)
		}
	}
	all := pooled() // of another program's Machines
	delete(all, "/apis/kubeone.k8c.io/v1alpha1/hosts")
	if got, _ := poolOf(t, all); len(got.Machines) != 3 || len(got.Hosts) != 0 {
		t.Errorf("%+v", got)
	}
}

// A kind that its own webhook makes unreadable is unknown, not absent, and everything else is known.
func TestMachinesThatCannotBeReadHideNothingElse(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/apis/cluster.k8s.io/v1alpha1/machines", "/apis/cluster.k8s.io/v1alpha1/machinesets",
		"/apis/kubeone.k8c.io/v1alpha1/hosts",
	} {
		all := pooled()
		all[path] = "500"
		got, _ := poolOf(t, all)
		if got == nil || !strings.Contains(got.Problem, "conversion webhook failed") || got.Empty() ||
			len(got.Machines) > 0 {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// The credentials for hosts of Machines are compared as they are read, and not kept.
func TestCredentialsOfMachinesAreCompared(t *testing.T) {
	t.Parallel()
	const path, password = "/api/v1/namespaces/kubeone-system/secrets/host-credentials", "aHVudGVyMg=="
	secret := func(data string) string {
		return `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"host-credentials"},"data":` + data + `}`
	}
	none := func(map[string]string) {}
	for name, c := range map[string]struct {
		change func(map[string]string)
		asks   bool
		kept   bool
		want   observed.Tri
	}{
		"not requested": {none, false, false, observed.Unknown},
		"there is none": {none, true, false, observed.No},
		"it has the key": {func(all map[string]string) {
			all[path] = secret(`{"key":"` + password + `"}`)
		}, true, true, observed.Yes},
		"it has nothing": {func(all map[string]string) { all[path] = secret(`{}`) }, true, true, observed.No},
		"there are no Machines": {func(all map[string]string) {
			delete(all, "/apis/cluster.k8s.io/v1alpha1/machines")
		}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := pooled()
			c.change(all)
			api := newAPI(t, all)
			var compared map[string][]byte
			request := Request{
				Targets: []Target{{ID: "a", Host: through(says(nil, api.secret()), api), ControlPlane: true}}, Now: at,
			}
			if c.asks {
				request.Credentials = &CredentialFiles{
					Of: func(string) (string, bool) { return "", false },
					Kept: func(secret map[string][]byte) bool {
						compared = secret
						return string(secret["key"]) == "hunter2"
					},
				}
			}
			r, err := Run(t.Context(), request)
			if err != nil || r.World.API.Reached != observed.Yes || (compared != nil) != c.kept {
				t.Fatalf("%v, %s; compared: %v", err, r.World.API.Problem, compared != nil)
			}
			pool := r.World.API.Pool
			if (pool == nil) != (name == "there are no Machines") || pool != nil && pool.Credentials != c.want {
				t.Errorf("%+v", pool)
			}
			if text, err := json.Marshal(r.World); err != nil || strings.Contains(string(text), "hunter2") ||
				strings.Contains(string(text), password) {
				t.Errorf("it is kept in the world: %v", err)
			}
		})
	}
}

// Controllers probe the API for every Machine, but know their Machines themselves.
func TestControllersDoNotReadMachines(t *testing.T) {
	t.Parallel()
	api := newAPI(t, pooled())
	var access cluster.Access
	h := through(says(nil, api.secret()), api)
	r, err := Run(t.Context(), Request{Targets: []Target{{ID: "a", Host: h, ControlPlane: true}}, Now: at})
	if err != nil {
		t.Fatal(err)
	}
	access, api.paths = *r.Access, nil
	got, err := API(t.Context(), access, at())
	if err != nil || got.World.API.Pool != nil {
		t.Errorf("%v, %+v", err, got.World.API.Pool)
	}
	for _, path := range api.paths {
		if strings.Contains(path, "machine") || strings.Contains(path, "hosts") {
			t.Errorf("it asked for %s", path)
		}
	}
}
