// Package rootca publishes the cluster CAs for joining hosts, and checks whether running pods have read them.
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
	// rootCA is the ConfigMap in each namespace that contains the cluster CAs. The controller manager writes it.
	rootCA    = "kube-root-ca.crt"
	rootCAKey = "ca.crt"
	// projectionDelay is the maximum time until a kubelet updates the volumes of running pods after a ConfigMap
	// changes: one minute until its resync plus the delay of its watch
	// (kubernetes.io/docs/concepts/configuration/configmap).
	projectionDelay = 2 * time.Minute
	pageSize        = 500
)

// Publisher publishes the cluster CAs. It is safe for concurrent use.
type Publisher struct {
	Kubernetes kubernetes.Interface
}

// PublishCAs writes CAs, in PEM, to the ConfigMap kube-public/cluster-info, where joining hosts read them. It does
// nothing if the ConfigMap does not exist.
func (p Publisher) PublishCAs(ctx context.Context, pem []byte) error {
	maps := p.Kubernetes.CoreV1().ConfigMaps(metav1.NamespacePublic)
	const what = "write the cluster CAs to ConfigMap"
	return apicall.Retry(ctx, what, "cluster-info", func(ctx context.Context) error {
		held, err := maps.Get(ctx, "cluster-info", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		config, err := clientcmd.Load([]byte(held.Data["kubeconfig"]))
		if err != nil {
			return fmt.Errorf("ConfigMap kube-public/cluster-info does not contain a kubeconfig: %w", err)
		}
		unchanged := true
		for _, c := range config.Clusters {
			unchanged = unchanged && bytes.Equal(c.CertificateAuthorityData, pem)
			c.CertificateAuthorityData = pem
		}
		if unchanged {
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

// AwaitRootCAs waits until the controller manager has published the CAs with these keys in all namespaces. Keys are
// those of authority.KeyID.
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
					"the controller manager has not published them yet", nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func containsKeys(pem []byte, keys []string) bool {
	present := authority.Keys(pem)
	return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(present, key) })
}

// activeNamespaces returns the namespaces that are not being deleted.
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

// UnawarePods returns the pods, as sorted "namespace/name", with a container that may not have read these CAs: it
// started before they were in the ConfigMap or service account Secret of the pod. It ignores pods that do not use CAs
// and pods that have ended.
func (p Publisher) UnawarePods(ctx context.Context, keys []string) ([]string, error) {
	times, err := p.findPublicationTimes(ctx, keys)
	if err != nil {
		return nil, err
	}
	var out []string
	opts := metav1.ListOptions{Limit: pageSize}
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
			if slices.ContainsFunc(volumeTimes(pod, times), func(at time.Time) bool { return !startedAfter(pod, at) }) {
				out = append(out, pod.Namespace+"/"+pod.Name)
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			slices.Sort(out)
			return out, nil
		}
	}
}

// publicationTimes contains the times at which pods could first read the keys. A missing entry or zero means never.
type publicationTimes struct {
	namespaces map[string]time.Time // time by namespace, for its ConfigMap
	secrets    map[string]time.Time // time by "namespace/name", for Secrets with tokens
}

func (p Publisher) findPublicationTimes(ctx context.Context, keys []string) (publicationTimes, error) {
	namespaces, err := p.timesInNamespaces(ctx, keys)
	if err != nil {
		return publicationTimes{}, err
	}
	secrets, err := p.timesInSecrets(ctx, keys)
	return publicationTimes{namespaces, secrets}, err
}

// timesInSecrets returns when each service account Secret received the keys, by "namespace/name". The time is zero for
// a Secret that does not contain them.
func (p Publisher) timesInSecrets(ctx context.Context, keys []string) (map[string]time.Time, error) {
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

// timesInNamespaces returns when the ConfigMap in each namespace received the keys. Namespaces whose ConfigMap does not
// contain them are left out.
func (p Publisher) timesInNamespaces(ctx context.Context, keys []string) (map[string]time.Time, error) {
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

// lastWritten returns when an object was last changed. For an object that has never changed it returns the Unix epoch,
// because every reader has the current content.
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

// volumeTimes returns, for each volume of the pod that contains cluster CAs, when it received the keys. It returns
// nothing for a pod that has ended.
func volumeTimes(pod *corev1.Pod, at publicationTimes) []time.Time {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var out []time.Time
	addConfigMap := func(name string) {
		if name == rootCA {
			out = append(out, at.namespaces[pod.Namespace])
		}
	}
	addSecret := func(name string) {
		if since, ok := at.secrets[pod.Namespace+"/"+name]; ok {
			out = append(out, since)
		}
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			addConfigMap(v.ConfigMap.Name)
		case v.Secret != nil:
			addSecret(v.Secret.SecretName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				switch {
				case s.ConfigMap != nil:
					addConfigMap(s.ConfigMap.Name)
				case s.Secret != nil:
					addSecret(s.Secret.Name)
				}
			}
		}
	}
	return out
}

// startedAfter reports whether all containers of a pod started after the CAs were published. API times have a
// resolution of one second, so a container that started in the same second counts as started before.
func startedAfter(pod *corev1.Pod, published time.Time) bool {
	if published.IsZero() {
		return false
	}
	if pod.CreationTimestamp.After(published) {
		return true // its volumes contained the CAs from the beginning
	}
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if r := c.State.Running; r != nil && !r.StartedAt.After(published.Add(projectionDelay)) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
