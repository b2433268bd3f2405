package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

func addonObject(kind, namespace, name string) observed.AddonObject {
	return observed.AddonObject{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name}
}

// withCustomAddons gives the cluster two custom addons, ingress before alerts, and one that the manifest no longer has.
func withCustomAddons(in decide.Input) decide.Input {
	foreign := addonObject("ConfigMap", "web", "theirs")
	foreign.Foreign = true
	in.Addons["ingress"], in.Addons["alerts"] = "ingress-2", "alerts-1"
	in.CustomAddons, in.KnowsAddons = []string{"ingress", "alerts"}, true
	in.AddonObjects = map[string][]observed.AddonObject{
		"ingress": {addonObject("ConfigMap", "web", "stays")},
		"alerts":  {addonObject("Secret", "web", "moved")},
	}
	in.Is.API.Addons["ingress"], in.Is.API.Addons["old"] = "ingress-1", "old-1"
	in.Is.API.Inventories = map[string]observed.Inventory{
		"ingress": {Objects: []observed.AddonObject{
			addonObject("Namespace", "", "web"), addonObject("ConfigMap", "web", "stays"),
			addonObject("ConfigMap", "web", "leaves"), addonObject("Secret", "web", "moved"), foreign,
		}},
		"old": {Objects: []observed.AddonObject{
			addonObject("CustomResourceDefinition", "", "olds.example.com"), addonObject("Pod", "web", "old"), foreign,
		}},
	}
	return in
}

func stepByID(t *testing.T, p Plan, id string) Step {
	t.Helper()
	for _, s := range p.Steps {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no step %s in\n%s", id, planText(p))
	return Step{}
}

func TestCustomAddonsDeleteWhatLeavesThem(t *testing.T) {
	t.Parallel()
	p, _ := Build(Input{Decide: withCustomAddons(healthyCluster(1, 0))})
	ingress := stepByID(t, p, "addon/ingress")
	if diff := cmp.Diff([]string{"delete ConfigMap web/leaves", "keep Namespace web, which others may use"},
		ingress.Changes); diff != "" {
		t.Error(diff)
	}
	deleted := step.ParamsOf[step.ApplyAddonParams](ingress.Intent).Delete
	if diff := cmp.Diff([]observed.AddonObject{addonObject("ConfigMap", "web", "leaves")}, deleted); diff != "" {
		t.Error(diff)
	}
	alerts := stepByID(t, p, "addon/alerts")
	if !strings.Contains(strings.Join(alerts.Needs, " "), "addon/ingress") || alerts.Action != Create {
		t.Errorf("needs %v, %s", alerts.Needs, alerts.Action)
	}
	if needs := strings.Join(stepByID(t, p, "await-workloads").Needs, " "); !strings.Contains(needs, "addon/alerts") {
		t.Errorf("the wait needs %s", needs)
	}
}

func TestUndeclaredAddonsKeepWhatOthersMayUse(t *testing.T) {
	t.Parallel()
	in := withCustomAddons(healthyCluster(1, 0))
	p, _ := Build(Input{Decide: in})
	removed := stepByID(t, p, "remove-addon/old")
	want := []string{"delete Pod web/old", "keep CustomResourceDefinition olds.example.com, which others may use"}
	if diff := cmp.Diff(want, removed.Changes); diff != "" || removed.Reason != "it is no longer in the manifest" {
		t.Errorf("%s: %s", removed.Reason, diff)
	}
	in.DeletedAddons = []string{"old"}
	p, _ = Build(Input{Decide: in})
	removed = stepByID(t, p, "remove-addon/old")
	want = []string{"delete CustomResourceDefinition olds.example.com", "delete Pod web/old"}
	if diff := cmp.Diff(want, removed.Changes); diff != "" || removed.Reason != "the manifest deletes it" {
		t.Errorf("%s: %s", removed.Reason, diff)
	}
}

// A new cluster gets custom addons after those that Nodes need.
func TestCustomAddonsOfANewCluster(t *testing.T) {
	t.Parallel()
	in := bareCluster(1, 1)
	in.Addons["ingress"], in.CustomAddons, in.KnowsAddons = "ingress-1", []string{"ingress"}, true
	p, _ := Build(Input{Decide: in})
	needs := strings.Join(stepByID(t, p, "addon/ingress").Needs, " ")
	if !strings.Contains(needs, "addon/flannel") || !strings.Contains(needs, "init/cp-1") {
		t.Errorf("needs %s", needs)
	}
	for _, s := range p.Steps {
		if s.Intent.Kind == step.NodeReady && strings.Contains(strings.Join(s.Needs, " "), "addon/ingress") {
			t.Errorf("%s waits for a custom addon", s.ID)
		}
	}
}
