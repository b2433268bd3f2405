package ssa

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/cluster/apicall"
)

// Create creates an object. If an object with that name exists, it stays unchanged, and Create returns nil.
func (c *Applier) Create(ctx context.Context, o *unstructured.Unstructured) error {
	return c.withRetry(ctx, "create", o, func(ctx context.Context) error {
		where, err := c.Resource(o)
		if err != nil {
			return err
		}
		_, err = where.Create(ctx, o, metav1.CreateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// Merge applies a JSON merge patch to an object. Only the kind, namespace and name of o are used.
func (c *Applier) Merge(ctx context.Context, o *unstructured.Unstructured, patch []byte) error {
	return c.withRetry(ctx, "change", o, func(ctx context.Context) error {
		where, err := c.Resource(o)
		if err != nil {
			return err
		}
		_, err = where.Patch(ctx, o.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		return err
	})
}

// Delete deletes objects and the objects that they own, in reverse order. It ignores objects that do not exist.
func (c *Applier) Delete(ctx context.Context, objects []unstructured.Unstructured) error {
	policy := metav1.DeletePropagationBackground
	for i := len(objects) - 1; i >= 0; i-- {
		o := &objects[i]
		err := c.withRetry(ctx, "delete", o, func(ctx context.Context) error {
			where, err := c.Resource(o)
			if err != nil {
				return err
			}
			err = where.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// DeleteIf deletes an object and the objects that it owns if it exists and allowed returns true for its live form. It
// never deletes an object that has replaced the checked one.
func (c *Applier) DeleteIf(ctx context.Context, o *unstructured.Unstructured,
	allowed func(live *unstructured.Unstructured) bool) error {
	policy := metav1.DeletePropagationBackground
	return c.withRetry(ctx, "delete", o, func(ctx context.Context) error {
		where, err := c.anyVersion(o)
		if err != nil || where == nil {
			return err
		}
		live, err := where.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil || !allowed(live) {
			return err
		}
		uid := live.GetUID()
		err = where.Delete(ctx, o.GetName(), metav1.DeleteOptions{
			PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another one has its name now
			return nil
		}
		return err
	})
}

// IsManaged reports whether kubeone has applied the live object.
func IsManaged(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == apicall.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	})
}

func (c *Applier) withRetry(ctx context.Context, what string, o *unstructured.Unstructured,
	do func(context.Context) error,
) error {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, apicall.OpTimeout)
	defer cancel()
	return apicall.Retry(ctx, what, Describe(o), do)
}
