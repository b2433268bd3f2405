// Package record is what runs leave in a cluster about themselves: the cluster's record with its history of runs, and
// Events of Nodes.
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
)

// Name is the name of the ConfigMap in kube-system that is the cluster's record.
const Name = "kubeone"

// Store reads and writes a cluster's record, and writes Events.
type Store struct {
	Kubernetes kubernetes.Interface
}

// Record is what we leave in the cluster about it. It is readable by everyone who may read ConfigMaps, and so holds no
// secrets.
type Record struct {
	Cluster        string
	ManifestDigest string
	Manifest       string            // as wanted by the last successful run, without secrets
	RunID          string            // of that run
	Nodes          map[string]string // names of the hosts' Nodes, by host ID, as of that run
	// FormerEndpoints are names and addresses at which the API was to be found before, and that its certificates keep.
	FormerEndpoints []string
	Hardening       string            // as it is of desired.Cluster
	Addons          map[string]string // digest as applied, by the addon's name
	History         []Run             // oldest first
}

// Record reads the cluster's record; it is nil, without an error, where there is none.
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
		record, err = decodeRecord(held.Data)
		return err
	})
	return record, err
}

// UpdateRecord changes the cluster's record, which is empty where there is none yet. Change may be called again when
// somebody else wrote at the same time. Nothing is written if nothing changed, or if the result holds what looks like
// a private key, which is a terminal error.
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
		if changed, err := rewrite(held, change); err != nil || !changed {
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

// rewrite changes the record inside a ConfigMap and reports whether that changed it. Keys that are not ours stay.
func rewrite(held *corev1.ConfigMap, change func(*Record) error) (bool, error) {
	record, err := decodeRecord(held.Data)
	if err != nil {
		return false, err
	}
	if err := change(record); err != nil {
		return false, err
	}
	data, err := encodeRecord(record)
	if err != nil {
		return false, err
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

func encodeRecord(r *Record) (map[string]string, error) {
	addons, err := json.Marshal(r.Addons)
	if r.Addons == nil {
		addons = []byte("{}")
	}
	nodes, err2 := json.Marshal(r.Nodes)
	if r.Nodes == nil {
		nodes = []byte("{}")
	}
	history, err3 := r.trimmed()
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	out := map[string]string{
		"cluster": r.Cluster, "manifestDigest": r.ManifestDigest, "manifest": r.Manifest, "runID": r.RunID,
		"nodes": string(nodes), "addons": string(addons), "history": string(history),
		"formerEndpoints": strings.Join(r.FormerEndpoints, " "),
	}
	if r.Hardening != "" {
		out["hardening"] = r.Hardening
	}
	return out, nil
}

// decodeRecord is the inverse of encodeRecord; a missing key is an empty value.
func decodeRecord(data map[string]string) (*Record, error) {
	r := &Record{
		Cluster:        data["cluster"],
		ManifestDigest: data["manifestDigest"],
		Manifest:       data["manifest"],
		RunID:          data["runID"],
		Hardening:      data["hardening"],
	}
	if former := data["formerEndpoints"]; former != "" {
		r.FormerEndpoints = strings.Fields(former)
	}
	for key, into := range map[string]any{"nodes": &r.Nodes, "addons": &r.Addons, "history": &r.History} {
		if data[key] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data[key]), into); err != nil {
			return nil, fmt.Errorf("%q of ConfigMap %s/%s cannot be read: %w", key, metav1.NamespaceSystem, Name, err)
		}
	}
	if r.Addons == nil {
		r.Addons = map[string]string{}
	}
	return r, nil
}
