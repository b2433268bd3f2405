package cluster

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
)

// MaxTokenTTL is the longest life of a join token.
const MaxTokenTTL = 15 * time.Minute

// TokenAuthor and the run's ID are the description of every join token that a run makes.
const TokenAuthor = "kubeone: join token of run "

// The form of a bootstrap token. Source: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
const (
	tokenIDLength     = 6
	tokenSecretLength = 16
	tokenAlphabet     = "abcdefghijklmnopqrstuvwxyz0123456789"
	tokenGroup        = "system:bootstrappers:kubeadm:default-node-token" // the group that kubeadm's own rules are about
	tokenPrefix       = "bootstrap-token-"
	tokenDescription  = "description"
)

// NewToken makes a bootstrap token ("abcdef.0123456789abcdef", a secret) and its ID, which is none. It asks nobody.
func NewToken() (token, id string) {
	id = randomText(tokenIDLength)
	return id + "." + randomText(tokenSecretLength), id
}

// randomText is n characters of the token's alphabet, each equally likely.
func randomText(n int) string {
	const fair = 256 / len(tokenAlphabet) * len(tokenAlphabet) // bytes from here on would favour the first letters
	var text strings.Builder
	for one := make([]byte, 1); text.Len() < n; {
		_, _ = rand.Read(one) // never fails: it ends the program instead
		if int(one[0]) < fair {
			text.WriteByte(tokenAlphabet[int(one[0])%len(tokenAlphabet)])
		}
	}
	return text.String()
}

// CreateJoinToken makes a bootstrap token with which hosts may join, for at most MaxTokenTTL. The token is a secret; its
// ID is not. The run's ID goes into the token's description.
func (c *Client) CreateJoinToken(ctx context.Context, runID string, ttl time.Duration) (token, id string, err error) {
	if ttl <= 0 || ttl > MaxTokenTTL {
		return "", "", fail("create a join token", "", fmt.Errorf("it would live %s; allowed is up to %s", ttl, MaxTokenTTL))
	}
	token, id = NewToken()
	secret := tokenSecret(token, runID, time.Now().Add(ttl))
	err = retry(ctx, "create join token", id, func(ctx context.Context) error {
		_, err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, secret, metav1.CreateOptions{FieldManager: FieldManager})
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

func tokenSecret(token, runID string, expires time.Time) *corev1.Secret {
	id, secret, _ := strings.Cut(token, ".")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tokenPrefix + id, Namespace: metav1.NamespaceSystem},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id":                       []byte(id),
			"token-secret":                   []byte(secret),
			"expiration":                     []byte(expires.UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"),
			"usage-bootstrap-signing":        []byte("true"),
			"auth-extra-groups":              []byte(tokenGroup),
			tokenDescription:                 []byte(TokenAuthor + runID),
		},
	}
}

// WaitTokenSigned waits until the cluster has published its address signed with the token, which `kubeadm join` needs
// when it finds the cluster by token. Waiting here takes milliseconds; kubeadm looks again only every five seconds.
func (c *Client) WaitTokenSigned(ctx context.Context, id string) error {
	return awaitOne(ctx, c.Kubernetes.CoreV1().ConfigMaps(metav1.NamespacePublic), "wait for the signature of join token "+id+" in", "cluster-info",
		func(info *corev1.ConfigMap) (bool, string, error) {
			_, signed := info.Data["jws-kubeconfig-"+id]
			return signed, "it is not signed with this token", nil
		})
}

// RevokeJoinToken deletes a token. One that is gone already is no error.
func (c *Client) RevokeJoinToken(ctx context.Context, id string) error {
	return retry(ctx, "revoke join token", id, func(ctx context.Context) error {
		err := c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, tokenPrefix+id, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// RevokeJoinTokens deletes every join token that the run made. Those of other runs stay: such a run may be joining a worker at
// the same time; the token of one that was killed runs out by itself.
func (c *Client) RevokeJoinTokens(ctx context.Context, runID string) error {
	var secrets *corev1.SecretList
	err := retry(ctx, "list join tokens", "", func(ctx context.Context) (err error) {
		secrets, err = c.Kubernetes.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
		return err
	})
	if err != nil {
		return err
	}
	var failures []error
	for _, s := range secrets.Items {
		if s.Type == corev1.SecretTypeBootstrapToken && string(s.Data[tokenDescription]) == TokenAuthor+runID {
			failures = append(failures, c.RevokeJoinToken(ctx, strings.TrimPrefix(s.Name, tokenPrefix)))
		}
	}
	return errors.Join(failures...)
}
