// Package secrets writes a cluster's Secrets again as they are, so that the API server stores them as it stores them
// now: an update that changes nothing is written to etcd only where it is stored otherwise.
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

// page is how many Secrets are read at a time: each may have a mebibyte.
const page = 100

// Rewriter writes them again.
type Rewriter struct {
	Dynamic dynamic.Interface
}

// RewriteSecrets writes every Secret again, page by page, and tells after each page how many that are by now. Who
// changes or deletes one at the same time wins. What a call that was interrupted has done is nothing for the next one
// to do. Objects are taken as they come, with fields that this program does not know.
func (r Rewriter) RewriteSecrets(ctx context.Context, tell func(written int)) error {
	written := 0
	for next := ""; ; {
		var list *unstructured.UnstructuredList
		err := apicall.Retry(ctx, "list Secrets", "", func(ctx context.Context) (err error) {
			opts := metav1.ListOptions{Limit: page, Continue: next}
			list, err = r.Dynamic.Resource(secretsResource()).List(ctx, opts)
			if apierrors.IsResourceExpired(err) { // what has been written already is passed over quickly
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

// rewriteSecret writes one Secret. Of one that somebody has changed since it was read the newest is written: they may
// have written through an API server that is about to end.
func (r Rewriter) rewriteSecret(ctx context.Context, secret *unstructured.Unstructured) error {
	client := r.Dynamic.Resource(secretsResource()).Namespace(secret.GetNamespace())
	read := secret
	return apicall.Retry(ctx, "write Secret again", secret.GetNamespace()+"/"+secret.GetName(),
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
				return nil // it is gone, and what has its name now is another one, written since
			case err != nil:
				read = nil
			}
			return err
		})
}

func secretsResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}
