// Package record reads and writes the cluster's record, which includes the history of runs, and Events of Nodes.
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

// Name is the name of the record's ConfigMap in kube-system.
const Name = "kubeone"

// Store reads and writes a cluster's record, and writes Events.
type Store struct {
	Kubernetes kubernetes.Interface
}

// Record is kubeone's record of a cluster. Everyone who can read ConfigMaps can read it, so it holds no secrets.
type Record struct {
	Cluster        string
	ManifestDigest string
	Manifest       string            // of the last successful run, without secrets
	RunID          string            // of that run
	Nodes          map[string]string // names of the hosts' Nodes, by host ID, as of that run
	// FormerEndpoints are earlier names and addresses of the API, which its certificates keep.
	FormerEndpoints []string
	Hardening       string            // as in desired.Cluster
	Addons          map[string]string // digest as applied, by the addon's name
	History         []Run             // oldest first
	// Unreadable has the invalid keys of the ConfigMap and the reasons. Their fields are zero. An update keeps such a
	// text until a change sets the field or passes the key to Repaired.
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

// Record reads the cluster's record. It returns nil and no error if there is none.
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

// UpdateRecord changes the cluster's record, which is empty if there is none yet. It writes only if something changed.
// On a conflict it calls change again. It fails with a terminal error if the result seems to contain a private key. It
// also does if addons change while their digests are unreadable, since the others would be lost.
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

// rewriteRecord changes the record in a ConfigMap and reports whether it changed. Unknown keys stay.
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
		return false, fmt.Errorf("the key %s of ConfigMap %s/%s cannot be read (%s), so nothing was saved: see "+
			"kubeone status", observed.RecordAddons, metav1.NamespaceSystem, Name, why)
	}
	unset, err := encodeRecord(&Record{})
	if err != nil {
		return false, err
	}
	for key := range record.Unreadable {
		if data[key] == unset[key] {
			delete(data, key) // its text stays
		}
	}
	for key, text := range data {
		if holdsPrivateKey(text) {
			return false, fmt.Errorf("%q of the record would hold a private key; nothing was saved", key)
		}
	}
	before := maps.Clone(held.Data)
	if held.Data == nil {
		held.Data = map[string]string{}
	}
	maps.Copy(held.Data, data)
	return !maps.Equal(before, held.Data), nil
}

// CheckSize returns an error if the record of a cluster with this manifest and these Nodes, by host ID, does not fit
// into a ConfigMap.
func CheckSize(manifest string, nodes map[string]string) error {
	size := len(manifest)
	for id, node := range nodes {
		size += len(id) + len(node) + len(`"":"",`)
	}
	if most := maxConfigMapBytes - 2*minHistoryBytes; size > most {
		return fmt.Errorf("the manifest has %d KiB and the names of its %d hosts %d KiB, and the cluster's record, "+
			"ConfigMap %s/%s, has room for %d KiB of both; give each host fewer or shorter fields, or have workers as "+
			"Machines", len(manifest)>>10, len(nodes), (size-len(manifest))>>10, metav1.NamespaceSystem, Name, most>>10)
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
