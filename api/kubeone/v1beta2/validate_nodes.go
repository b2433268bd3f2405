package v1beta2

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kubeone/api/cluster/v1alpha1"
)

// formerTaintKey is controlPlaneTaintKey before Kubernetes 1.25.
const formerTaintKey = "node-role.kubernetes.io/master"

func (f *findings) taints(path string, taints []Taint) {
	seen := map[string]bool{}
	for i, t := range taints {
		at := Item(path, i)
		if t.Key == "" {
			f.missing(at+".key", "")
		} else if len(validation.IsQualifiedName(t.Key)) > 0 {
			f.errorf(at+".key", "", "%q is not a valid taint key", t.Key)
		}
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			f.errorf(at+".value", "", "%q is not a valid taint value", t.Value)
		}
		f.taintEffect(at+".effect", t.Effect)
		if id := t.Key + ":" + t.Effect; seen[id] {
			f.errorf(at, "remove one of them", "the taint %s is listed twice", id)
		} else {
			seen[id] = true
		}
	}
}

// nodeTaints checks the taints of a host of the manifest.
func (f *findings) nodeTaints(path string, taints []Taint) {
	f.taints(path, taints)
	for i, t := range taints {
		if t.Key == formerTaintKey {
			f.errorf(Item(path, i)+".key", "use "+controlPlaneTaintKey,
				"Kubernetes removed the taint %s in 1.25; its own pods do not tolerate it", t.Key)
		}
	}
}

// ofMachines checks the metadata of Machines and their Nodes. A reserved key is only a warning, although the API server
// refuses the MachineDeployment: controllers read the manifest from the cluster's record, which may be older than the
// rule.
func (f *findings) ofMachines(path string, p ProviderSpec) {
	f.taints(path+".taints", p.Taints)
	for i, t := range p.Taints {
		f.reserved(Item(path+".taints", i)+".key", t.Key, v1alpha1.IsReservedTaint)
	}
	f.labels(path+".labels", p.Labels, kept)
	for _, key := range sortedKeys(p.Labels) {
		f.reserved(Child(path+".labels", key), key, v1alpha1.IsReservedKey)
	}
	f.annotations(path+".nodeAnnotations", p.NodeAnnotations, kept)
	for _, key := range sortedKeys(p.NodeAnnotations) {
		f.reserved(Child(path+".nodeAnnotations", key), key, v1alpha1.IsReservedKey)
	}
	f.annotations(path+".annotations", p.Annotations, kept)
	f.annotations(path+".machineObjectAnnotations", p.MachineObjectAnnotations, kept)
}

func (f *findings) reserved(path, key string, isReserved func(string) bool) {
	if isReserved(key) {
		f.warnf(path, "remove it; the cluster rejects a MachineDeployment that sets it",
			"%q is reserved and cannot be set by a Machine",
			key)
	}
}

func (f *findings) taintEffect(path, effect string) {
	effects := []string{taintEffectNoSchedule, "PreferNoSchedule", "NoExecute"}
	switch {
	case effect == "":
		f.missing(path, "use one of: "+strings.Join(effects, ", "))
	case !slices.Contains(effects, effect):
		f.errorf(path, "use one of: "+strings.Join(effects, ", "), "%q is not a valid taint effect", effect)
	}
}

// removal says whether a "-" at the end of a key means that the key is to be removed.
type removal bool

const (
	kept      removal = false
	removable removal = true
)

// mostAnnotations is the maximum size in bytes of all annotations of an object, with their keys.
const mostAnnotations = 256 << 10

func (f *findings) labels(path string, labels map[string]string, r removal) {
	for _, key := range sortedKeys(labels) {
		at := Child(path, key)
		name := f.withoutRemoval(at, key, labels, r)
		if len(validation.IsQualifiedName(name)) > 0 {
			f.errorf(at, labelKeyHint, "%q is not a valid label key", name)
		}
		if len(validation.IsValidLabelValue(labels[key])) > 0 {
			f.errorf(at, "use at most 63 letters, digits, '-', '_' and '.'", "%q is not a valid label value",
				labels[key])
		}
	}
}

const labelKeyHint = "use at most 63 letters, digits, '-', '_' and '.', optionally after a lowercase DNS name and '/'"

func (f *findings) annotations(path string, annotations map[string]string, r removal) {
	size := 0
	for _, key := range sortedKeys(annotations) {
		at := Child(path, key)
		name := f.withoutRemoval(at, key, annotations, r)
		if len(validation.IsQualifiedName(strings.ToLower(name))) > 0 {
			f.errorf(at, "", "%q is not a valid annotation key", name)
		}
		size += len(key) + len(annotations[key])
	}
	if size > mostAnnotations {
		f.errorf(path, "the maximum is 256 KiB", "the annotations have %d KiB", size>>10)
	}
}

// withoutRemoval returns the key without the "-" that marks it for removal.
func (f *findings) withoutRemoval(path, key string, all map[string]string, r removal) string {
	name, removed := strings.CutSuffix(key, "-")
	if !removed || r == kept {
		return key
	}
	if _, both := all[name]; both {
		f.errorf(path, "keep one of them", "%q is both set and removed", name)
	}
	return name
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
