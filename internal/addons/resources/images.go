package resources

import (
	"maps"
	"slices"
	"strings"
)

// PodImage is an image that pods use.
type PodImage struct {
	Name string // as in the object
	// Always says that kubelets ask the registry whenever a container starts.
	Always bool
}

// podSpecs returns the paths at which objects of a kind have the spec of their pods. Every kind may have a template,
// also a custom resource.
func podSpecs(kind any) [][]string {
	if kind == "Pod" {
		return [][]string{{"spec"}}
	}
	return [][]string{
		{"template", "spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"},
	}
}

// PodImages returns the images of the pods that the objects describe, by name, each once: those of containers of every
// kind, and those of volumes. It cannot find images that a program names when it makes pods.
func PodImages(objects []Object) []PodImage {
	found := map[string]PodImage{}
	for _, o := range objects {
		for _, path := range podSpecs(o["kind"]) {
			if spec := fieldAt(o, path); spec != nil {
				addPodImages(found, spec)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b PodImage) int { return strings.Compare(a.Name, b.Name) })
}

// fieldAt returns the map at a path, or nil.
func fieldAt(o map[string]any, path []string) map[string]any {
	for _, name := range path {
		o, _ = o[name].(map[string]any)
	}
	return o
}

func addPodImages(found map[string]PodImage, spec map[string]any) {
	add := func(name, policy any) {
		image := PodImage{}
		if image.Name, _ = name.(string); image.Name == "" {
			return
		}
		image.Always = found[image.Name].Always || policy == "Always" ||
			(policy == nil || policy == "") && isLatest(image.Name)
		found[image.Name] = image
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range itemsOf(spec[field]) {
			add(container["image"], container["imagePullPolicy"])
		}
	}
	for _, volume := range itemsOf(spec["volumes"]) {
		if image, ok := volume["image"].(map[string]any); ok {
			add(image["reference"], image["pullPolicy"])
		}
	}
}

// itemsOf returns the maps in a list.
func itemsOf(list any) []map[string]any {
	var out []map[string]any
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// isLatest reports whether the API server sets the pull policy Always for the image unless the object has another one.
// Source: https://kubernetes.io/docs/concepts/containers/images/#imagepullpolicy-defaulting
func isLatest(name string) bool {
	_, tag, tagged := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return !strings.Contains(name, "@") && (!tagged || tag == "latest")
}
