// Package resources renders Kubernetes objects from embedded YAML. Rendering is pure: equal values give equal
// objects.
package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kubeone/internal/model/observed"
)

// Object is one object in the API's form.
type Object = map[string]any

// AddonLabel is on every object of a custom addon. Its value is the addon's name.
const AddonLabel = "kubeone.io/addon"

// Identify returns the identity of an object of an addon.
func Identify(o *unstructured.Unstructured) observed.AddonObject {
	return observed.AddonObject{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}

// Workload names a DaemonSet, a Deployment or a StatefulSet.
type Workload struct {
	Kind      string // DaemonSet, Deployment or StatefulSet
	Namespace string
	Name      string
}

// String returns the workload in kubectl's form with its namespace: "kube-system/DaemonSet/kube-proxy".
func (w Workload) String() string { return w.Namespace + "/" + w.Kind + "/" + w.Name }

// Render fills the values into a template of YAML documents and returns the objects in order. In a template, quote
// turns any text into one YAML scalar; a missing value is an error.
func Render(text string, values any) ([]Object, error) {
	parsed, err := template.New("objects").Option("missingkey=error").Funcs(template.FuncMap{
		"quote": quoteYAML,
	}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template of objects: %w", err)
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, values); err != nil {
		return nil, fmt.Errorf("template of objects: %w", err)
	}
	var out []Object
	for n, document := range strings.Split("\n"+filled.String(), "\n---\n") {
		var object Object
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("document %d: %w", n+1, err)
		}
		if len(object) > 0 {
			out = append(out, object)
		}
	}
	return out, nil
}

// quoteYAML returns the text as a JSON string, which is a YAML scalar on one line.
func quoteYAML(text string) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}
