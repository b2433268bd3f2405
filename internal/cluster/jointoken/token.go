// Package jointoken creates and revokes the bootstrap tokens that hosts join with. Each token is bound to one Node:
// package certificates does not approve a certificate for any other Node with it.
package jointoken

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/nodename"
)

// MaxTTL is the maximum lifetime of a join token.
const MaxTTL = 15 * time.Minute

// Author and the run ID are the description of the join tokens of a run.
const Author = "kubeone: join token of run "

// Issuer creates and revokes tokens in a cluster.
type Issuer struct {
	Kubernetes kubernetes.Interface
}

// The form of a bootstrap token. Source: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
const (
	idLength     = 6
	secretLength = 16
	alphabet     = "abcdefghijklmnopqrstuvwxyz0123456789"
	group        = "system:bootstrappers:kubeadm:default-node-token" // the group in the RBAC rules of kubeadm
	prefix       = "bootstrap-token-"
	description  = "description"
	expiration   = "expiration"
	user         = "system:bootstrap:" // user name of a client with the token, followed by the token ID
)

// NodeAnnotation on the Secret of a token contains the name of the only Node that may join with it.
const NodeAnnotation = "kubeone.k8c.io/join-token-for"

// New returns a random bootstrap token, such as "abcdef.0123456789abcdef", and its ID. The token is secret; the ID is
// not. New does no I/O.
func New() (token, id string) {
	id = randomText(idLength)
	return id + "." + randomText(secretLength), id
}

// randomText returns n characters, chosen uniformly at random from the alphabet.
func randomText(n int) string {
	const limit = 256 / len(alphabet) * len(alphabet) // greater bytes would favor the first letters
	var text strings.Builder
	for one := make([]byte, 1); text.Len() < n; {
		_, _ = rand.Read(one) // never fails: it would crash the program instead
		if int(one[0]) < limit {
			text.WriteByte(alphabet[int(one[0])%len(alphabet)])
		}
	}
	return text.String()
}

// CreateJoinToken creates a bootstrap token for the Node in the claim. The ttl is at most MaxTTL. It fails if the host
// must not become that Node, because the name or an existing Node belongs to another host. The token is secret; its ID
// is not. The token description contains the run ID.
func (c Issuer) CreateJoinToken(ctx context.Context, runID string, claim nodename.Claim, ttl time.Duration) (
	token, id string, err error) {
	if err := claim.Check(); err != nil {
		return "", "", apicall.Wrap("create a join token for", claim.Node, err)
	}
	if err := apicall.Retry(ctx, "create a join token for", claim.Node, func(ctx context.Context) error {
		return c.CheckNode(ctx, claim)
	}); err != nil {
		return "", "", err
	}
	if ttl <= 0 || ttl > MaxTTL {
		return "", "",
			apicall.Wrap("create a join token", "",
				fmt.Errorf("its lifetime %s is not allowed; the maximum is %s", ttl, MaxTTL))
	}
	token, id = New()
	secret := newTokenSecret(token, runID, claim.Node, time.Now().Add(ttl))
	err = apicall.Retry(ctx, "create join token", id, func(ctx context.Context) error {
		_, err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret,
			metav1.CreateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsAlreadyExists(err) { // an earlier attempt, whose answer was lost, created it: the name is random
			return nil
		}
		return err
	})
	if err != nil {
		return "", "", err
	}
	return token, id, nil
}

// CheckNode returns an error if a Node with the name in the claim exists and belongs to another host. If the API does
// not answer, the error is Transient.
func (c Issuer) CheckNode(ctx context.Context, claim nodename.Claim) error {
	n, err := c.Kubernetes.CoreV1().Nodes().Get(ctx, claim.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return apicall.Wrap("read Node", claim.Node, err)
	}
	var addresses []string
	for _, a := range n.Status.Addresses {
		addresses = append(addresses, a.Address)
	}
	return claim.CheckNode(addresses, n.Labels)
}

func newTokenSecret(token, runID, node string, expires time.Time) *corev1.Secret {
	id, secret, _ := strings.Cut(token, ".")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: prefix + id, Namespace: metav1.NamespaceSystem, Annotations: map[string]string{NodeAnnotation: node},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id":                       []byte(id),
			"token-secret":                   []byte(secret),
			expiration:                       []byte(expires.UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups":              []byte(group),
			description:                      []byte(Author + runID),
		},
	}
}

// NodeOf returns the Node that may join with the token of this user. It fails if the token does not exist, has expired,
// or is not bound to a Node, such as a token from `kubeadm token create`.
func (c Issuer) NodeOf(ctx context.Context, username string, now time.Time) (node string, err error) {
	id, ok := strings.CutPrefix(username, user)
	if !ok || len(id) != idLength || strings.Trim(id, alphabet) != "" {
		return "", fmt.Errorf("it was created by %q, which is not a join token user", username)
	}
	secret, err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, prefix+id, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("its join token %s was revoked", id)
	case err != nil:
		return "", apicall.Wrap("read join token", id, err)
	case secret.Type != corev1.SecretTypeBootstrapToken || secret.Annotations[NodeAnnotation] == "":
		return "", fmt.Errorf("its join token %s is not bound to a Node, so kubeone did not create it", id)
	}
	expires, err := time.Parse(time.RFC3339, string(secret.Data[expiration]))
	if err != nil || !now.Before(expires) {
		return "", fmt.Errorf("its join token %s has expired", id)
	}
	return secret.Annotations[NodeAnnotation], nil
}

// RevokeJoinToken deletes a token. It returns nil if the token does not exist.
func (c Issuer) RevokeJoinToken(ctx context.Context, id string) error {
	return apicall.Retry(ctx, "revoke join token", id, func(ctx context.Context) error {
		err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, prefix+id, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// RevokeJoinTokens deletes the join tokens of this run. Tokens of other runs stay, because those runs may be joining
// workers at the same time. Tokens of killed runs expire.
func (c Issuer) RevokeJoinTokens(ctx context.Context, runID string) error {
	var secrets *corev1.SecretList
	err := apicall.Retry(ctx, "list join tokens", "", func(ctx context.Context) (err error) {
		secrets, err = c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
		return err
	})
	if err != nil {
		return err
	}
	var failures []error
	for _, s := range secrets.Items {
		if s.Type == corev1.SecretTypeBootstrapToken && string(s.Data[description]) == Author+runID {
			failures = append(failures, c.RevokeJoinToken(ctx, strings.TrimPrefix(s.Name, prefix)))
		}
	}
	return errors.Join(failures...)
}
