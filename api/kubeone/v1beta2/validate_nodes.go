package v1beta2

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"kubeone/api/cluster/v1alpha1"
)

func (f *findings) taints(path string, taints []Taint) {
	seen := map[string]bool{}
	for i, t := range taints {
		at := Item(path, i)
		if t.Key == "" {
			f.missing(at+".key", "")
		} else if len(validation.IsQualifiedName(t.Key)) > 0 {
			f.errorf(at+".key", "", "%q is not a taint's key", t.Key)
		}
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			f.errorf(at+".value", "", "%q is not a taint's value", t.Value)
		}
		f.taintEffect(at+".effect", t.Effect)
		if id := t.Key + ":" + t.Effect; seen[id] {
			f.errorf(at, "remove one of them", "the taint %s is there twice", id)
		} else {
			seen[id] = true
		}
	}
}

// ofMachines warns of what no Machine may give its Node: the API server refuses the MachineDeployment. It is no error,
// as controllers read the manifest of a cluster's record, which may be older than the rule.
func (f *findings) ofMachines(path string, p ProviderSpec) {
	f.taints(path+".taints", p.Taints)
	for i, t := range p.Taints {
		f.reserved(Item(path+".taints", i)+".key", t.Key, v1alpha1.IsReservedTaint)
	}
	for _, key := range sortedKeys(p.Labels) {
		f.reserved(Child(path+".labels", key), key, v1alpha1.IsReservedKey)
	}
	for _, key := range sortedKeys(p.NodeAnnotations) {
		f.reserved(Child(path+".nodeAnnotations", key), key, v1alpha1.IsReservedKey)
	}
}

func (f *findings) reserved(path, key string, isReserved func(string) bool) {
	if isReserved(key) {
		f.warnf(path, "leave it out: the cluster refuses a MachineDeployment with it", "%q is not a Machine's to give",
			key)
	}
}

func (f *findings) taintEffect(path, effect string) {
	effects := []string{taintEffectNoSchedule, "PreferNoSchedule", "NoExecute"}
	switch {
	case effect == "":
		f.missing(path, "use one of "+strings.Join(effects, ", "))
	case !slices.Contains(effects, effect):
		f.errorf(path, "use one of "+strings.Join(effects, ", "), "%q is not a taint's effect", effect)
	}
}

func (f *findings) labels(path string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		at := Child(path, key)
		f.key(at, "a label", key, labels)
		if len(validation.IsValidLabelValue(labels[key])) > 0 {
			f.errorf(at, "63 letters, digits, '-', '_' and '.' at most", "%q is not a label's value", labels[key])
		}
	}
}

func (f *findings) annotations(path string, annotations map[string]string) {
	for _, key := range sortedKeys(annotations) {
		f.key(Child(path, key), "an annotation", key, annotations)
	}
}

// key checks a label's or annotation's key; one that ends in "-" is to be removed.
func (f *findings) key(path, what, key string, all map[string]string) {
	name, removed := strings.CutSuffix(key, "-")
	if len(validation.IsQualifiedName(strings.ToLower(name))) > 0 {
		f.errorf(path, "", "%q is not the key of %s", name, what)
	}
	if _, both := all[name]; removed && both {
		f.errorf(path, "keep one of them", "%q is both set and removed", name)
	}
}

func (f *findings) kubelet(path string, k KubeletConfig) {
	f.quantities(path+".systemReserved", k.SystemReserved, false)
	f.quantities(path+".kubeReserved", k.KubeReserved, false)
	f.quantities(path+".evictionHard", k.EvictionHard, true)
	if k.MaxPods != nil && *k.MaxPods <= 0 {
		f.errorf(path+".maxPods", "", "%d is too few: a node runs one pod at least", *k.MaxPods)
	}
	if k.PodPidsLimit != nil && *k.PodPidsLimit != -1 && *k.PodPidsLimit <= 0 {
		f.errorf(path+".podPidsLimit", "-1 means no limit", "%d is too few: a pod has one process at least",
			*k.PodPidsLimit)
	}
	f.percent(path+".imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent)
	f.percent(path+".imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent)
	f.thresholds(path, k)
	f.duration(path+".imageMinimumGCAge", k.ImageMinimumGCAge)
	f.duration(path+".imageMaximumGCAge", k.ImageMaximumGCAge)
}

// thresholds compares the two thresholds of image removal; the kubelet's own are 85 and 80.
func (f *findings) thresholds(path string, k KubeletConfig) {
	high, low := int32(85), int32(80)
	at := path + ".imageGCLowThresholdPercent"
	if k.ImageGCHighThresholdPercent != nil {
		high = *k.ImageGCHighThresholdPercent
	}
	if k.ImageGCLowThresholdPercent != nil {
		low = *k.ImageGCLowThresholdPercent
	} else {
		at = path + ".imageGCHighThresholdPercent"
	}
	if low >= high {
		f.errorf(at, "the kubelet's own are 85 and 80", "the low threshold, %d, is not below the high one, %d", low,
			high)
	}
}

func (f *findings) percent(path string, p *int32) {
	if p != nil && (*p < 0 || *p > 100) {
		f.errorf(path, "", "%d is not a percentage", *p)
	}
}

// quantities checks amounts of resources; a threshold may be a percentage as well.
func (f *findings) quantities(path string, amounts map[string]string, percent bool) {
	for _, name := range sortedKeys(amounts) {
		value := amounts[name]
		if percent && isPercent(value) {
			continue
		}
		if q, err := resource.ParseQuantity(value); err != nil || q.Sign() < 0 {
			f.errorf(Child(path, name), "write an amount, such as 200m, 300Mi or 1Gi", "%q is not an amount", value)
		}
	}
}

func isPercent(s string) bool {
	number, ok := strings.CutSuffix(s, "%")
	var p float64
	if _, err := fmt.Sscanf(number, "%g", &p); err != nil || !ok {
		return false
	}
	return p >= 0 && p <= 100
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
