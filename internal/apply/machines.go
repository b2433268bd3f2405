package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/cluster/record"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// createMachines creates a MachineDeployment from the manifest.
func (r *Run) createMachines(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.CreateMachinesParams](s.Intent)
	for _, d := range r.Want.MachineDeployments {
		if d.Namespace != p.Namespace || d.Name != p.Name {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(d.Object)); err != nil {
			return fmt.Errorf("MachineDeployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		return client.Create(ctx, o)
	}
	return fmt.Errorf("unknown MachineDeployment %s/%s", p.Namespace, p.Name)
}

// upgradeMachines sets the kubelet version of a MachineDeployment. The controllers then replace or upgrade its
// Machines.
func (r *Run) upgradeMachines(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.UpgradeMachinesParams](s.Intent)
	type object = map[string]any
	patch, err := json.Marshal(object{"spec": object{"template": object{"spec": object{
		"versions": object{"kubelet": p.Kubelet},
	}}}})
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cluster.k8s.io/v1alpha1")
	o.SetKind("MachineDeployment")
	o.SetNamespace(p.Namespace)
	o.SetName(p.Name)
	return client.Merge(ctx, o, patch)
}

// prepareDeletion allows the deletion of the Clusters among the objects, and lets their Machines go without their
// hosts. It first pauses the Clusters: otherwise their controller would remove the hosts of deleted Machines.
func prepareDeletion(ctx context.Context, client API, objects []observed.AddonObject) error {
	type values = map[string]any
	for _, change := range []struct {
		kind  string
		patch values
	}{
		{"Cluster", values{"annotations": values{
			v1alpha1.AllowDeletionAnnotation: "true", v1alpha1.PausedAnnotation: "",
		}}},
		{"Machine", values{"finalizers": nil}},
	} {
		patch, err := json.Marshal(values{"metadata": change.patch})
		if err != nil {
			return err
		}
		for _, d := range objects {
			o := &unstructured.Unstructured{}
			o.SetAPIVersion(d.APIVersion)
			o.SetKind(d.Kind)
			o.SetNamespace(d.Namespace)
			o.SetName(d.Name)
			if d.Kind != change.kind || o.GroupVersionKind().GroupVersion() != v1alpha1.GroupVersion() {
				continue
			}
			if err := client.Merge(ctx, o, patch); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// removeAddon deletes the objects of an addon.
func (r *Run) removeAddon(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.RemoveAddonParams](s.Intent)
	if p.Addon == desired.ClusterAddon {
		if err := prepareDeletion(ctx, client, p.Delete); err != nil {
			return err
		}
	}
	if err := client.RemoveAddon(ctx, p.Addon, p.Delete); err != nil {
		return err
	}
	return client.UpdateRecord(ctx, func(record *record.Record) error {
		delete(record.Addons, p.Addon)
		record.AddRun(r.history.currentEntry())
		return nil
	})
}
