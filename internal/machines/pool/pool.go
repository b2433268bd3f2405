// Package pool manages the host pool of a cluster for operators: it creates the SSH key of the cluster, and adds and
// removes hosts. Package provider/ssh assigns hosts to Machines.
package pool

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/machines"
)

// Namespace contains the SSH key of the cluster and the Lease of its controllers.
const Namespace = machines.Namespace

// KeySecret is the Secret in Namespace that contains the private SSH key of the cluster. The key gives root access to
// every host in the pool.
const KeySecret = "ssh-key"

// Key returns the SSH key of the cluster for the hosts in its pool. It creates the key if there is none. Concurrent
// calls, including those in other processes, return the same key.
func Key(ctx context.Context, kube kubernetes.Interface) (ssh.Signer, error) {
	secrets := kube.CoreV1().Secrets(Namespace)
	secret, err := secrets.Get(ctx, KeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		var created *corev1.Secret
		if created, err = newKey(); err != nil {
			return nil, err
		}
		secret, err = secrets.Create(ctx, created, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another process created it first
			secret, err = secrets.Get(ctx, KeySecret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, apicall.Wrap("read or create the cluster's SSH key", "", err)
	}
	signer, err := ssh.ParsePrivateKey(secret.Data[corev1.SSHAuthPrivateKey])
	if err != nil {
		// The parser's error may quote the key.
		return nil, fmt.Errorf("key %s of Secret %s/%s is not a valid, unencrypted private key",
			corev1.SSHAuthPrivateKey, Namespace, KeySecret)
	}
	return signer, nil
}

func newKey() (*corev1.Secret, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, keyComment)
	if err != nil {
		return nil, err
	}
	immutable := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: KeySecret},
		Type:       corev1.SecretTypeSSHAuth,
		Immutable:  &immutable,
		Data:       map[string][]byte{corev1.SSHAuthPrivateKey: pem.EncodeToMemory(block)},
	}, nil
}

// keyComment is the comment after the key in authorized_keys.
const keyComment = "kubeone-pool"

// errNoPool reports that the kind Host is not defined in the cluster.
var errNoPool = errors.New("this cluster has no host pool: add a host with kubeone host add")

// List returns the hosts in the pool, sorted by name. The error is errNoPool if the kind is not defined.
func List(ctx context.Context, c client.Client) ([]kubeone.Host, error) {
	var all kubeone.HostList
	if err := c.List(ctx, &all); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, errNoPool
		}
		return nil, apicall.Wrap("list the Hosts", "", err)
	}
	slices.SortFunc(all.Items, func(a, b kubeone.Host) int { return strings.Compare(a.Name, b.Name) })
	return all.Items, nil
}
