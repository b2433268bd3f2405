// Package secrets rewrites a cluster's Secrets unchanged, so that the API server stores them with its current
// encryption. The API server writes an unchanged object to etcd only if it is stored differently.
package secrets

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"kubeone/internal/cluster/apicall"
)

// page is the number of Secrets read at a time. Each may have a mebibyte.
const pageSize = 100

// Rewriter rewrites Secrets.
type Rewriter struct {
	Dynamic dynamic.Interface
}

// RewriteSecrets rewrites every Secret, page by page, and calls tell after each page with the number so far. Concurrent
// changes and deletions by others win. A call after an interrupted one repeats all, at little cost. Fields unknown to
// this program are kept.
func (r Rewriter) RewriteSecrets(ctx context.Context, tell func(written int)) error {
	written := 0
	for next := ""; ; {
		var list *unstructured.UnstructuredList
		err := apicall.Retry(ctx, "list Secrets", "", func(ctx context.Context) (err error) {
			opts := metav1.ListOptions{Limit: pageSize, Continue: next}
			list, err = r.Dynamic.Resource(secretsResource()).List(ctx, opts)
			if apierrors.IsResourceExpired(err) { // starts again; rewritten Secrets cost little
				next, opts.Continue = "", ""
				list, err = r.Dynamic.Resource(secretsResource()).List(ctx, opts)
			}
			return err
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := r.rewriteSecret(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
		written += len(list.Items)
		tell(written)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// rewriteSecret rewrites one Secret. If it has changed since it was read, its newest version is rewritten: that change
// may have gone through an API server with the old configuration.
func (r Rewriter) rewriteSecret(ctx context.Context, secret *unstructured.Unstructured) error {
	client := r.Dynamic.Resource(secretsResource()).Namespace(secret.GetNamespace())
	read := secret
	return apicall.Retry(ctx, "rewrite Secret", secret.GetNamespace()+"/"+secret.GetName(),
		func(ctx context.Context) error {
			if read == nil {
				found, err := client.Get(ctx, secret.GetName(), metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				if err != nil {
					return err
				}
				read = found
			}
			_, err := client.Update(ctx, read, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
			switch {
			case apierrors.IsNotFound(err):
				return nil // deleted; a Secret of the same name was written since
			case err != nil:
				read = nil
			}
			return err
		})
}

func secretsResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}
