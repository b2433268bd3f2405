// Package backup writes and reads a cluster's backup: one file with all that a cluster cannot be brought back without.
//
// It is a tar, encrypted with age (https://age-encryption.org/v1) to the recipients of the manifest. metadata.json
// comes first, with the digest of every other part, and then its signature by the cluster's CA: a snapshot of etcd, the
// CAs and service-account keys, the configuration of encryption at rest where there is one, and the manifest.
// `age -d -i KEYFILE FILE | tar t` shows it without this program.
//
// What is in it is as secret as the cluster itself. It is put together in memory and leaves it only encrypted: a
// snapshot is taken and verified in a file that has no place on the disk, which takes as much memory as etcd's
// database is large.
package backup

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/keys/authority"
	"kubeone/internal/text/pattern"
)

// Format is the version of the format.
const Format = 2

// The names of the parts.
const (
	MetadataName   = "metadata.json"
	SnapshotName   = "etcd/snapshot.db"
	ManifestName   = "manifest.yaml"
	EncryptionName = "encryption.yaml" // only where the API server encrypts at rest
	PKIDir         = "pki/"            // PKIDir + a name of PKINames, as below /etc/kubernetes/pki
)

// PKINames are the files that every backup has below PKIDir.
func PKINames() []string {
	return []string{"ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt",
		"etcd/ca.key"}
}

// SuccessionName is the file below PKIDir by which a cluster's former CAs vouch for the present one, as
// authority.Succession. Only a cluster whose CA has been rotated has it.
const SuccessionName = authority.Succession

// Metadata is what a backup says about itself. It holds nothing secret.
type Metadata struct {
	Format    int       `json:"format"`
	Cluster   string    `json:"cluster"`             // name
	ClusterID string    `json:"clusterID,omitempty"` // UID of the namespace kube-system; "" where it was not known
	Created   time.Time `json:"created"`             // UTC, seconds
	CreatedBy string    `json:"createdBy"`           // user@machine

	KubernetesVersion string `json:"kubernetesVersion"`     // that ran, without v
	EtcdVersion       string `json:"etcdVersion,omitempty"` // of the member that gave the snapshot
	CAHash            string `json:"caHash"`                // "sha256:…" of the cluster CA's public key
	Epoch             int    `json:"epoch,omitempty"`       // how often the cluster had been recovered
	// EncryptionPath is where the API server looks for EncryptionName on a control-plane host; "" where it does not.
	EncryptionPath string `json:"encryptionPath,omitempty"`
	// Hardening is how much the cluster was hardened; "" where nobody has ever said anything of that.
	Hardening string        `json:"hardening,omitempty"`
	Snapshot  snapshot.Info `json:"snapshot"`
	Parts     []Part        `json:"parts"` // all but MetadataName, in order
}

// Part is one file of a backup.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // hex
}

// What can be wrong with a backup, for errors.Is. What can be wrong with the snapshot in it is snapshot's.
var (
	ErrNoRecipient = errors.New("no recipient: a backup holds the cluster's private keys and is only written " +
		"encrypted; name age public keys in the manifest (backup.recipients) or with --recipient")
	ErrWrongIdentity = errors.New("no identity that was given can decrypt it: it is encrypted to other keys")
	ErrNotBackup     = errors.New("it is not a backup of a cluster")
	ErrTruncated     = errors.New("it is truncated")
	ErrAltered       = errors.New("it was altered")
	ErrNewer         = errors.New("it was written by a newer version of this program")
	ErrIncomplete    = errors.New("the backup lacks a part")
	ErrOtherTime     = errors.New("the time in its name is not when it was taken: another backup may have been put " +
		"in its place")
)

// FileName is how a backup is called: the cluster's name, and the time in UTC.
func FileName(cluster string, at time.Time) string {
	return cluster + "-" + at.UTC().Format(timeFormat) + suffix
}

const (
	timeFormat = "20060102T150405Z"
	suffix     = ".tar.age"
)

// IsFileName reports whether a name ends as that of a backup.
func IsFileName(name string) bool { return strings.HasSuffix(name, suffix) }

// ParseFileName returns the time in a name that FileName made for this cluster, and whether it is one.
func ParseFileName(cluster, name string) (time.Time, bool) {
	text, ok := strings.CutPrefix(name, cluster+"-")
	if !ok {
		return time.Time{}, false
	}
	text, ok = strings.CutSuffix(text, suffix)
	at, err := time.Parse(timeFormat, text)
	return at, ok && err == nil
}

// nameTime is the time in the name of a backup, of whichever cluster.
var nameTime = pattern.Lazy(`[0-9]{8}T[0-9]{6}Z`)

// A backup is named before its snapshot is taken: that long before, at most, and not after it by more than clockSkew.
const (
	takenWithin = time.Hour
	clockSkew   = 5 * time.Minute
)

// checkTime compares the time in a backup's name with the one at which it was taken. The name is what an operator goes
// by, and whoever can write to a store chooses it. A name without a time is as good as any.
func (m Metadata) checkTime(name string) error {
	for _, text := range nameTime().FindAllString(name, -1) {
		named, err := time.Parse(timeFormat, text)
		if after := m.Created.Sub(named); err != nil || after < -clockSkew || after > takenWithin {
			return fmt.Errorf("%w: it was taken %s. If it is the one that you want, give a copy of it a name "+
				"without a time", ErrOtherTime, m.Created.Format(time.RFC3339))
		}
	}
	return nil
}

// CAHash is the sha256 of a CA's public key, as kubeadm's --discovery-token-ca-cert-hash has it.
func CAHash(certificate []byte) (string, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return "", errors.New("the cluster CA is not a PEM certificate")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("the cluster CA: %w", err)
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
