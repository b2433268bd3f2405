package secrets

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kubeone/internal/cluster/apicall"
)

// RenewTokenSecrets replaces service account tokens in Secrets that were signed with a dropped key, which is identified
// by its "kid". The token controller creates the new tokens. RenewTokenSecrets waits for each of them, and then calls
// tell with the Secret.
func (r Rewriter) RenewTokenSecrets(ctx context.Context, dropped []string, tell func(namespace, name string)) error {
	opts := metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken), Limit: pageSize}
	for {
		var list *unstructured.UnstructuredList
		err := apicall.Retry(ctx, "list Secrets with tokens", "", func(ctx context.Context) (err error) {
			list, err = r.Dynamic.Resource(secretsResource()).List(ctx, opts)
			if apierrors.IsResourceExpired(err) { // start again; renewed Secrets are skipped
				opts.Continue = ""
				list, err = r.Dynamic.Resource(secretsResource()).List(ctx, opts)
			}
			return err
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if key := signingKeyOf(&list.Items[i]); key == "" || !slices.Contains(dropped, key) {
				continue
			}
			if err := r.renewToken(ctx, &list.Items[i], dropped); err != nil {
				return err
			}
			tell(list.Items[i].GetNamespace(), list.Items[i].GetName())
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return nil
		}
	}
}

// renewToken removes the token from a Secret and waits until the token controller has added a new one. It returns nil
// if the Secret is deleted.
func (r Rewriter) renewToken(ctx context.Context, secret *unstructured.Unstructured, dropped []string) error {
	client := r.Dynamic.Resource(secretsResource()).Namespace(secret.GetNamespace())
	patch, err := json.Marshal([]map[string]string{
		{"op": "test", "path": "/metadata/uid", "value": string(secret.GetUID())},
		{"op": "test", "path": "/data/token", "value": tokenOf(secret)},
		{"op": "remove", "path": "/data/token"},
	})
	if err != nil {
		return err
	}
	name := secret.GetNamespace() + "/" + secret.GetName()
	err = apicall.Retry(ctx, "remove the token from Secret", name, func(ctx context.Context) error {
		_, err := client.Patch(ctx, secret.GetName(), types.JSONPatchType, patch,
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
			return nil // already renewed, or deleted
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := client.Get(ctx, secret.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return nil
	}
	return apicall.Await(ctx, client, "wait for a new token in Secret", secret.GetName(),
		func(s *unstructured.Unstructured) (bool, string, error) {
			key := signingKeyOf(s)
			return key != "" && !slices.Contains(dropped, key), "it has no new token yet", nil
		})
}

// tokenOf returns the token in a Secret, in base64; "" if there is none.
func tokenOf(secret *unstructured.Unstructured) string {
	token, _, _ := unstructured.NestedString(secret.Object, "data", "token")
	return token
}

// signingKeyOf returns the "kid" of the key that signed the token in a Secret; "" if it cannot be read.
func signingKeyOf(secret *unstructured.Unstructured) string {
	token, err := base64.StdEncoding.DecodeString(tokenOf(secret))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(token), ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		return ""
	}
	var header struct {
		Key string `json:"kid"`
	}
	if json.Unmarshal(text, &header) != nil {
		return ""
	}
	return header.Key
}
