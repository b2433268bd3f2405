package v1beta2

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The kubelet's defaults.
const (
	kubeletHighThreshold = 85
	kubeletLowThreshold  = 80
	kubeletMinimumGCAge  = "2m"
)

// evictionSignals returns the kubelet's signals for evictionHard (pkg/kubelet/eviction/api of Kubernetes).
func evictionSignals() []string {
	return []string{
		"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
		"containerfs.available", "containerfs.inodesFree", "allocatableMemory.available", "pid.available",
	}
}

// reservedResources returns the resources that the kubelet can reserve (parseResourceList in cmd/kubelet/app).
func reservedResources() []string { return []string{"cpu", "memory", "ephemeral-storage", "pid"} }

// kubelet checks the kubelet settings k at path. Fields that are not set have the inherited values: the settings of the
// cluster for a host, and none for the cluster.
func (f *findings) kubelet(path string, k, inherited KubeletConfig) {
	f.reservations(path+".systemReserved", k.SystemReserved)
	f.reservations(path+".kubeReserved", k.KubeReserved)
	f.evictions(path+".evictionHard", k.EvictionHard)
	if k.MaxPods != nil && *k.MaxPods <= 0 {
		f.errorf(path+".maxPods", "", "%d is too low: a node must be able to run at least one pod", *k.MaxPods)
	}
	if k.PodPidsLimit != nil && *k.PodPidsLimit != -1 && *k.PodPidsLimit <= 0 {
		f.errorf(path+".podPidsLimit", "-1 means no limit", "%d is too low: a pod has at least one process",
			*k.PodPidsLimit)
	}
	f.percent(path+".imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent)
	f.percent(path+".imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent)
	f.checkImageGCThresholds(path, k, inherited)
	f.duration(path+".imageMinimumGCAge", k.ImageMinimumGCAge)
	f.duration(path+".imageMaximumGCAge", k.ImageMaximumGCAge)
	f.checkImageGCAges(path, k, inherited)
}

// checkImageGCThresholds compares the thresholds for the removal of images if k sets one of them.
func (f *findings) checkImageGCThresholds(path string, k, inherited KubeletConfig) {
	high, low := int32(kubeletHighThreshold), int32(kubeletLowThreshold)
	if set := cmp.Or(k.ImageGCHighThresholdPercent, inherited.ImageGCHighThresholdPercent); set != nil {
		high = *set
	}
	if set := cmp.Or(k.ImageGCLowThresholdPercent, inherited.ImageGCLowThresholdPercent); set != nil {
		low = *set
	}
	at := path + ".imageGCLowThresholdPercent"
	switch {
	case low < high || k.ImageGCLowThresholdPercent == nil && k.ImageGCHighThresholdPercent == nil:
		return
	case k.ImageGCLowThresholdPercent == nil:
		at = path + ".imageGCHighThresholdPercent"
	}
	f.errorf(at, "the kubelet defaults are 85 and 80",
		"the low threshold (%d) is not lower than the high threshold (%d)",
		low, high)
}

// checkImageGCAges compares the ages for the removal of images if k sets one of them. 0s means the kubelet's default.
func (f *findings) checkImageGCAges(path string, k, inherited KubeletConfig) {
	minAge, errMin := time.ParseDuration(cmp.Or(k.ImageMinimumGCAge, inherited.ImageMinimumGCAge, "0s"))
	maxAge, errMax := time.ParseDuration(cmp.Or(k.ImageMaximumGCAge, inherited.ImageMaximumGCAge, "0s"))
	if minAge == 0 {
		minAge, _ = time.ParseDuration(kubeletMinimumGCAge) // a constant
	}
	at := path + ".imageMaximumGCAge"
	switch {
	case errMin != nil || errMax != nil || maxAge <= 0 || maxAge > minAge:
		return
	case k.ImageMaximumGCAge == "" && k.ImageMinimumGCAge == "":
		return
	case k.ImageMaximumGCAge == "":
		at = path + ".imageMinimumGCAge"
	}
	f.errorf(at, "the kubelet default for the minimum age is "+kubeletMinimumGCAge,
		"the maximum age (%s) is not greater than the minimum age (%s)", maxAge, minAge)
}

func (f *findings) percent(path string, p *int32) {
	if p != nil && (*p < 0 || *p > 100) {
		f.errorf(path, "", "%d is not a percentage from 0 to 100", *p)
	}
}

func (f *findings) reservations(path string, amounts map[string]string) {
	for _, name := range sortedKeys(amounts) {
		at := Child(path, name)
		if known := reservedResources(); !slices.Contains(known, name) {
			f.errorf(at, "use one of: "+strings.Join(known, ", "), "%q is not a resource that the kubelet can reserve",
				name)
		}
		if q, err := resource.ParseQuantity(amounts[name]); err != nil || q.Sign() < 0 {
			f.errorf(at, "use an amount such as 200m, 300Mi or 1Gi", "%q is not a valid amount", amounts[name])
		}
	}
}

func (f *findings) evictions(path string, thresholds map[string]string) {
	for _, signal := range sortedKeys(thresholds) {
		at, value := Child(path, signal), thresholds[signal]
		if known := evictionSignals(); !slices.Contains(known, signal) {
			f.errorf(at, "use one of: "+strings.Join(known, ", "), "%q is not an eviction signal", signal)
		}
		if !isPercent(value) && !isPositiveQuantity(value) {
			f.errorf(at, "use an amount such as 300Mi or a percentage such as 10%; 0% disables the threshold",
				"%q is neither a positive amount nor a percentage", value)
		}
	}
}

// isPercent reports whether the text is a number from 0 to 100 and a %, as the kubelet reads it.
func isPercent(s string) bool {
	number, ok := strings.CutSuffix(s, "%")
	p, err := strconv.ParseFloat(number, 32)
	return ok && err == nil && !math.IsNaN(p) && p >= 0 && p <= 100
}

func isPositiveQuantity(s string) bool {
	q, err := resource.ParseQuantity(s)
	return err == nil && q.Sign() > 0
}

// isSize reports whether the text is a positive whole number of bytes, as the kubelet requires for log files.
func isSize(s string) bool {
	q, err := resource.ParseQuantity(s)
	bytes, whole := q.AsInt64()
	return err == nil && whole && bytes > 0
}
