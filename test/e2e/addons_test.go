//go:build e2e && long

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestAddons keeps addons of a folder in a cluster: with templates, custom resources and a workload. Objects that leave
// an addon are deleted, those that others made are not, and edits are found and undone.
func TestAddons(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "addons", ControlPlanes: 1, Workers: 1})
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"addons are applied, killed once in each", addonsApplied},
		part{"edited objects are found and undone", addonsEdited},
		part{"objects that leave an addon are deleted", addonsShrink},
		part{"an object of others is not taken over", foreignObject},
		part{"mistakes in files are refused with their place", addonMistakes},
		part{"addons that are no longer declared are removed", addonsRemoved},
	)
}

// The addon web has a Deployment with a parameter; widgets has a custom kind and an object of it.
const (
	webAddon = `apiVersion: v1
kind: Namespace
metadata: {name: addon-web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: addon-web}
spec:
  replicas: {{ .Params.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: ` + operator.AgnhostImage + `
        imagePullPolicy: IfNotPresent
        args: [netexec]
`
	webConfig = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: addon-web}
data: {version: "{{ .Config.Versions.Kubernetes }}", cluster: "{{ .CCMClusterName }}"}
`
	webSecret = `apiVersion: v1
kind: Secret
metadata: {name: token, namespace: addon-web}
stringData: {token: "{{ .Params.token }}"}
`
	widgetsAddon = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	widget = `apiVersion: example.com/v1
kind: Widget
metadata: {name: first, namespace: addon-web}
spec: {rule: '{{ $labels.pod }}'}
`
	addonToken = "t0p-s3cret-of-the-addon"
)

// writeAddons replaces the addons' folder by these files.
func (s *scenario) writeAddons(files map[string]string) {
	s.Helper()
	dir := filepath.Join(filepath.Dir(s.Manifest), "addons")
	s.must(os.RemoveAll(dir))
	for name, text := range files {
		path := filepath.Join(dir, name)
		s.must(os.MkdirAll(filepath.Dir(path), 0o700))
		s.must(os.WriteFile(path, []byte(text), 0o600))
	}
}

// declareAddons writes the manifest with this list of addons.
func (s *scenario) declareAddons(list ...map[string]any) {
	s.Helper()
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		entries := make([]any, 0, len(list))
		for _, entry := range list {
			entries = append(entries, entry)
		}
		all["addons"] = map[string]any{"path": "./addons", "addons": entries}
	})))
}

func webEntry(replicas string) map[string]any {
	return map[string]any{"name": "web", "params": map[string]any{"replicas": replicas, "token": addonToken}}
}

var widgetsEntry = map[string]any{"name": "widgets", "disableTemplating": true}

func addonFiles() map[string]string {
	return map[string]string{
		"web/web.yaml": webAddon, "web/config.yaml": webConfig, "web/secret.yaml": webSecret,
		"widgets/crd.yaml": widgetsAddon, "widgets/widget.yaml": widget,
	}
}

func addonsApplied(s *scenario) {
	s.must(s.ImportAgnhost(s.Context(), s.Machines()))
	s.writeAddons(addonFiles())
	s.declareAddons(webEntry("2"), widgetsEntry)
	s.runCommand(2, []string{"plan"}, "apply addon web", "apply addon widgets", "not in the cluster")
	for _, name := range []string{"addon/web", "addon/widgets"} {
		i, err := s.ApplyInterrupted(s.Context(), operator.Failure{
			Way: operator.Kill, Moment: operator.Moment{Event: apply.StepStarted, Step: name},
		})
		s.must(err)
		if len(i.At) != 1 || i.Status != -1 {
			s.Errorf("want the run killed at %s\n%s", name, i.Result)
		}
	}
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.checkEqual("replicas", "2", s.runKubectl("-n", "addon-web", "get", "deployment", "web", "-o",
		"jsonpath={.status.availableReplicas}"))
	s.checkEqual("the rule of the widget", "{{ $labels.pod }}",
		s.runKubectl("-n", "addon-web", "get", "widget", "first", "-o", "jsonpath={.spec.rule}"))
	s.checkEqual("the version in the configuration", newest,
		s.runKubectl("-n", "addon-web", "get", "configmap", "settings", "-o", "jsonpath={.data.version}"))
	s.nothingToDo()
	s.runCommand(0, []string{"addons", "list"}, "web", "widgets", "folder", "applied")
}

func addonsEdited(s *scenario) {
	s.runKubectl("-n", "addon-web", "scale", "deployment", "web", "--replicas", "1")
	s.runKubectl("-n", "addon-web", "delete", "configmap", "settings")
	s.runKubectl("-n", "addon-web", "annotate", "widget", "first", "somebodys=own")
	says := []string{"Deployment addon-web/web differs in spec.replicas", "ConfigMap addon-web/settings is missing"}
	s.runCommand(0, []string{"addons", "list"}, append(says, "changed")...)
	s.runCommand(3, []string{"status"}, says...)
	r := s.runCommand(2, []string{"plan", "--diff"}, append(says, "replicas: 2")...)
	if strings.Contains(r.Text(), addonToken) {
		s.Errorf("the plan contains a secret:\n%s", r.Text())
	}
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.checkEqual("the annotation of others", "own", s.runKubectl("-n", "addon-web", "get", "widget", "first", "-o",
		"jsonpath={.metadata.annotations.somebodys}"))
	s.nothingToDo()
}

// addonsShrink takes an object out of web and moves another one from web to widgets.
func addonsShrink(s *scenario) {
	dir := filepath.Join(filepath.Dir(s.Manifest), "addons")
	s.must(os.Remove(filepath.Join(dir, "web/config.yaml")))
	s.must(os.Remove(filepath.Join(dir, "web/secret.yaml")))
	s.must(os.WriteFile(filepath.Join(dir, "widgets/secret.yaml"),
		[]byte(strings.ReplaceAll(webSecret, "{{ .Params.token }}", "moved")), 0o600))
	uid := []string{"-n", "addon-web", "get", "secret", "token", "-o", "jsonpath={.metadata.uid}"}
	before := s.runKubectl(uid...)
	s.runCommand(2, []string{"plan"}, "delete ConfigMap addon-web/settings")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	if left, err := s.Kube(s.Context(), "-n", "addon-web", "get", "configmap", "settings"); err == nil {
		s.Errorf("it is left: %s", left)
	}
	s.checkEqual("the Secret that moved", before, s.runKubectl(uid...))
	s.nothingToDo()
}

// foreignObject adds an object to the addon that exists with another value. It is taken over only with the label.
func foreignObject(s *scenario) {
	s.runKubectl("-n", "addon-web", "create", "configmap", "theirs", "--from-literal=a=1")
	path := filepath.Join(filepath.Dir(s.Manifest), "addons/web/theirs.yaml")
	s.must(os.WriteFile(path, []byte("apiVersion: v1\nkind: ConfigMap\n"+
		"metadata: {name: theirs, namespace: addon-web}\ndata: {a: '2'}\n"), 0o600))
	s.runCommand(12, []string{"apply", "-y"}, "another program or person has changed it", ".data.a",
		"label it kubeone.io/addon=web")
	s.runKubectl("-n", "addon-web", "label", "configmap", "theirs", "kubeone.io/addon=web")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.checkEqual("the value", "2",
		s.runKubectl("-n", "addon-web", "get", "configmap", "theirs", "-o", "jsonpath={.data.a}"))
	// One that has no other value is part of the addon, and stays when the addon goes.
	s.runKubectl("-n", "addon-web", "create", "configmap", "shared", "--from-literal=a=1")
	s.must(os.WriteFile(path, []byte("apiVersion: v1\nkind: ConfigMap\n"+
		"metadata: {name: shared, namespace: addon-web}\ndata: {b: '2'}\n"), 0o600))
	s.runCommand(0, []string{"apply", "-y"}, "delete ConfigMap addon-web/theirs",
		"Done. The cluster matches the manifest.")
	s.nothingToDo()
}

func addonMistakes(s *scenario) {
	dir := filepath.Join(filepath.Dir(s.Manifest), "addons")
	bad := filepath.Join(dir, "web/bad.yaml")
	for text, says := range map[string]string{
		"a: 1\nb: {{ nope }}\n": `addons/web/bad.yaml:2: error: addons: function "nope" not defined`,
		"kind: Pod\n":           "addons/web/bad.yaml: error: addons: document 1: apiVersion is missing",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: addon-web}\n": "the Secret addon-web/token is " +
			"also in addon",
	} {
		s.must(os.WriteFile(bad, []byte(text), 0o600))
		s.runCommand(15, []string{"plan"}, says)
	}
	s.must(os.WriteFile(bad, []byte("apiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: a}\n"), 0o600))
	s.runCommand(12, []string{"apply", "-y"}, "nowhere.example.com/v1, Kind=Thing")
	s.must(os.Remove(bad))
	crd := filepath.Join(dir, "widgets/crd.yaml")
	s.must(os.WriteFile(crd, []byte(strings.Replace(widgetsAddon, "name: v1\n", "name: v2\n", 1)), 0o600))
	s.runCommand(12, []string{"apply", "-y"}, "CustomResourceDefinition", "widgets.example.com", "status.storedVersions")
	s.must(os.WriteFile(crd, []byte(widgetsAddon), 0o600))
	s.nothingToDo()
}

// addonsRemoved takes one addon out of the folder, and then has the other one deleted with everything it created.
func addonsRemoved(s *scenario) {
	s.must(os.RemoveAll(filepath.Join(filepath.Dir(s.Manifest), "addons/widgets")))
	s.declareAddons(webEntry("1"))
	s.runCommand(0, []string{"addons", "list"}, "to be removed")
	s.runCommand(2, []string{"plan"}, "remove addon widgets", "it is no longer in the manifest",
		"delete Widget addon-web/first", "keep CustomResourceDefinition widgets.example.com")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.runKubectl("get", "crd", "widgets.example.com")
	s.checkEqual("widgets", "", s.runKubectl("-n", "addon-web", "get", "widgets", "-o", "name"))
	s.nothingToDo()
	s.declareAddons(map[string]any{"name": "web", "delete": true})
	s.runCommand(2, []string{"plan"}, "the manifest deletes it", "delete Namespace addon-web")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.runKubectl("wait", "--for=delete", "namespace/addon-web", "--timeout=120s")
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}
