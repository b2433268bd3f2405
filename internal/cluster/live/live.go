// Package live compares the objects in a cluster with what they must be.
//
// What this program applied by server-side apply is compared field by field of ours: the API is asked what the same
// apply would change now, without doing it. Of what others applied, such as kubeadm, a pure function says which fields
// are not as they must be. Fields that somebody else has added are theirs, and no difference.
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

// Component is a part of the cluster, and what its objects must be.
type Component struct {
	Name    string                      // of an addon, or of what kubeadm applies
	Applied []unstructured.Unstructured // as server-side apply was given them
	Checks  []Check
}

// Check is an object that somebody else applied, and what must hold of it.
type Check struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Settings says that what differs here can be set in the object; all else is applied anew by whoever did so.
	// A missing object is then no difference: it is one of the check of its being there.
	Settings bool
	// Differs names the fields of a live object that are not as they must be. Nil asks no more than that it exists.
	Differs func(getLive map[string]any) []string
	// Texts are what is compared of a live object with settings, as it is and as it will be once they are set; nil
	// where that is not known beforehand.
	Texts func(getLive map[string]any) (is, will string)
}

const (
	atOnce     = 8  // objects compared at the same time
	mostFields = 8  // of one object that are named
	longest    = 96 // of a field's path, in bytes
)

// isTransient reports whether a comparison failed only because the API was slow or busy. An admission webhook that
// denies it, or does not answer, is no such reason: it may be so for ever.
func isTransient(err error) bool {
	return apicall.Classify(err) == apicall.Transient && !apierrors.IsForbidden(err) && !apierrors.IsInternalError(err)
}

// Compare compares a component's objects, and changes nothing. Why some cannot be compared is the comparison's Problem.
func Compare(ctx context.Context, a *ssa.Applier, c Component) observed.Comparison {
	applied := make([]*observed.Difference, len(c.Applied))
	checked := make([]*observed.Difference, len(c.Checks))
	var group errgroup.Group // one that cannot be compared hides no other
	group.SetLimit(atOnce)
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

// compareApplied is what applying the object again would change; nil for nothing.
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
	return differenceOf(ssa.Describe(o), fields), nil
}

// compareLive is what differs of the object from what it must be; nil for nothing.
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
	return differenceOf(of, c.Differs(is.Object)), nil
}

func differenceOf(object string, fields []string) *observed.Difference {
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if len(fields) > mostFields {
		fields = fields[:mostFields]
	}
	return &observed.Difference{Object: object, Fields: fields}
}

// withoutMetadata is an object without what the API keeps about it.
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

// addDifferences adds the paths of all fields that are not the same.
func addDifferences(path string, a, b any, out *[]string) {
	one, oneIsMap := a.(map[string]any)
	other, otherIsMap := b.(map[string]any)
	first, firstIsList := a.([]any)
	second, secondIsList := b.([]any)
	switch {
	case oneIsMap && otherIsMap:
		for key := range keysOfBoth(one, other) {
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

func keysOfBoth(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	return keys
}

// joinPath is the path of a field below another. Names of fields are the cluster's, and so cut.
func joinPath(path, key string) string {
	if path != "" {
		path += "."
	}
	return phrase.Shorten(path+key, longest)
}
