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

	"kubeone/internal/authority"
	"kubeone/internal/cluster/apicall"
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
	namespaces, err := p.namespaces(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		what := "wait for the CAs in ConfigMap " + namespace + "/"
		err := apicall.Await(ctx, p.Kubernetes.CoreV1().ConfigMaps(namespace), what, rootCA,
			func(held *corev1.ConfigMap) (bool, string, error) {
				return tells(held, keys), "the controller manager has not brought them yet", nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func tells(held *corev1.ConfigMap, keys []string) bool {
	has := authority.Keys([]byte(held.Data[rootCAKey]))
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(has, key) })
}

// namespaces are those that are not about to go.
func (p Publisher) namespaces(ctx context.Context) ([]string, error) {
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
// it started before they were brought to it. Pods that are told no CA are not among them, nor those that have ended.
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
			if pod := &list.Items[i]; isTold(pod) && !aware(pod, told[pod.Namespace]) {
				out = append(out, pod.Namespace+"/"+pod.Name)
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			slices.Sort(out)
			return out, nil
		}
	}
}

// toldAt is since when the pods of each namespace are told those keys, as far as they are.
func (p Publisher) toldAt(ctx context.Context, keys []string) (map[string]time.Time, error) {
	namespaces, err := p.namespaces(ctx)
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
		if tells(held, keys) {
			out[namespace] = written(held)
		}
	}
	return out, nil
}

// written is when an object was last changed; the beginning of time where it is as it was made, as whoever read it has
// read what it says.
func written(o metav1.Object) time.Time {
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

// isTold reports whether a pod that has not ended is told the cluster's CAs.
func isTold(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.ConfigMap != nil && v.ConfigMap.Name == rootCA {
			return true
		}
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ConfigMap != nil && s.ConfigMap.Name == rootCA
		})
	})
}

// aware reports whether all that runs in a pod began after it was told the CAs. Times of the API have whole seconds:
// what began in the same one counts as before.
func aware(pod *corev1.Pod, told time.Time) bool {
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
