package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// MissingManifestError means that the content of a published manifest is not available.
type MissingManifestError struct{ What, Reason string }

// Error names the manifest and the reason.
func (e *MissingManifestError) Error() string { return e.What + ": " + e.Reason }

// PublishedManifest returns the manifest from the artifacts, with its content. The error is a *MissingManifestError.
func PublishedManifest(artifacts map[string]desired.Artifacts, m Manifest) (desired.PublishedManifest, error) {
	missing := &MissingManifestError{What: m.Name + " " + m.Version, Reason: "the artifacts do not contain it"}
	for _, release := range artifacts {
		for _, have := range release.Published {
			switch {
			case have.Name != m.Name || have.Version != m.Version:
			case have.Content != nil:
				return have, nil
			case have.Problem != "":
				missing.Reason = have.Problem
			}
		}
	}
	return desired.PublishedManifest{}, missing
}

// Limits of a published manifest, far above those of real ones. MaxManifest is in bytes.
const (
	MaxManifest = 4 << 20
	maxObjects  = 500
)

// Objects are the objects of a published manifest. The methods that change an object fail if the manifest does not have
// what they change: then it is not the manifest that the plugin was written for.
type Objects []resources.Object

// ParseManifest returns the objects of a published manifest: definitions of resources first, the others in their order.
// An object of a kind that is not listed is an error.
func ParseManifest(content []byte, kinds ...string) (Objects, error) {
	if len(content) > MaxManifest {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(content), MaxManifest)
	}
	objects, err := resources.Parse("", string(content))
	if err != nil {
		var mistake *resources.FileError
		if errors.As(err, &mistake) {
			return nil, mistake.Err // the caller names the manifest
		}
		return nil, err
	}
	if len(objects) > maxObjects {
		return nil, fmt.Errorf("it has %d objects, more than %d", len(objects), maxObjects)
	}
	seen := map[string]bool{}
	for n, o := range objects {
		name := describeObject(o)
		u := unstructured.Unstructured{Object: o}
		switch {
		case u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "":
			return nil, fmt.Errorf("object %d has no API version, kind or name", n+1)
		case !slices.Contains(kinds, u.GetKind()):
			return nil, fmt.Errorf("%s: a manifest of this plugin has no object of that kind", name)
		case seen[name]:
			return nil, fmt.Errorf("%s: it is there twice", name)
		}
		seen[name] = true
	}
	slices.SortStableFunc(objects, func(a, b resources.Object) int { return rankObject(a) - rankObject(b) })
	return objects, nil
}

// rankObject returns the place of an object in the order in which objects are applied.
func rankObject(o resources.Object) int {
	if o["kind"] == "CustomResourceDefinition" {
		return 0
	}
	return 1
}

// describeObject returns an object as messages name it: "ConfigMap kube-system/canal-config".
func describeObject(o resources.Object) string {
	u := unstructured.Unstructured{Object: o}
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// Find returns the object with that kind, namespace and name.
func (objects Objects) Find(kind, namespace, name string) (resources.Object, error) {
	want := kind + " " + namespace + "/" + name
	for _, o := range objects {
		if describeObject(o) == want {
			return o, nil
		}
	}
	return nil, fmt.Errorf("%s: the manifest does not have it", want)
}

// ChangeText replaces the text of a field. The error names the object and the field.
func ChangeText(o resources.Object, change func(string) (string, error), fields ...string) error {
	text, found, err := unstructured.NestedString(o, fields...)
	if err == nil && !found {
		err = errors.New("the manifest does not have it")
	}
	if err == nil {
		text, err = change(text)
	}
	if err != nil {
		return fmt.Errorf("%s: field %s: %w", describeObject(o), strings.Join(fields, "/"), err)
	}
	return unstructured.SetNestedField(o, text, fields...)
}

// SetText sets a field that already has a text.
func SetText(o resources.Object, value string, fields ...string) error {
	return ChangeText(o, func(string) (string, error) { return value, nil }, fields...)
}

// SetImages replaces the images of all containers: those of the plugin become the images of that name in the
// artifacts. An image that is not the plugin's, or an image of the plugin that no container has, is an error.
func (objects Objects) SetImages(images []Image, artifacts map[string]desired.Artifacts) error {
	names := map[string]string{}
	for _, i := range images {
		name, err := ImageNamed(artifacts, i.Repository)
		if err != nil {
			return err
		}
		names[i.officialName()] = name
	}
	used := map[string]bool{}
	for _, o := range objects {
		for _, field := range []string{"initContainers", "containers"} {
			if err := setImages(o, names, used, "spec", "template", "spec", field); err != nil {
				return err
			}
		}
	}
	for official := range names {
		if !used[official] {
			return fmt.Errorf("no container of the manifest has the image %s", official)
		}
	}
	return nil
}

// setImages replaces the images of a list of containers, and notes which were used.
func setImages(o resources.Object, names map[string]string, used map[string]bool, fields ...string) error {
	list, found, err := unstructured.NestedFieldNoCopy(o, fields...)
	if err != nil || !found {
		return nil //nolint:nilerr // an object without containers
	}
	containers, ok := list.([]any)
	if !ok {
		return fmt.Errorf("%s: field %s: not a list", describeObject(o), strings.Join(fields, "/"))
	}
	for n, c := range containers {
		path := fmt.Sprintf("%s: field %s[%d]/image", describeObject(o), strings.Join(fields, "/"), n)
		container, ok := c.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: not a container", path)
		}
		official, _ := container["image"].(string)
		name, ok := names[official]
		if !ok {
			return fmt.Errorf("%s: %q is not an image of this plugin", path, official)
		}
		container["image"], used[official] = name, true
	}
	return nil
}

// officialName returns the image's name in its official registry.
func (i Image) officialName() string { return i.Registry + "/" + i.Repository + ":" + i.Tag }

// Env returns the value of an environment variable of a container or an init container. It fails if the container or
// the value does not exist.
func Env(o resources.Object, container, name string) (string, error) {
	for _, field := range []string{"initContainers", "containers"} {
		list, _, err := unstructured.NestedSlice(o, "spec", "template", "spec", field)
		if err != nil {
			return "", fmt.Errorf("%s: field spec/template/spec/%s: %w", describeObject(o), field, err)
		}
		for _, c := range list {
			if value, ok := envOf(c, container, name); ok {
				return value, nil
			}
		}
	}
	return "", fmt.Errorf("%s: container %s: field env/%s: the manifest does not have it", describeObject(o), container,
		name)
}

// envOf returns the value of a variable if c is the container with that name and has the variable.
func envOf(c any, container, name string) (string, bool) {
	var fields struct {
		Name string
		Env  []struct{ Name, Value string }
	}
	text, err := json.Marshal(c)
	if err != nil || json.Unmarshal(text, &fields) != nil || fields.Name != container {
		return "", false
	}
	for _, e := range fields.Env {
		if e.Name == name {
			return e.Value, true
		}
	}
	return "", false
}
