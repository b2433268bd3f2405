// Package secrets rewrites the Secrets in a cluster without changing them, so that the API server stores them with its
// current encryption. The API server writes an unchanged object to etcd only if its stored form would differ.
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

// pageSize is the number of Secrets per request. A Secret can be as large as one mebibyte.
const pageSize = 100

// Rewriter rewrites Secrets.
type Rewriter struct {
	Dynamic dynamic.Interface
}

// RewriteSecrets rewrites all Secrets page by page, and calls tell after each page with the number of Secrets so far.
// It never overwrites concurrent changes and deletions. After an interruption, the next call starts from the beginning,
// which is cheap. Fields unknown to this program are kept.
func (r Rewriter) RewriteSecrets(ctx context.Context, tell func(written int)) error {
	written := 0
	for next := ""; ; {
		var list *unstructured.UnstructuredList
		err := apicall.Retry(ctx, "list Secrets", "", func(ctx context.Context) (err error) {
			opts := metav1.ListOptions{Limit: pageSize, Continue: next}
			list, err = r.Dynamic.Resource(secretsResource()).List(ctx, opts)
			if apierrors.IsResourceExpired(err) { // start again, which is cheap for Secrets that are already rewritten
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

// rewriteSecret rewrites one Secret. If the Secret has changed since it was read, it rewrites the latest version,
// because an API server with the old configuration may have stored that change.
func (r Rewriter) rewriteSecret(ctx context.Context, secret *unstructured.Unstructured) error {
	client := r.Dynamic.Resource(secretsResource()).Namespace(secret.GetNamespace())
	current := secret
	return apicall.Retry(ctx, "rewrite Secret", secret.GetNamespace()+"/"+secret.GetName(),
		func(ctx context.Context) error {
			if current == nil {
				latest, err := client.Get(ctx, secret.GetName(), metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				if err != nil {
					return err
				}
				current = latest
			}
			_, err := client.Update(ctx, current, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
			switch {
			case apierrors.IsNotFound(err):
				return nil // deleted; a new Secret with this name uses the current encryption
			case err != nil:
				current = nil
			}
			return err
		})
}

func secretsResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}
