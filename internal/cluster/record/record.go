// Package record reads and writes the cluster record, which includes the history of runs, and writes Events of Nodes.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/observed"
)

// Name is the name of the record ConfigMap in kube-system.
const Name = "kubeone"

// Store reads and writes the cluster record, and writes Events.
type Store struct {
	Kubernetes kubernetes.Interface
}

// Record is the record that kubeone keeps in a cluster. It must not contain secrets, because everyone who can read
// ConfigMaps can read it.
type Record struct {
	Cluster        string
	ManifestDigest string
	Manifest       string            // manifest of the last successful run, without secrets
	RunID          string            // ID of that run
	Nodes          map[string]string // Node names by host ID, as of that run
	// FormerEndpoints are earlier names and addresses of the API. They stay in the API server certificates.
	FormerEndpoints []string
	Hardening       string            // as in desired.Cluster
	Addons          map[string]string // digests of the applied addons, by name
	History         []Run             // oldest first
	// Unreadable contains the reasons why keys in the ConfigMap are invalid, by key. The fields of these keys are zero.
	// An update keeps the text of such a key unless it sets the field or passes the key to MarkRepaired.
	Unreadable map[string]string
}

// IsUnreadable reports whether the key is invalid.
func (r *Record) IsUnreadable(key string) bool { return r.Unreadable[key] != "" }

// MarkRepaired marks the fields of these keys as valid, even if they are zero.
func (r *Record) MarkRepaired(keys ...string) {
	for _, key := range keys {
		delete(r.Unreadable, key)
	}
}

// Record reads the cluster record. It returns nil and no error if there is none.
func (c Store) Record(ctx context.Context) (*Record, error) {
	var record *Record
	err := apicall.Retry(ctx, "read the cluster's record", "", func(ctx context.Context) error {
		held, err := c.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		record = Decode(held.Data)
		return nil
	})
	return record, err
}

// UpdateRecord calls change with the cluster record, which is empty if there is none yet, and saves it if it changed.
// After a conflict it calls change again. It fails with a Terminal error if the result seems to contain a private key,
// or if addons are added while the stored addon digests are unreadable, because those would be lost.
func (c Store) UpdateRecord(ctx context.Context, change func(*Record) error) error {
	return apicall.Retry(ctx, "save the cluster's record", "", func(ctx context.Context) error {
		maps := c.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem)
		held, err := maps.Get(ctx, Name, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent {
			return err
		}
		if absent {
			held = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: metav1.NamespaceSystem}}
		}
		if changed, err := rewriteRecord(held, change); err != nil || !changed {
			return err
		}
		if absent {
			_, err = maps.Create(ctx, held, metav1.CreateOptions{FieldManager: apicall.FieldManager})
		} else {
			_, err = maps.Update(ctx, held, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		}
		if absent && apierrors.IsAlreadyExists(err) {
			return &apicall.Error{Op: "create", Class: apicall.Transient, Err: err}
		}
		return err
	})
}

// rewriteRecord changes the record in a ConfigMap and reports whether it changed. Unknown keys are kept.
func rewriteRecord(held *corev1.ConfigMap, change func(*Record) error) (bool, error) {
	record := Decode(held.Data)
	if err := change(record); err != nil {
		return false, err
	}
	data, err := encodeRecord(record)
	if err != nil {
		return false, err
	}
	if why := record.Unreadable[observed.RecordAddons]; why != "" && len(record.Addons) > 0 {
		return false, fmt.Errorf("the key %s in ConfigMap %s/%s cannot be read (%s), so nothing was saved: see "+
			"kubeone status", observed.RecordAddons, metav1.NamespaceSystem, Name, why)
	}
	unset, err := encodeRecord(&Record{})
	if err != nil {
		return false, err
	}
	for key := range record.Unreadable {
		if data[key] == unset[key] {
			delete(data, key) // the ConfigMap keeps its text
		}
	}
	for key, text := range data {
		if holdsPrivateKey(text) {
			return false, fmt.Errorf("%q in the record would contain a private key; nothing was saved", key)
		}
	}
	before := maps.Clone(held.Data)
	if held.Data == nil {
		held.Data = map[string]string{}
	}
	maps.Copy(held.Data, data)
	return !maps.Equal(before, held.Data), nil
}

// CheckSize returns an error if the record of a cluster with this manifest and these Nodes, by host ID, would not fit
// into a ConfigMap.
func CheckSize(manifest string, nodes map[string]string) error {
	size := len(manifest)
	for id, node := range nodes {
		size += len(id) + len(node) + len(`"":"",`)
	}
	if limit := maxConfigMapBytes - 2*minHistoryBytes; size > limit {
		return fmt.Errorf("the manifest (%d KiB) and the names of its %d hosts (%d KiB) do not fit into the cluster "+
			"record, ConfigMap %s/%s, which has room for %d KiB; shorten the host entries, or manage workers as "+
			"Machines", len(manifest)>>10, len(nodes), (size-len(manifest))>>10, metav1.NamespaceSystem, Name, limit>>10)
	}
	return nil
}

func encodeRecord(r *Record) (map[string]string, error) {
	addons, err := json.Marshal(r.Addons)
	if r.Addons == nil {
		addons = []byte("{}")
	}
	nodes, err2 := json.Marshal(r.Nodes)
	if r.Nodes == nil {
		nodes = []byte("{}")
	}
	room := maxConfigMapBytes - minHistoryBytes - len(r.Manifest) - len(nodes) - len(addons)
	history, err3 := r.trimHistory(min(maxHistoryBytes, max(minHistoryBytes, room)))
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	return map[string]string{
		observed.RecordCluster: r.Cluster, observed.RecordManifestDigest: r.ManifestDigest,
		observed.RecordManifest: r.Manifest, observed.RecordRunID: r.RunID, observed.RecordNodes: string(nodes),
		observed.RecordAddons: string(addons), observed.RecordHistory: string(history),
		observed.RecordFormerEndpoints: strings.Join(r.FormerEndpoints, " "), observed.RecordHardening: r.Hardening,
	}, nil
}
