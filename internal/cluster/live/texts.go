package live

import (
	"context"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kubeone/internal/cluster/ssa"
	"kubeone/internal/text/diff"
)

// PreviewApply returns what applying the component's objects again would change, line by line. It changes nothing.
// Objects that cannot be compared are included with the reason.
func PreviewApply(ctx context.Context, a *ssa.Applier, c Component) []diff.Change {
	var out []diff.Change
	for i := range c.Applied {
		o := &c.Applied[i]
		before, after, err := a.Preview(ctx, o)
		if err != nil {
			out = append(out, diff.Unknown(ssa.Describe(o), oneLine(err)))
			continue
		}
		is, will := map[string]any(nil), withoutMetadata(o)
		if before != nil {
			is, will = withoutMetadata(before), withoutMetadata(after)
		}
		if o.GetKind() == "Secret" {
			is, will = maskSecret(is, will)
		}
		if c, differs := diff.Of(ssa.Describe(o), asYAML(is), asYAML(will)); differs {
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

// PreviewSettings returns what setting the component's settings would change, line by line. It changes nothing.
func PreviewSettings(ctx context.Context, a *ssa.Applier, c Component) []diff.Change {
	var out []diff.Change
	for _, check := range c.Checks {
		if !check.Settings || check.Texts == nil {
			continue
		}
		o, of, err := check.getLive(ctx, a)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			out = append(out, diff.Unknown(of, oneLine(err)))
		default:
			is, will := check.Texts(o.Object)
			if c, differs := diff.Of(of, is, will); differs {
				out = append(out, c)
			}
		}
	}
	return out
}

// describeReapply describes the difference of an object that kubeadm will apply again.
func (c Check) describeReapply(ctx context.Context, a *ssa.Applier) []diff.Change {
	o, of, err := c.getLive(ctx, a)
	switch {
	case apierrors.IsNotFound(err):
		return []diff.Change{diff.Unknown(of, "it is missing; kubeadm will create it")}
	case err != nil:
		return []diff.Change{diff.Unknown(of, oneLine(err))}
	case c.Differs == nil:
		return nil
	}
	if d := newDifference(of, c.Differs(o.Object)); d != nil {
		why := "it differs in " + strings.Join(d.Fields, ", ") + "; kubeadm will apply it again"
		return []diff.Change{diff.Unknown(of, why)}
	}
	return nil
}

// getLive returns the live object and its name for messages.
func (c Check) getLive(ctx context.Context, a *ssa.Applier) (*unstructured.Unstructured, string, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(c.Kind)
	o.SetNamespace(c.Namespace)
	o.SetName(c.Name)
	where, err := a.Resource(o)
	if err != nil {
		return nil, ssa.Describe(o), err
	}
	is, err := where.Get(ctx, c.Name, metav1.GetOptions{})
	return is, ssa.Describe(o), err
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

// maskSecret replaces the values of a Secret. It only shows which of them change.
func maskSecret(is, will map[string]any) (maskedIs, maskedWill map[string]any) {
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
				if had, ok := others[name]; ok && !reflect.DeepEqual(had, v) {
					hidden[name] = changed
				}
			}
			out[key] = hidden
		}
		return out
	}
	return hide(is, will, diff.Secret), hide(will, is, diff.ChangedSecret)
}
