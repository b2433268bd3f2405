//go:build e2e

package machines

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/apicall"
	kinds "kubeone/internal/cluster/machines"
	"kubeone/internal/engine"
	"kubeone/internal/machines/manager"
	"kubeone/internal/machines/pool"
	provide "kubeone/internal/machines/provider/ssh"
)

// foreignDefinition returns a definition like machine-controller's: without a schema, and without the status
// subresource.
func foreignDefinition(kind, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": plural + ".cluster.k8s.io",
			"annotations": map[string]any{
				"api-approved.kubernetes.io": "unapproved, legacy API",
			},
		},
		"spec": map[string]any{
			"group": "cluster.k8s.io", "scope": "Namespaced",
			"names": map[string]any{
				"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind),
			},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

// TestForeignDefinitionsAreKept adds a host to a pool, and starts controllers, in a cluster with
// machine-controller's definitions and one of its Machines.
func TestForeignDefinitionsAreKept(t *testing.T) {
	byAnother := metav1.CreateOptions{FieldManager: "machine-controller"}
	_, access, c := startAPI(t)
	definitions := c.Dynamic.Resource(kinds.Definitions())
	for kind, plural := range map[string]string{
		"Machine": "machines", "MachineSet": "machinesets", "MachineDeployment": "machinedeployments",
	} {
		if _, err := definitions.Create(t.Context(), foreignDefinition(kind, plural), byAnother); err != nil {
			t.Fatal(err)
		}
	}
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": "cloud-1", "namespace": namespace},
		"spec": map[string]any{"providerSpec": map[string]any{"value": map[string]any{
			"cloudProvider": "aws", "cloudProviderSpec": map[string]any{"region": map[string]any{"secretKeyRef": "x"}},
		}}},
		"status": map[string]any{"nodeRef": map[string]any{"name": "cloud-1"}},
	}}
	machines := c.Dynamic.Resource(kinds.Machines()).Namespace(namespace)
	awaitTrue(t, "a Machine is made", func() bool {
		_, err := machines.Create(t.Context(), m, byAnother)
		return err == nil || apierrors.IsAlreadyExists(err)
	})

	refuses := func(what string, err error) {
		t.Helper()
		var classed *apicall.Error
		if !errors.As(err, &classed) || classed.Class != apicall.Operator ||
			!strings.Contains(err.Error(), "machinedeployments.cluster.k8s.io") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refuses("host add", c.DefineKinds(t.Context()))
	refuses("the controllers", manager.Run(t.Context(), manager.Options{
		Site: provide.Site{
			Access: access, Holder: "first",
			Releases: func(context.Context, string) (engine.Releases, error) { return nil, errors.New("none") },
		},
		Metrics: "0", Health: "0", Log: slog.New(slog.DiscardHandler), SkipNameValidation: true,
	}))
	if of := writtenByKubeone(t, c); len(of) > 0 {
		t.Errorf("it has written to %q", of)
	}
	if _, err := definitions.Get(t.Context(), "hosts.kubeone.k8c.io", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Hosts are defined: %v", err)
	}
	if _, err := c.Kubernetes.CoreV1().Namespaces().Get(t.Context(), pool.Namespace, metav1.GetOptions{}); !apierrors.
		IsNotFound(err) {
		t.Errorf("the namespace is there: %v", err)
	}
}

// writtenByKubeone returns the names of definitions and Machines with a field that kubeone manages.
func writtenByKubeone(t *testing.T, c *cluster.Client) []string {
	t.Helper()
	all, err := c.Dynamic.Resource(kinds.Definitions()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	its, err := c.Dynamic.Resource(kinds.Machines()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range append(all.Items, its.Items...) {
		for _, m := range o.GetManagedFields() {
			if strings.HasPrefix(m.Manager, apicall.FieldManager) {
				out = append(out, o.GetName())
			}
		}
	}
	return out
}

// TestEditedDefinitionIsKept edits one of kubeone's definitions: the next start reports it by name, and
// writes nothing. After the edit is reverted, the start succeeds.
func TestEditedDefinitionIsKept(t *testing.T) {
	_, _, c := startAPI(t)
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	definitions := c.Dynamic.Resource(kinds.Definitions())
	const name = "machinesets.cluster.k8s.io"
	change := func(short string) {
		t.Helper()
		is, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		was, _, err := unstructured.NestedFieldCopy(is.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		columns := was.([]any)[0].(map[string]any)["additionalPrinterColumns"].([]any)
		columns[0].(map[string]any)["name"] = short
		if err := unstructured.SetNestedField(is.Object, was, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		by := metav1.UpdateOptions{FieldManager: "kubectl-edit"}
		if _, err := definitions.Update(t.Context(), is, by); err != nil {
			t.Fatal(err)
		}
	}
	is, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := unstructured.NestedSlice(is.Object, "spec", "versions")
	had := all[0].(map[string]any)["additionalPrinterColumns"].([]any)[0].(map[string]any)["name"].(string)
	change("EDITED")
	var classed *apicall.Error
	if err := c.DefineKinds(t.Context()); !errors.As(err, &classed) || classed.Class != apicall.Operator ||
		!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "kubectl-edit") {
		t.Errorf("edited: %v", err)
	}
	change(had)
	if err := c.DefineKinds(t.Context()); err != nil {
		t.Errorf("the edit is undone: %v", err)
	}
}
