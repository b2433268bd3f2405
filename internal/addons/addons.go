// Package addons renders what runs inside a cluster besides what kubeadm deploys: so far the network plugin. Rendering
// is pure, so that a plan can compare an addon's digest with that of the addon as last applied.
package addons

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/desired"
)

// Addon is the objects of one addon, and what must be running when it is there.
type Addon struct {
	Name string
	// Digest is the sha256 (hex) of the objects in their order, each as JSON with sorted keys.
	Digest  string
	Objects []unstructured.Unstructured
	Wait    []Workload
}

// Workload names a DaemonSet or a Deployment.
type Workload struct {
	Kind      string // DaemonSet or Deployment
	Namespace string
	Name      string
}

// String is the workload as kubectl names it, with its namespace: "kube-flannel/DaemonSet/kube-flannel-ds".
func (w Workload) String() string { return w.Namespace + "/" + w.Kind + "/" + w.Name }

// Render returns the cluster's addons in the order in which they are applied. A network plugin that this version does
// not deploy is no addon, as one that someone else installs ("external").
func Render(want desired.Cluster) ([]Addon, error) {
	if want.Network.CNI.Name != desired.Flannel {
		return nil, nil
	}
	addon, err := flannel(want)
	if err != nil {
		return nil, fmt.Errorf("addon %s: %w", desired.Flannel, err)
	}
	return []Addon{addon}, nil
}

// newAddon puts rendered objects into the form in which the API exchanges them.
func newAddon(name string, wait []Workload, objects ...object) (Addon, error) {
	if len(objects) == 0 {
		return Addon{}, errors.New("it has no objects")
	}
	text, err := json.Marshal(objects)
	if err != nil {
		return Addon{}, err
	}
	var contents []map[string]any
	if err := json.Unmarshal(text, &contents); err != nil {
		return Addon{}, err
	}
	addon := Addon{Name: name, Wait: wait}
	sum := sha256.New()
	for _, content := range contents {
		canonical, err := json.Marshal(content)
		if err != nil {
			return Addon{}, err
		}
		sum.Write(canonical)
		sum.Write([]byte("\n"))
		o := unstructured.Unstructured{}
		if err := o.UnmarshalJSON(canonical); err != nil { // whole numbers become int64, as the API machinery wants
			return Addon{}, err
		}
		addon.Objects = append(addon.Objects, o)
	}
	addon.Digest = hex.EncodeToString(sum.Sum(nil))
	return addon, nil
}

// object is one rendered object.
type object map[string]any
