// Package rootca names the cluster's CAs to who joins, and looks at whether pods know them.
package rootca

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/keys/authority"
)

const (
	// rootCA is the ConfigMap of each namespace in which the controller manager tells pods the cluster's CAs.
	rootCA    = "kube-root-ca.crt"
	rootCAKey = "ca.crt"
	// projection is how long a kubelet takes at most to bring a changed ConfigMap into the volumes of pods that run:
	// its resync of a minute, and the delay of its watch (kubernetes.io/docs/concepts/configuration/configmap).
	projection = 2 * time.Minute
	page       = 500
)

// Publisher does so. It is safe for concurrent use.
type Publisher struct {
	Kubernetes kubernetes.Interface
}

// NameCAs names CAs, in PEM, in kube-public/cluster-info, where hosts that join find them.
func (p Publisher) NameCAs(ctx context.Context, pem []byte) error {
	maps := p.Kubernetes.CoreV1().ConfigMaps(metav1.NamespacePublic)
	const what = "name the CAs of the cluster in ConfigMap"
	return apicall.Retry(ctx, what, "cluster-info", func(ctx context.Context) error {
		held, err := maps.Get(ctx, "cluster-info", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // nobody joins by it
		}
		if err != nil {
			return err
		}
		config, err := clientcmd.Load([]byte(held.Data["kubeconfig"]))
		if err != nil {
			return fmt.Errorf("ConfigMap kube-public/cluster-info holds no kubeconfig: %w", err)
		}
		same := true
		for _, c := range config.Clusters {
			same = same && bytes.Equal(c.CertificateAuthorityData, pem)
			c.CertificateAuthorityData = pem
		}
		if same {
			return nil
		}
		text, err := clientcmd.Write(*config)
		if err != nil {
			return err
		}
		held.Data["kubeconfig"] = string(text)
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		return err
	})
}

// AwaitRootCAs waits until the controller manager tells pods of all namespaces those keys, by their authority.KeyID.
func (p Publisher) AwaitRootCAs(ctx context.Context, keys []string) error {
	namespaces, err := p.activeNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		what := "wait for the CAs in ConfigMap " + namespace + "/"
		err := apicall.Await(ctx, p.Kubernetes.CoreV1().ConfigMaps(namespace), what, rootCA,
			func(held *corev1.ConfigMap) (bool, string, error) {
				return containsKeys([]byte(held.Data[rootCAKey]), keys),
					"the controller manager has not brought them yet", nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func containsKeys(pem []byte, keys []string) bool {
	has := authority.Keys(pem)
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(has, key) })
}

// activeNamespaces are those that are not about to go.
func (p Publisher) activeNamespaces(ctx context.Context) ([]string, error) {
	var out []string
	err := apicall.Retry(ctx, "list namespaces", "", func(ctx context.Context) error {
		out = nil
		list, err := p.Kubernetes.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if n := &list.Items[i]; n.DeletionTimestamp == nil && n.Status.Phase != corev1.NamespaceTerminating {
				out = append(out, n.Name)
			}
		}
		return nil
	})
	return out, err
}

// Unaware are the pods, "namespace/name" and sorted, in which something may know the cluster by fewer CAs than those:
// it started before they were brought to it, in a ConfigMap or in the Secret of a service account. Pods that are told
// no CA are not among them, nor those that have ended.
func (p Publisher) Unaware(ctx context.Context, keys []string) ([]string, error) {
	told, err := p.toldAt(ctx, keys)
	if err != nil {
		return nil, err
	}
	var out []string
	opts := metav1.ListOptions{Limit: page}
	for {
		var list *corev1.PodList
		err := apicall.Retry(ctx, "list pods", "", func(ctx context.Context) (err error) {
			list, err = p.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, opts)
			if apierrors.IsResourceExpired(err) {
				opts.Continue, out = "", nil
				list, err = p.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, opts)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if slices.ContainsFunc(volumeTimes(pod, told), func(at time.Time) bool { return !isAware(pod, at) }) {
				out = append(out, pod.Namespace+"/"+pod.Name)
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			slices.Sort(out)
			return out, nil
		}
	}
}

// sinceWhen is since when those keys are named to pods; the zero time where they are not.
type sinceWhen struct {
	namespaces map[string]time.Time // in the ConfigMap of each
	secrets    map[string]time.Time // in Secrets with tokens, by "namespace/name"
}

func (p Publisher) toldAt(ctx context.Context, keys []string) (sinceWhen, error) {
	namespaces, err := p.inNamespaces(ctx, keys)
	if err != nil {
		return sinceWhen{}, err
	}
	secrets, err := p.inSecrets(ctx, keys)
	return sinceWhen{namespaces, secrets}, err
}

// inSecrets is since when the Secrets of service accounts have those keys.
func (p Publisher) inSecrets(ctx context.Context, keys []string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := apicall.Retry(ctx, "list Secrets with tokens", "", func(ctx context.Context) error {
		list, err := p.Kubernetes.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken),
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			held := &list.Items[i]
			if held.Type != corev1.SecretTypeServiceAccountToken {
				continue
			}
			out[held.Namespace+"/"+held.Name] = time.Time{}
			if containsKeys(held.Data[rootCAKey], keys) {
				out[held.Namespace+"/"+held.Name] = lastWritten(held)
			}
		}
		return nil
	})
	return out, err
}

// inNamespaces is since when the pods of each namespace are told those keys, as far as they are.
func (p Publisher) inNamespaces(ctx context.Context, keys []string) (map[string]time.Time, error) {
	namespaces, err := p.activeNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]time.Time{}
	for _, namespace := range namespaces {
		var held *corev1.ConfigMap
		err := apicall.Retry(ctx, "read ConfigMap", namespace+"/"+rootCA, func(ctx context.Context) (err error) {
			held, err = p.Kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, rootCA, metav1.GetOptions{})
			return err
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if containsKeys([]byte(held.Data[rootCAKey]), keys) {
			out[namespace] = lastWritten(held)
		}
	}
	return out, nil
}

// lastWritten is when an object was last changed; the beginning of time where it is as it was made, as whoever read it
// has read what it says.
func lastWritten(o metav1.Object) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	if at.Equal(o.GetCreationTimestamp().Time) {
		return time.Unix(0, 0)
	}
	return at
}

// volumeTimes are since when each volume that tells a pod the cluster's CAs has them. A pod that has ended is told
// nothing.
func volumeTimes(pod *corev1.Pod, at sinceWhen) []time.Time {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var out []time.Time
	inMap := func(name string) {
		if name == rootCA {
			out = append(out, at.namespaces[pod.Namespace])
		}
	}
	inSecret := func(name string) {
		if since, ok := at.secrets[pod.Namespace+"/"+name]; ok {
			out = append(out, since)
		}
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			inMap(v.ConfigMap.Name)
		case v.Secret != nil:
			inSecret(v.Secret.SecretName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				switch {
				case s.ConfigMap != nil:
					inMap(s.ConfigMap.Name)
				case s.Secret != nil:
					inSecret(s.Secret.Name)
				}
			}
		}
	}
	return out
}

// isAware reports whether all that runs in a pod began after it was told the CAs. Times of the API have whole seconds:
// what began in the same one counts as before.
func isAware(pod *corev1.Pod, told time.Time) bool {
	if told.IsZero() {
		return false
	}
	if pod.CreationTimestamp.After(told) {
		return true // its volumes were made with them
	}
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if r := c.State.Running; r != nil && !r.StartedAt.After(told.Add(projection)) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
