package ssa

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// appliedObjects are objects of the kinds that addons have most, with lists of all sorts.
func appliedObjects() []string {
	return []string{`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {note: "1"}}
    spec:
      nodeSelector: {disk: fast}
      tolerations: [{key: dedicated, operator: Exists}, {key: other, effect: NoSchedule}]
      containers:
      - {name: main, image: "web:1", args: [--port, "80"],
         ports: [{containerPort: 80}, {containerPort: 443, protocol: TCP}],
         resources: {limits: {memory: 64Mi, cpu: "1"}}, env: [{name: A, value: "1"}, {name: B, value: "2"}]}
      - {name: side, image: "side:1", volumeMounts: [{name: work, mountPath: /work}]}
      volumes: [{name: work, emptyDir: {}}, {name: config, configMap: {name: web, items: [{key: a, path: b}]}}]
`, `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]}
`, `
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop, finalizers: [shop.example/keep, shop.example/late]}
data: {a: "1", b: "2"}
`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods, nodes], verbs: [get]}, {nonResourceURLs: [/metrics], verbs: [get]}]
`}
}

// setByServer are fields that others set in the live object.
func setByServer() map[string]string {
	return map[string]string{
		"Deployment": `
spec:
  progressDeadlineSeconds: 600
  template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: main, terminationMessagePath: /dev/log}]}}
`,
		"Service": `spec: {clusterIP: 10.96.0.7, sessionAffinity: None}`,
	}
}

func decodeObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return o
}

// liveWorld is an object with the fields of its managers, as an API server keeps it.
type liveWorld struct {
	managedfieldstest.TestFieldManager
}

func applyAsServer(t *testing.T, o *unstructured.Unstructured) liveWorld {
	t.Helper()
	w := liveWorld{managedfieldstest.NewTestFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme),
		o.GroupVersionKind())}
	if err := w.Apply(o.DeepCopy(), "kubeone", true); err != nil {
		t.Fatal(err)
	}
	fields, ok := setByServer()[o.GetKind()]
	if !ok {
		return w
	}
	others := decodeObject(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s", o.GetAPIVersion(),
		o.GetKind(), o.GetName(), fields))
	if err := w.Apply(others, "defaults", true); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w liveWorld) object() *unstructured.Unstructured { return w.Live().(*unstructured.Unstructured) }

// An unchanged object needs no dry run, whatever others have set in it.
func TestAppliedObjectIsRecognized(t *testing.T) {
	t.Parallel()
	for _, text := range appliedObjects() {
		o := decodeObject(t, text)
		live := applyAsServer(t, o).object()
		if !hasApplied(live, o, "kubeone") {
			t.Errorf("%s: an object that was applied seems to differ", o.GetKind())
		}
		if hasApplied(live, o, "helm") {
			t.Errorf("%s: another manager seems to have applied it", o.GetKind())
		}
		other := o.DeepCopy()
		other.SetAPIVersion("other/v1")
		if hasApplied(live, other, "kubeone") {
			t.Errorf("%s: another version seems to have been applied", o.GetKind())
		}
	}
}

// If hasApplied reports that nothing would change, an apply changes nothing: in 1,500 objects with up to three changes
// by the operator, in what is applied, and by others, in the live object.
func TestHasAppliedAgreesWithApply(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	recognized, changed := 0, 0
	for n := range 1500 {
		text := appliedObjects()[n%len(appliedObjects())]
		o := decodeObject(t, text)
		world := applyAsServer(t, o)
		for range random.IntN(3) {
			edited := world.object()
			changeObject(random, edited)
			_ = world.Update(edited, "editor") // it may be invalid; then the object stays
		}
		for range random.IntN(3) {
			changeObject(random, o)
		}
		before := world.object()
		same := hasApplied(before, o, "kubeone")
		if err := world.Apply(o.DeepCopy(), "kubeone", true); err != nil {
			continue
		}
		after := world.object()
		before.SetManagedFields(nil)
		after.SetManagedFields(nil)
		diff := cmp.Diff(before.Object, after.Object)
		switch {
		case same && diff != "":
			t.Fatalf("%d: hasApplied reports no change, an apply makes one:\n%s", n, diff)
		case same:
			recognized++
		case diff != "":
			changed++
		}
	}
	if recognized < 150 || changed < 150 {
		t.Errorf("%d objects recognized as unchanged, %d changed: the test shows too little", recognized, changed)
	}
}

// changeObject changes, removes, adds or moves one field of an object, which stays the same object.
func changeObject(random *rand.Rand, o *unstructured.Unstructured) {
	name, namespace := o.GetName(), o.GetNamespace()
	changeSomething(random, o.Object)
	o.SetName(name)
	o.SetNamespace(namespace)
}

func changeSomething(random *rand.Rand, at map[string]any) {
	keys := make([]string, 0, len(at))
	for key := range at {
		if key != "apiVersion" && key != "kind" && key != "managedFields" {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		at["added"] = "new"
		return
	}
	key := keys[random.IntN(len(keys))]
	switch field := at[key].(type) {
	case map[string]any:
		if random.IntN(6) > 0 {
			changeSomething(random, field)
			return
		}
	case []any:
		if len(field) > 0 {
			at[key] = changeList(random, field)
			return
		}
	case string:
		at[key] = field + "x"
	case int64:
		at[key] = field + 1
	}
	if random.IntN(2) == 0 {
		delete(at, key)
	}
}

func changeList(random *rand.Rand, list []any) []any {
	i := random.IntN(len(list))
	switch random.IntN(4) {
	case 0:
		return append(list[:i:i], list[i+1:]...)
	case 1:
		list[0], list[i] = list[i], list[0]
		return list
	}
	switch item := list[i].(type) {
	case map[string]any:
		changeSomething(random, item)
	case string:
		list[i] = item + "x"
	}
	return list
}
