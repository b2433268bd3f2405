package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/rollout"
)

// now is the time in these tests.
func now() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func then(seconds int) time.Time { return now().Add(-time.Duration(seconds) * time.Second) }

const templateYAML = `
metadata: {labels: {pool: a}, annotations: {team: storage}}
spec:
  metadata: {labels: {disk: fast}}
  taints: [{key: only, value: batch, effect: NoSchedule}]
  providerSpec: {value: {cloudProvider: ssh, cloudProviderSpec: {zone: a, sizes: [1, 2]}}}
  versions: {kubelet: 1.36.3, containerRuntime: {name: containerd, version: 2.1.4}}
`

// template returns the test template with some text replaced.
func template(t *testing.T, exchanged ...string) v1alpha1.MachineTemplateSpec {
	t.Helper()
	var out v1alpha1.MachineTemplateSpec
	if err := yaml.UnmarshalStrict([]byte(strings.NewReplacer(exchanged...).Replace(templateYAML)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTemplatesThatMeanTheSame(t *testing.T) {
	t.Parallel()
	base, err := newTemplate(template(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		exchanged         []string
		machine, metadata bool // whether these are equal
	}{
		"the same":              {nil, true, true},
		"a version with a v":    {[]string{"1.36.3", "v1.36.3", "2.1.4", "v2.1.4"}, true, true},
		"another order of keys": {[]string{"{zone: a, sizes: [1, 2]}", "{sizes: [1, 2], zone: a}"}, true, true},
		"what is empty": {[]string{"zone: a,", "zone: a, bastion: '', labels: {}, keys: [], port: null,"}, true,
			true},
		"the control plane's version": {[]string{"kubelet: 1.36.3", "kubelet: 1.36.3, controlPlane: 1.36.3"}, true,
			true},
		"another kubelet":           {[]string{"1.36.3", "1.35.4"}, false, true},
		"another container runtime": {[]string{"2.1.4", "2.0.5"}, false, true},
		"another zone":              {[]string{"zone: a", "zone: b"}, false, true},
		"another order of a list":   {[]string{"[1, 2]", "[2, 1]"}, false, true},
		"zero is not empty":         {[]string{"zone: a", "zone: a, disks: 0, swap: false"}, false, true},
		"another provider":          {[]string{"cloudProvider: ssh", "cloudProvider: fake"}, false, true},
		"another label":             {[]string{"pool: a", "pool: b"}, true, false},
		"another label of the Node": {[]string{"fast", "slow"}, true, false},
		"another taint":             {[]string{"batch", "web"}, true, false},
		"the hash of the template":  {[]string{"pool: a", "pool: a, machine-template-hash: x"}, true, true},
	} {
		got, err := newTemplate(template(t, c.exchanged...))
		if err != nil {
			t.Fatal(err)
		}
		if got.Machine == base.Machine != c.machine || got.Metadata == base.Metadata != c.metadata {
			t.Errorf("%s: %t, %t, want %t, %t\n%s\n%s", name, got.Machine == base.Machine,
				got.Metadata == base.Metadata, c.machine, c.metadata, got.Machine, got.Metadata)
		}
	}
}

// objects returns a deployment, two sets and a machine of each. The first set has the deployment's template.
func objects(t *testing.T) (*v1alpha1.MachineDeployment, []v1alpha1.MachineSet, []v1alpha1.Machine) {
	t.Helper()
	md := &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: "default", UID: "md"},
		Spec:       v1alpha1.MachineDeploymentSpec{Template: template(t)},
	}
	set := func(name string, revision int, of v1alpha1.MachineTemplateSpec) v1alpha1.MachineSet {
		return v1alpha1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.NewTime(then(500)),
				Annotations:     map[string]string{v1alpha1.RevisionAnnotation: fmt.Sprint(revision)},
				OwnerReferences: []metav1.OwnerReference{owner("MachineDeployment", "pool", "md")},
			},
			Spec: v1alpha1.MachineSetSpec{Template: of},
		}
	}
	sets := []v1alpha1.MachineSet{set("new", 2, template(t)), set("old", 1, template(t, "1.36.3", "1.35.4"))}
	return md, sets, []v1alpha1.Machine{aMachine("m1", &sets[0]), aMachine("m2", &sets[1])}
}

func owner(kind, name, uid string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes,
	}
}

// aMachine returns a machine of the set that has been ready for 300 seconds.
func aMachine(name string, of *v1alpha1.MachineSet) v1alpha1.Machine {
	m := v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", Generation: 1, CreationTimestamp: metav1.NewTime(then(400)),
			Labels:          map[string]string{"pool": "a", "others": "too"},
			Annotations:     map[string]string{"team": "storage"},
			OwnerReferences: []metav1.OwnerReference{owner("MachineSet", of.Name, string(of.UID))},
		},
		Spec: of.Spec.Template.Spec,
	}
	m.Annotations[v1alpha1.AppliedMetadataAnnotation] = MetadataHash(of.Spec.Template)
	m.Status.NodeRef, m.Status.ObservedGeneration = reference(name), 1
	condition(&m, ConditionReady, metav1.ConditionTrue, 300)
	return m
}

func TestFamilyOfADeployment(t *testing.T) {
	t.Parallel()
	md, sets, machines := objects(t)
	strange := aMachine("strange", &sets[0])
	strange.OwnerReferences[0].UID = "somebody"
	free := aMachine("free", &sets[0])
	free.OwnerReferences = nil
	other := sets[0]
	other.Name, other.UID, other.OwnerReferences = "other", "other", nil
	asked := 0
	change := func(from, to v1alpha1.MachineSpec) rollout.Change {
		asked++
		if from.Versions.Kubelet != "1.35.4" || to.Versions.Kubelet != "1.36.3" {
			t.Errorf("asked of %s to %s", from.Versions.Kubelet, to.Versions.Kubelet)
		}
		return rollout.InPlace
	}
	got, ask, err := NewDeploymentFamily(md, append(sets, other), append(machines, strange, free), change, now())
	if err != nil || !ask.IsZero() || asked != 1 {
		t.Fatalf("%v, asked again at %v, %d questions", err, ask, asked)
	}
	if got.Replicas != 1 || got.MaxUnhealthy != 1 || got.Rollout.MaxSurge != 1 || got.Rollout.MaxUnavailable != 0 ||
		got.Rollout.ProgressDeadline != 10*time.Minute || got.Rollout.RevisionHistoryLimit != 1 {
		t.Errorf("other defaults: %+v %+v", got, got.Rollout)
	}
	want := []rollout.Machine{
		{Name: "m1", Set: "new", Created: then(400), ReadySince: then(300), Metadata: got.Sets[0].Template.Metadata},
		{Name: "m2", Set: "old", Created: then(400), ReadySince: then(300), Metadata: got.Sets[1].Template.Metadata},
	}
	if diff := cmp.Diff(want, got.Machines); diff != "" {
		t.Error(diff)
	}
	wantSets := []rollout.Set{
		{Name: "new", Revision: 2, Replicas: 1, Created: then(500), Template: got.Rollout.Template},
		{Name: "old", Revision: 1, Replicas: 1, Created: then(500), Change: rollout.InPlace},
	}
	texts := cmpopts.IgnoreFields(rollout.Template{}, "Machine", "Metadata")
	if diff := cmp.Diff(wantSets, got.Sets, texts); diff != "" {
		t.Error(diff)
	}
	// There is one extra machine, so one can be changed without a gap.
	var writes []string
	for _, w := range rollout.PlanFamily(got).Writes {
		writes = append(writes, w.String())
	}
	decided := []string{"move machine m2 to new: in place", "scale set new to 2", "scale set old to 0"}
	if diff := cmp.Diff(decided, writes); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataOfMachines(t *testing.T) {
	t.Parallel()
	_, sets, machines := objects(t)
	for name, c := range map[string]struct {
		change func(*v1alpha1.Machine)
		same   bool
	}{
		"as it is":         {func(*v1alpha1.Machine) {}, true},
		"labels of others": {func(m *v1alpha1.Machine) { m.Labels["more"] = "of others" }, true},
		"named to go first": {func(m *v1alpha1.Machine) {
			m.Annotations[v1alpha1.DeleteFirstAnnotation] = ""
		}, true},
		"a label is gone":    {func(m *v1alpha1.Machine) { delete(m.Labels, "pool") }, false},
		"a label is another": {func(m *v1alpha1.Machine) { m.Labels["pool"] = "b" }, false},
		"a taint is gone":    {func(m *v1alpha1.Machine) { m.Spec.Taints = nil }, false},
		"a label of its Node": {func(m *v1alpha1.Machine) {
			m.Spec.ObjectMeta.Labels = map[string]string{"disk": "slow"}
		}, false},
		"of a former template": {func(m *v1alpha1.Machine) {
			m.Annotations[v1alpha1.AppliedMetadataAnnotation] = "x"
		}, false},
		"an annotation is gone":  {func(m *v1alpha1.Machine) { delete(m.Annotations, "team") }, false},
		"nobody has labelled it": {func(m *v1alpha1.Machine) { m.Labels, m.Annotations = nil, nil }, false},
	} {
		m := machines[0].DeepCopy()
		c.change(m)
		if got := hasMetadata(m, sets[0].Spec.Template); got != c.same {
			t.Errorf("%s: %t, want %t", name, got, c.same)
		}
	}
}

func TestWhatIsUnhealthy(t *testing.T) {
	t.Parallel()
	reason := func(r v1alpha1.MachineStatusError) func(*v1alpha1.Machine) {
		return func(m *v1alpha1.Machine) { m.Status.ErrorReason = &r }
	}
	notReady := func(seconds int, status metav1.ConditionStatus) func(*v1alpha1.Machine) {
		return func(m *v1alpha1.Machine) { condition(m, ConditionReady, status, seconds) }
	}
	starting := func(seconds int) func(*v1alpha1.Machine) {
		return func(m *v1alpha1.Machine) {
			m.Status.NodeRef, m.Status.Conditions = nil, nil
			condition(m, ConditionAllocated, metav1.ConditionTrue, seconds)
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Machine)
		is     bool
		asked  int // seconds until the next check; 0 is never
	}{
		"ready":              {func(*v1alpha1.Machine) {}, false, 0},
		"not ready":          {notReady(100, metav1.ConditionFalse), false, 200},
		"not ready for long": {notReady(300, metav1.ConditionFalse), true, 0},
		"nobody knows":       {notReady(100, metav1.ConditionUnknown), false, 200},
		"nobody knows still": {notReady(301, metav1.ConditionUnknown), true, 0},
		"begins":             {starting(200), false, 1000},
		"does not come up":   {starting(1200), true, 0},
		"has no host":        {func(m *v1alpha1.Machine) { m.Status = v1alpha1.MachineStatus{} }, false, 0},
		"cannot be":          {reason(v1alpha1.InvalidConfiguration), false, 0},
		"cannot be changed":  {reason(v1alpha1.UnsupportedChange), false, 0},
		"was not made":       {reason(v1alpha1.CreateError), true, 0},
		"failed to change":   {reason(v1alpha1.UpdateError), true, 0},
		"changes, for long": {func(m *v1alpha1.Machine) {
			notReady(900, metav1.ConditionFalse)(m)
			condition(m, ConditionUpdating, metav1.ConditionTrue, 950)
		}, false, 300},
		"dies of a change": {func(m *v1alpha1.Machine) {
			notReady(1200, metav1.ConditionUnknown)(m)
			condition(m, ConditionUpdating, metav1.ConditionTrue, 1300)
		}, true, 0},
		"was not ready before the change": {func(m *v1alpha1.Machine) {
			notReady(5000, metav1.ConditionUnknown)(m)
			condition(m, ConditionUpdating, metav1.ConditionTrue, 1100)
		}, false, 100},
		"waits with its change": {func(m *v1alpha1.Machine) {
			condition(m, ConditionUpdating, metav1.ConditionTrue, 9000)
		}, false, 0},
		"never said anything": {func(m *v1alpha1.Machine) { m.Status.Conditions = nil }, false, 0},
	} {
		_, sets, machines := objects(t)
		c.change(&machines[0])
		family, ask, err := NewSetFamily(&sets[0], machines, now())
		if err != nil || len(family.Machines) != 1 {
			t.Fatalf("%s: %v, %d machines", name, err, len(family.Machines))
		}
		in := 0
		if !ask.IsZero() {
			in = int(ask.Sub(now()).Seconds())
		}
		if family.Machines[0].Unhealthy != c.is || in != c.asked {
			t.Errorf("%s: %t, asked again in %d s, want %t, %d", name, family.Machines[0].Unhealthy, in, c.is, c.asked)
		}
	}
}

// A lost Machine counts against maxUnhealthy at once. New, changed and deleted Machines are expected not to be ready.
func TestWhatIsLost(t *testing.T) {
	t.Parallel()
	silent := func(m *v1alpha1.Machine) {
		condition(m, ConditionUpdating, metav1.ConditionFalse, 4000)
		condition(m, ConditionReady, metav1.ConditionUnknown, 5)
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Machine)
		is     bool
	}{
		"ready":  {func(m *v1alpha1.Machine) { condition(m, ConditionUpdating, metav1.ConditionFalse, 4000) }, false},
		"silent": {silent, true},
		"new":    {func(m *v1alpha1.Machine) { condition(m, ConditionReady, metav1.ConditionFalse, 5) }, false},
		"changed": {func(m *v1alpha1.Machine) {
			silent(m)
			condition(m, ConditionUpdating, metav1.ConditionTrue, 10)
		}, false},
		"deleted": {func(m *v1alpha1.Machine) {
			silent(m)
			gone := metav1.NewTime(then(10))
			m.DeletionTimestamp = &gone
		}, false},
	} {
		_, sets, machines := objects(t)
		c.change(&machines[0])
		family, _, err := NewSetFamily(&sets[0], machines, now())
		if err != nil || len(family.Machines) != 1 || family.Machines[0].Lost != c.is {
			t.Errorf("%s: %v, %+v, want lost %t", name, err, family.Machines, c.is)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	text := func(s string) *intstr.IntOrString {
		v := intstr.Parse(s)
		return &v
	}
	for _, c := range []struct {
		surge, unavailable, unhealthy          string
		replicas                               int32
		wantSurge, wantUnavailable, wantBroken int
	}{
		{"1", "0", "40%", 3, 1, 0, 1},
		{"25%", "25%", "40%", 10, 3, 2, 4},
		{"10%", "10%", "10%", 4, 1, 0, 1}, // the surge is rounded up, unavailable down; maxUnhealthy is at least one
		{"0", "10%", "0", 4, 0, 1, 0},     // otherwise the rollout could not begin
		{"3", "2", "2", 1, 3, 2, 2},
	} {
		md, _, _ := objects(t)
		md.Spec.Replicas = &c.replicas
		md.Spec.Strategy = &v1alpha1.MachineDeploymentStrategy{RollingUpdate: &v1alpha1.MachineRollingUpdateDeployment{
			MaxSurge: text(c.surge), MaxUnavailable: text(c.unavailable),
		}}
		md.Spec.HealthCheck = &v1alpha1.MachineHealthCheck{MaxUnhealthy: text(c.unhealthy)}
		f, _, err := NewDeploymentFamily(md, nil, nil, nil, now())
		if err != nil {
			t.Fatal(err)
		}
		r := f.Rollout
		if r.MaxSurge != c.wantSurge || r.MaxUnavailable != c.wantUnavailable || f.MaxUnhealthy != c.wantBroken {
			t.Errorf("%+v: surge %d, unavailable %d, unhealthy %d", c, r.MaxSurge, r.MaxUnavailable, f.MaxUnhealthy)
		}
	}
}
