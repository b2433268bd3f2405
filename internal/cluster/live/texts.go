package live

import (
	"context"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kubeone/internal/cluster/ssa"
	"kubeone/internal/text/diff"
)

// PreviewApply returns what would change if the objects of the component were applied again, line by line. It does not
// change anything. For an object that cannot be compared, it returns the reason instead.
func PreviewApply(ctx context.Context, a *ssa.Applier, c Component) []diff.Change {
	var out []diff.Change
	for i := range c.Applied {
		o := &c.Applied[i]
		before, after, err := a.Preview(ctx, o)
		if err != nil && !meta.IsNoMatchError(err) {
			out = append(out, diff.Summary(ssa.Describe(o), oneLine(err)))
			continue
		}
		current, planned := map[string]any(nil), withoutMetadata(o)
		if before != nil {
			current, planned = withoutMetadata(before), withoutMetadata(after)
		}
		if o.GetKind() == "Secret" {
			current, planned = maskSecret(current, planned)
		}
		if c, differs := diff.Of(ssa.Describe(o), asYAML(current), asYAML(planned)); differs {
			out = append(out, c)
		}
	}
	for _, check := range c.Checks {
		if !check.Settings {
			out = append(out, check.describeReapply(ctx, a)...)
		}
	}
	return out
}

// PreviewSettings returns what would change if the settings of the component were set, line by line. It does not change
// anything.
func PreviewSettings(ctx context.Context, a *ssa.Applier, c Component) []diff.Change {
	var out []diff.Change
	for _, check := range c.Checks {
		if !check.Settings || check.Texts == nil {
			continue
		}
		o, name, err := check.getLive(ctx, a)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			out = append(out, diff.Summary(name, oneLine(err)))
		default:
			current, planned := check.Texts(o.Object)
			if c, differs := diff.Of(name, current, planned); differs {
				out = append(out, c)
			}
		}
	}
	return out
}

// describeReapply describes how an object that kubeadm will reapply differs from the expected one.
func (c Check) describeReapply(ctx context.Context, a *ssa.Applier) []diff.Change {
	o, name, err := c.getLive(ctx, a)
	switch {
	case apierrors.IsNotFound(err):
		return []diff.Change{diff.Summary(name, "it is missing; kubeadm will create it")}
	case err != nil:
		return []diff.Change{diff.Summary(name, oneLine(err))}
	case c.Differs == nil:
		return nil
	}
	if d := newDifference(name, c.Differs(o.Object)); d != nil {
		why := "it differs in " + strings.Join(d.Fields, ", ") + "; kubeadm will reapply it"
		return []diff.Change{diff.Summary(name, why)}
	}
	return nil
}

// getLive returns the live object and, even if it fails, its name for messages.
func (c Check) getLive(ctx context.Context, a *ssa.Applier) (*unstructured.Unstructured, string, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(c.Kind)
	o.SetNamespace(c.Namespace)
	o.SetName(c.Name)
	where, err := a.Resource(o)
	if err != nil {
		return nil, ssa.Describe(o), err
	}
	object, err := where.Get(ctx, c.Name, metav1.GetOptions{})
	return object, ssa.Describe(o), err
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func asYAML(object map[string]any) string {
	if len(object) == 0 {
		return ""
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return "" // decoded JSON can be encoded
	}
	return string(text)
}

// maskSecret replaces the values in a Secret, so that a diff shows only which values change.
func maskSecret(current, planned map[string]any) (maskedCurrent, maskedPlanned map[string]any) {
	hide := func(object, other map[string]any, changed string) map[string]any {
		out := map[string]any{}
		for key, value := range object {
			values, ok := value.(map[string]any)
			if !ok || !slices.Contains([]string{"data", "stringData"}, key) {
				out[key] = value
				continue
			}
			others, _ := other[key].(map[string]any)
			hidden := map[string]any{}
			for name, v := range values {
				hidden[name] = diff.Secret
				if otherValue, ok := others[name]; ok && !reflect.DeepEqual(otherValue, v) {
					hidden[name] = changed
				}
			}
			out[key] = hidden
		}
		return out
	}
	return hide(current, planned, diff.Secret), hide(planned, current, diff.ChangedSecret)
}
