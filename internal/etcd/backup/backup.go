// Package backup writes and reads backups of a cluster: one file with everything needed to restore the cluster.
//
// A backup is a tar file, encrypted with age (https://age-encryption.org/v1) to the recipients in the manifest. The
// first part is metadata.json, with the digest of every other part. The second is the signature of metadata.json by the
// cluster CA. The other parts are a snapshot of etcd, the CAs and service-account keys, the configuration of encryption
// at rest if there is one, and the manifest. `age -d -i KEYFILE FILE | tar t` lists them without kubeone.
//
// The content of a backup is secret. It is assembled in memory and written only in encrypted form. The snapshot is
// taken and verified in a file in memory, which requires enough memory to hold the etcd database.
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
	EncryptionName = "encryption.yaml" // only if the API server encrypts at rest
	PKIDir         = "pki/"            // PKIDir + a name of PKINames, as below /etc/kubernetes/pki
)

// PKINames returns the names of the files that every backup contains in PKIDir.
func PKINames() []string {
	return []string{"ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt",
		"etcd/ca.key"}
}

// SuccessionName is the file in PKIDir in which previous CAs of the cluster sign their successors, as in
// authority.Succession. It exists only if the cluster CA was rotated.
const SuccessionName = authority.Succession

// Metadata describes a backup. It holds no secrets.
type Metadata struct {
	Format    int       `json:"format"`
	Cluster   string    `json:"cluster"`             // name
	ClusterID string    `json:"clusterID,omitempty"` // UID of the namespace kube-system; "" if unknown
	Created   time.Time `json:"created"`             // UTC, seconds
	CreatedBy string    `json:"createdBy"`           // user@machine

	KubernetesVersion string `json:"kubernetesVersion"`     // running version, without v
	EtcdVersion       string `json:"etcdVersion,omitempty"` // of the member that provided the snapshot
	CAHash            string `json:"caHash"`                // "sha256:…" of the cluster CA's public key
	Epoch             int    `json:"epoch,omitempty"`       // number of recoveries of the cluster
	// EncryptionPath is the path of EncryptionName for the API server on a control-plane host; "" without encryption.
	EncryptionPath string `json:"encryptionPath,omitempty"`
	// Hardening is the hardening of the cluster, or "" if it was never set.
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

// Errors about a backup, for errors.Is. Errors about its snapshot are in package snapshot.
var (
	ErrNoRecipient = errors.New("no recipient: a backup contains the private keys of the cluster and must be " +
		"encrypted; set age public keys in the manifest (backup.recipients) or with --recipient")
	ErrWrongIdentity = errors.New("none of the given identities can decrypt it: it is encrypted for other recipients")
	ErrNotBackup     = errors.New("it is not a backup of a cluster")
	ErrTruncated     = errors.New("it is truncated")
	ErrAltered       = errors.New("it was altered")
	ErrNewer         = errors.New("it was written by a newer version of kubeone")
	ErrIncomplete    = errors.New("a part of the backup is missing")
	ErrTimeMismatch  = errors.New("it was not taken at the time in its name: another backup may have been put " +
		"in its place")
)

// FileName returns the file name of a backup: the cluster name and the time in UTC.
func FileName(cluster string, at time.Time) string {
	return cluster + "-" + at.UTC().Format(timeFormat) + suffix
}

const (
	timeFormat = "20060102T150405Z"
	suffix     = ".tar.age"
)

// IsFileName reports whether a name has the suffix of a backup.
func IsFileName(name string) bool { return strings.HasSuffix(name, suffix) }

// ParseFileName returns the time in a name that FileName created for this cluster. It returns false for any other name.
func ParseFileName(cluster, name string) (time.Time, bool) {
	text, ok := strings.CutPrefix(name, cluster+"-")
	if !ok {
		return time.Time{}, false
	}
	text, ok = strings.CutSuffix(text, suffix)
	at, err := time.Parse(timeFormat, text)
	return at, ok && err == nil
}

// nameTime matches the time in the name of a backup of any cluster.
var nameTime = pattern.Lazy(`[0-9]{8}T[0-9]{6}Z`)

// A backup gets its name at most this long before its snapshot is taken, and at most clockSkew after that, because
// clocks differ.
const (
	takenWithin = time.Hour
	clockSkew   = 5 * time.Minute
)

// checkTime returns an error if the time in the name of a backup is not the time of the backup. Operators rely on the
// name, but everyone who can write to the store can choose it. Names without a time are accepted.
func (m Metadata) checkTime(name string) error {
	for _, text := range nameTime().FindAllString(name, -1) {
		named, err := time.Parse(timeFormat, text)
		if after := m.Created.Sub(named); err != nil || after < -clockSkew || after > takenWithin {
			return fmt.Errorf("%w: it was taken %s. To use it anyway, copy it to a name "+
				"without a time", ErrTimeMismatch, m.Created.Format(time.RFC3339))
		}
	}
	return nil
}

// CAHash returns the sha256 of the public key of a CA in the format of kubeadm's --discovery-token-ca-cert-hash.
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
