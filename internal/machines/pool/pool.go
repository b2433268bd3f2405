// Package pool manages the host pool of a cluster for operators: it defines the API kinds, creates the SSH key of the
// cluster, and adds and removes hosts. Package provider/ssh assigns hosts to Machines.
package pool

import (
	"context"
	"crypto/ed25519"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterdefinitions "kubeone/api/cluster/v1alpha1/crds"
	kubeone "kubeone/api/kubeone/v1alpha1"
	kubeonedefinitions "kubeone/api/kubeone/v1alpha1/crds"
	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/machines"
	"kubeone/internal/cluster/ssa"
)

// Namespace contains the SSH key of the cluster and the Lease of its controllers.
const Namespace = machines.Namespace

// KeySecret is the Secret in Namespace that contains the private SSH key of the cluster. The key gives root access to
// every host in the pool.
const KeySecret = "ssh-key"

// revision must be increased with every change of a definition. A test checks this.
const revision = 10

// Define creates or updates the namespace, the definitions of the kinds Machine, MachineSet, MachineDeployment and
// Host, and the policy that prevents a host without a Machine from creating a Node. It does not change definitions with
// a newer revision. It waits until the API serves the kinds.
//
// If a definition belongs to another program, or another manager has changed a field, Define writes nothing and returns
// an *apicall.Error of class Operator that names the definitions.
func Define(ctx context.Context, c *cluster.Client) error {
	objects, err := poolObjects()
	if err != nil {
		return err
	}
	var apply []unstructured.Unstructured
	var foreign []string
	for _, o := range objects[1:] {
		existing, err := readDefinition(ctx, c, &o)
		if err != nil {
			return err
		}
		if existing == nil {
			apply = append(apply, o)
			continue
		}
		switch applied, ours := machines.Revision(existing); {
		case !ours:
			foreign = append(foreign, ssa.Describe(existing))
		case applied <= revision:
			apply = append(apply, o)
		}
	}
	if len(foreign) > 0 {
		return &apicall.Error{Op: "define the kinds of Machines", Class: apicall.Operator, Err: &foreignError{foreign}}
	}
	if err := c.Applier.FindConflicts(ctx, apply); err != nil {
		return err
	}
	if _, err := c.Applier.Apply(ctx, objects[:1]); err != nil { // the controllers' addon also forces it
		return err
	}
	_, err = c.Applier.ApplyOwn(ctx, apply)
	return err
}

// foreignError reports definitions that belong to another program.
type foreignError struct{ names []string }

func (e *foreignError) Error() string {
	return strings.Join(e.names, ", ") +
		" belong to another program, such as machine-controller; kubeone has changed " +
		"nothing. The two programs cannot share these kinds: do not use a host pool, or delete the Machines, the other " +
		"program and these definitions, and try again"
}

// readDefinition returns the live object; nil if it does not exist.
func readDefinition(ctx context.Context, c *cluster.Client, o *unstructured.Unstructured) (*unstructured.Unstructured,
	error) {
	where, err := c.Applier.Resource(o)
	if err != nil {
		return nil, err
	}
	existing, err := where.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none exists, which existing no error
	}
	return existing, apicall.Wrap("read the definition "+o.GetName(), "", err)
}

//go:embed policy.yaml
var policy string

// poolObjects returns the namespace, the CustomResourceDefinitions, and the policy for Nodes in the pool, in this
// order.
func poolObjects() ([]unstructured.Unstructured, error) {
	namespace := unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(Namespace)
	namespace.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	out := []unstructured.Unstructured{namespace}
	for _, files := range []fs.FS{clusterdefinitions.Files, kubeonedefinitions.Files} {
		names, err := fs.Glob(files, "*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			o := unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &o.Object); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out = append(out, o)
		}
	}
	policies, err := resources.Render(policy, nil)
	if err != nil {
		return nil, fmt.Errorf("policy.yaml: %w", err)
	}
	for _, p := range policies {
		out = append(out, unstructured.Unstructured{Object: p})
	}
	for _, o := range out[1:] { // except the namespace: an addon also applies it, and would remove the annotation
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[machines.RevisionAnnotation] = strconv.Itoa(revision)
		o.SetAnnotations(annotations)
	}
	return out, nil
}

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
