// Package jointoken makes and revokes the bootstrap tokens with which hosts join. Each is for one Node: package
// certificates approves no other Node's certificate for it.
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

// MaxTTL is the longest life of a join token.
const MaxTTL = 15 * time.Minute

// Author and the run's ID are the description of every join token that a run makes.
const Author = "kubeone: join token of run "

// Issuer makes tokens in a cluster and revokes them.
type Issuer struct {
	Kubernetes kubernetes.Interface
}

// The form of a bootstrap token. Source: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
const (
	iDLength     = 6
	secretLength = 16
	alphabet     = "abcdefghijklmnopqrstuvwxyz0123456789"
	group        = "system:bootstrappers:kubeadm:default-node-token" // the group that kubeadm's own rules are about
	prefix       = "bootstrap-token-"
	description  = "description"
	expiration   = "expiration"
	user         = "system:bootstrap:" // and a token's ID: as whom the API knows its bearer
)

// NodeAnnotation on a token's Secret names the only Node that may join with it.
const NodeAnnotation = "kubeone.k8c.io/join-token-for"

// New makes a bootstrap token ("abcdef.0123456789abcdef", a secret) and its ID, which is none. It asks nobody.
func New() (token, id string) {
	id = randomText(iDLength)
	return id + "." + randomText(secretLength), id
}

// randomText is n characters of the token's alphabet, each equally likely.
func randomText(n int) string {
	const fair = 256 / len(alphabet) * len(alphabet) // bytes from here on would favour the first letters
	var text strings.Builder
	for one := make([]byte, 1); text.Len() < n; {
		_, _ = rand.Read(one) // never fails: it ends the program instead
		if int(one[0]) < fair {
			text.WriteByte(alphabet[int(one[0])%len(alphabet)])
		}
	}
	return text.String()
}

// CreateJoinToken makes a bootstrap token with which the claim's Node may join, for at most MaxTTL. It is an error if
// the host must not be that Node: the name is another's, or a Node of that name exists that is not the host's. The
// token is a secret; its ID is not. The run's ID goes into the token's description.
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
			apicall.Wrap("create a join token", "", fmt.Errorf("it would live %s; allowed is up to %s", ttl, MaxTTL))
	}
	token, id = New()
	secret := secretOf(token, runID, claim.Node, time.Now().Add(ttl))
	err = apicall.Retry(ctx, "create join token", id, func(ctx context.Context) error {
		_, err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret,
			metav1.CreateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsAlreadyExists(err) { // our own first attempt, whose answer was lost: the name is random
			return nil
		}
		return err
	})
	if err != nil {
		return "", "", err
	}
	return token, id, nil
}

// CheckNode returns why the host must not be the claim's Node by the Node that exists; nil if it may, or there is none.
// That the API does not answer is a transient error.
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

func secretOf(token, runID, node string, expires time.Time) *corev1.Secret {
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

// NodeOf is the Node that may join with the token by which the API knows that user. It is an error if there is no such
// token, if it has expired, or if it is for no Node: such as those of `kubeadm token create`.
func (c Issuer) NodeOf(ctx context.Context, username string, now time.Time) (node string, err error) {
	id, ok := strings.CutPrefix(username, user)
	if !ok || len(id) != iDLength || strings.Trim(id, alphabet) != "" {
		return "", fmt.Errorf("it was made by %q, which is not the bearer of a join token", username)
	}
	secret, err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, prefix+id, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("its join token %s was revoked", id)
	case err != nil:
		return "", apicall.Wrap("read join token", id, err)
	case secret.Type != corev1.SecretTypeBootstrapToken || secret.Annotations[NodeAnnotation] == "":
		return "", fmt.Errorf("its join token %s is not for a single Node: kubeone did not make it", id)
	}
	expires, err := time.Parse(time.RFC3339, string(secret.Data[expiration]))
	if err != nil || !now.Before(expires) {
		return "", fmt.Errorf("its join token %s has expired", id)
	}
	return secret.Annotations[NodeAnnotation], nil
}

// RevokeJoinToken deletes a token. One that is gone already is no error.
func (c Issuer) RevokeJoinToken(ctx context.Context, id string) error {
	return apicall.Retry(ctx, "revoke join token", id, func(ctx context.Context) error {
		err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, prefix+id, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// RevokeJoinTokens deletes every join token that the run made. Those of other runs stay: such a run may be joining a
// worker at the same time; the token of one that was killed runs out by itself.
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
