package machines

import (
	"context"
	_ "embed" // the policies
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterdefinitions "kubeone/api/cluster/v1alpha1/crds"
	kubeonedefinitions "kubeone/api/kubeone/v1alpha1/crds"
	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/ssa"
)

// revision must be increased with every change of a definition. A test checks this.
const revision = 11

// Definer defines the kinds of clusters as objects and of Machines.
type Definer struct {
	Applier *ssa.Applier
}

// DefineKinds creates or updates the namespace, the definitions of the kinds Cluster, Machine, MachineSet,
// MachineDeployment and Host, and two policies: one prevents a host without a Machine from creating a Node, and one
// prevents the deletion of a Cluster by mistake. It does not change definitions with a newer revision. It waits until
// the API serves the kinds.
//
// If a definition belongs to another program, or another manager has changed a field, DefineKinds writes nothing and
// returns an *apicall.Error of class Operator that names the definitions.
func (d Definer) DefineKinds(ctx context.Context) error {
	objects, err := definedObjects()
	if err != nil {
		return err
	}
	var apply []unstructured.Unstructured
	var foreign []string
	for _, o := range objects[1:] {
		existing, err := d.readDefinition(ctx, &o)
		if err != nil {
			return err
		}
		if existing == nil {
			apply = append(apply, o)
			continue
		}
		switch applied, ours := Revision(existing); {
		case !ours:
			foreign = append(foreign, ssa.Describe(existing))
		case applied <= revision:
			apply = append(apply, o)
		}
	}
	if len(foreign) > 0 {
		return &apicall.Error{Op: "define the kinds of Machines", Class: apicall.Operator, Err: &foreignError{foreign}}
	}
	if err := d.Applier.FindConflicts(ctx, apply); err != nil {
		return err
	}
	if _, err := d.Applier.Apply(ctx, objects[:1]); err != nil { // the controllers' addon also forces it
		return err
	}
	_, err = d.Applier.ApplyOwn(ctx, apply)
	return err
}

// foreignError reports definitions that belong to another program.
type foreignError struct{ names []string }

func (e *foreignError) Error() string {
	return strings.Join(e.names, ", ") +
		" belong to another program, such as machine-controller; kubeone has changed " +
		"nothing. The two programs cannot share these kinds: do not use a host pool, or delete the Machines, the other " +
		"program and these definitions, and try again"
}

// readDefinition returns the live object; nil if it does not exist.
func (d Definer) readDefinition(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured,
	error) {
	where, err := d.Applier.Resource(o)
	if err != nil {
		return nil, err
	}
	existing, err := where.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none exists, which existing no error
	}
	return existing, apicall.Wrap("read the definition "+o.GetName(), "", err)
}

//go:embed policy.yaml
var policy string

// definedObjects returns the namespace, the CustomResourceDefinitions, and the policies, in this order.
func definedObjects() ([]unstructured.Unstructured, error) {
	namespace := unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(Namespace)
	namespace.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	out := []unstructured.Unstructured{namespace}
	for _, files := range []fs.FS{clusterdefinitions.Files, kubeonedefinitions.Files} {
		names, err := fs.Glob(files, "*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			o := unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &o.Object); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out = append(out, o)
		}
	}
	policies, err := resources.Render(policy, nil)
	if err != nil {
		return nil, fmt.Errorf("policy.yaml: %w", err)
	}
	for _, p := range policies {
		out = append(out, unstructured.Unstructured{Object: p})
	}
	for _, o := range out[1:] { // except the namespace: an addon also applies it, and would remove the annotation
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[RevisionAnnotation] = strconv.Itoa(revision)
		o.SetAnnotations(annotations)
	}
	return out, nil
}
