// Package live compares the objects in a cluster with their desired state.
//
// It compares objects that kubeone applied with the result of a dry run of the same server-side apply. For objects of
// other programs, such as kubeadm, a pure function returns the fields that differ. Fields that belong to other managers
// are ignored.
package live

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/phrase"
)

// Component is a part of the cluster with the desired state of its objects.
type Component struct {
	Name    string                      // name of an addon or of a kubeadm component
	Applied []unstructured.Unstructured // as passed to server-side apply
	Checks  []Check
	// Problem is the reason why Applied is unknown, so that nothing can be compared.
	Problem string
}

// Check describes an object of another program and its required state.
type Check struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Settings says that kubeone sets the fields that differ. Otherwise the other program applies the object again. If
	// Settings is true, a missing object is not a difference, because another check reports it.
	Settings bool
	// Differs returns the paths of the fields that differ. If it is nil, the object only has to exist.
	Differs func(object map[string]any) []string
	// Texts returns the compared part of a live object as text, before and after the settings are set. It is nil if the
	// change cannot be shown in advance.
	Texts func(object map[string]any) (current, planned string)
}

const (
	maxParallel   = 8  // objects compared in parallel
	maxFields     = 8  // fields reported for one object
	maxPathLength = 96 // maximum length of a field path in bytes
)

// isTransient reports whether a comparison failed because the API was slow or busy. An admission webhook that denies
// the request or does not answer may do so permanently, so such an error is not transient.
func isTransient(err error) bool {
	return apicall.Classify(err) == apicall.Transient && !apierrors.IsForbidden(err) && !apierrors.IsInternalError(err)
}

// Compare compares the objects of a component with their desired state, without changing them. If some objects cannot
// be compared, Problem says why.
func Compare(ctx context.Context, a *ssa.Applier, c Component) observed.Comparison {
	if c.Problem != "" {
		return observed.Comparison{Problem: c.Problem}
	}
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

// compareApplied returns what would change if the object were applied again; nil means no change.
func compareApplied(ctx context.Context, a *ssa.Applier, o *unstructured.Unstructured) (*observed.Difference, error) {
	before, after, err := a.Preview(ctx, o)
	if meta.IsNoMatchError(err) { // an object of the same addon defines the kind
		err = nil
	}
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

// compareLive returns how the live object differs from its required state; nil means no difference.
func (c Check) compareLive(ctx context.Context, a *ssa.Applier) (*observed.Difference, error) {
	object, name, err := c.getLive(ctx, a)
	switch {
	case apierrors.IsNotFound(err) && c.Settings:
		return nil, nil
	case apierrors.IsNotFound(err):
		return &observed.Difference{Object: name, Missing: true}, nil
	case err != nil || c.Differs == nil:
		return nil, err
	}
	return newDifference(name, c.Differs(object.Object)), nil
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

// withoutMetadata returns a copy of the object content without the fields that the API server maintains.
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

// addDifferences appends the paths of all fields in which a and b differ.
func addDifferences(path string, a, b any, out *[]string) {
	mapA, aIsMap := a.(map[string]any)
	mapB, bIsMap := b.(map[string]any)
	listA, aIsList := a.([]any)
	listB, bIsList := b.([]any)
	switch {
	case aIsMap && bIsMap:
		for key := range unionKeys(mapA, mapB) {
			addDifferences(joinPath(path, key), mapA[key], mapB[key], out)
		}
	case aIsList && bIsList && len(listA) == len(listB):
		for i := range listA {
			addDifferences(path, listA[i], listB[i], out)
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

// joinPath appends a key to a path and shortens the result, because keys come from the cluster and may be long.
func joinPath(path, key string) string {
	if path != "" {
		path += "."
	}
	return phrase.Shorten(path+key, maxPathLength)
}
