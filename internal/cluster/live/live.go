// Package live compares the objects in a cluster with their desired state.
//
// Objects that kubeone applied are compared with a dry run of the same server-side apply. For objects of other
// programs, such as kubeadm, a pure function returns the fields that differ. Fields of other managers are ignored.
package live

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/phrase"
)

// Component is a part of the cluster with the desired state of its objects.
type Component struct {
	Name    string                      // of an addon, or of a component from kubeadm
	Applied []unstructured.Unstructured // as passed to server-side apply
	Checks  []Check
}

// Check is an object of another program, and its requirements.
type Check struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Settings says that kubeone sets the differing fields. Otherwise the other program applies the object again. With
	// Settings, a missing object is no difference, as another check reports it.
	Settings bool
	// Differs returns the names of the fields that differ. Nil only requires that the object exists.
	Differs func(getLive map[string]any) []string
	// Texts returns the compared part of a live object, now and after the settings are set. Nil is not known
	// beforehand.
	Texts func(getLive map[string]any) (is, will string)
}

const (
	maxParallel   = 8  // objects compared in parallel
	maxFields     = 8  // fields named of one object
	maxPathLength = 96 // bytes of a field's path
)

// isTransient reports whether a comparison failed because the API was slow or busy. A webhook that denies or does not
// answer may do so forever, and is not transient.
func isTransient(err error) bool {
	return apicall.Classify(err) == apicall.Transient && !apierrors.IsForbidden(err) && !apierrors.IsInternalError(err)
}

// Compare compares a component's objects without changing them. If some cannot be compared, Problem says why.
func Compare(ctx context.Context, a *ssa.Applier, c Component) observed.Comparison {
	applied := make([]*observed.Difference, len(c.Applied))
	checked := make([]*observed.Difference, len(c.Checks))
	var group errgroup.Group // without a context: a failed comparison does not stop others
	group.SetLimit(maxParallel)
	for i := range c.Applied {
		group.Go(func() (err error) {
			applied[i], err = compareApplied(ctx, a, &c.Applied[i])
			return err
		})
	}
	for i := range c.Checks {
		group.Go(func() (err error) {
			checked[i], err = c.Checks[i].compareLive(ctx, a)
			return err
		})
	}
	var out observed.Comparison
	if err := group.Wait(); err != nil {
		out.Problem, out.Late = oneLine(err), isTransient(err)
	}
	for _, d := range applied {
		if d != nil {
			out.Differences = append(out.Differences, *d)
		}
	}
	for i, d := range checked {
		switch {
		case d == nil:
		case c.Checks[i].Settings:
			out.Settings = append(out.Settings, *d)
		default:
			out.Differences = append(out.Differences, *d)
		}
	}
	return out
}

// compareApplied returns what applying the object again would change; nil is nothing.
func compareApplied(ctx context.Context, a *ssa.Applier, o *unstructured.Unstructured) (*observed.Difference, error) {
	before, after, err := a.Preview(ctx, o)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return &observed.Difference{Object: ssa.Describe(o), Missing: true}, nil
	}
	var fields []string
	addDifferences("", withoutMetadata(before), withoutMetadata(after), &fields)
	return newDifference(ssa.Describe(o), fields), nil
}

// compareLive returns how the object differs from its requirements; nil is nothing.
func (c Check) compareLive(ctx context.Context, a *ssa.Applier) (*observed.Difference, error) {
	is, of, err := c.getLive(ctx, a)
	switch {
	case apierrors.IsNotFound(err) && c.Settings:
		return nil, nil
	case apierrors.IsNotFound(err):
		return &observed.Difference{Object: of, Missing: true}, nil
	case err != nil || c.Differs == nil:
		return nil, err
	}
	return newDifference(of, c.Differs(is.Object)), nil
}

func newDifference(object string, fields []string) *observed.Difference {
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if len(fields) > maxFields {
		fields = fields[:maxFields]
	}
	return &observed.Difference{Object: object, Fields: fields}
}

// withoutMetadata returns an object without fields that the API server maintains.
func withoutMetadata(o *unstructured.Unstructured) map[string]any {
	out := maps.Clone(o.Object)
	delete(out, "status")
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, key := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(meta, key)
		}
		out["metadata"] = meta
	}
	return out
}

// addDifferences appends the paths of all fields that differ.
func addDifferences(path string, a, b any, out *[]string) {
	one, oneIsMap := a.(map[string]any)
	other, otherIsMap := b.(map[string]any)
	first, firstIsList := a.([]any)
	second, secondIsList := b.([]any)
	switch {
	case oneIsMap && otherIsMap:
		for key := range unionKeys(one, other) {
			addDifferences(joinPath(path, key), one[key], other[key], out)
		}
	case firstIsList && secondIsList && len(first) == len(second):
		for i := range first {
			addDifferences(path, first[i], second[i], out)
		}
	case !reflect.DeepEqual(a, b):
		*out = append(*out, path)
	}
}

func unionKeys(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	return keys
}

// joinPath appends a key to a path. It shortens the result, since keys come from the cluster.
func joinPath(path, key string) string {
	if path != "" {
		path += "."
	}
	return phrase.Shorten(path+key, maxPathLength)
}
