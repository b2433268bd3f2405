package maintenance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"filippo.io/age"

	"kubeone/internal/decide"
	"kubeone/internal/decide/identity"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/keys/authority"
	"kubeone/internal/plan"
)

// Backup takes a verified snapshot of etcd, reads the keys of the cluster, and writes both with the manifest, encrypted
// to the recipients. It calls write only after it has all the content. Unencrypted content is never written to disk.
func (e *Etcd) Backup(ctx context.Context, recipients []age.Recipient,
	write func(func(io.Writer) error) error) (backup.Metadata, error) {
	content, err := e.backupContent(ctx)
	if err != nil {
		return backup.Metadata{}, err
	}
	var taken *os.File
	content.Info, err = e.Snapshot(func(from snapshot.Source) (info snapshot.Info, err error) {
		taken, info, err = snapshot.Take(ctx, from)
		return info, err
	})
	if taken != nil {
		defer func() { _ = taken.Close() }() // its memory is freed
	}
	if err != nil {
		return backup.Metadata{}, err
	}
	content.Snapshot = taken
	// Keys that changed during the snapshot may not decrypt it.
	after, err := readKeys(ctx, e.engine.Host(identity.ProbeKey(e.client.HostID())))
	if err != nil {
		return backup.Metadata{}, err
	}
	before := content.Keys
	if after.EncryptionPath != before.EncryptionPath || !bytes.Equal(after.Encryption, before.Encryption) {
		return backup.Metadata{}, errors.New("the encryption keys of Secrets changed while the " +
			"snapshot was taken: wait for the run that changes them to end, then take the backup again")
	}
	var metadata backup.Metadata
	err = write(func(w io.Writer) (err error) {
		metadata, err = backup.Write(w, content, recipients)
		return err
	})
	return metadata, err
}

// backupContent returns the content of a backup without the snapshot.
func (e *Etcd) backupContent(ctx context.Context) (backup.Content, error) {
	via, want, world := e.client.HostID(), e.engine.Want(), e.seen.World
	keys, err := readKeys(ctx, e.engine.Host(identity.ProbeKey(via)))
	if err != nil {
		return backup.Content{}, err
	}
	hardening, _ := decide.Hardening(want, world)
	return backup.Content{
		Hardening: hardening,
		Cluster:   want.Name, CreatedBy: e.engine.Holder(), Created: e.engine.Now(), Keys: keys,
		Manifest:    []byte(e.engine.Manifest()),
		EtcdVersion: e.client.Greeting().Version, Epoch: plan.Epoch(plan.Plan{}, want, world),
		KubernetesVersion: cmp.Or(world.API.Version, world.Hosts[via].APIServerVersion, want.KubernetesVersion),
	}, nil
}

// keysWithin limits the time for reading one file from a host.
const keysWithin = time.Minute

// readKeys reads the CAs, the service-account keys and the encryption configuration of a control-plane host.
func readKeys(ctx context.Context, h host.Host) (backup.Keys, error) {
	read := func(name, text string, args ...string) ([]byte, error) {
		res, err := h.Run(ctx, host.Cmd{Name: name, Script: text, Args: args, Secret: true, Timeout: keysWithin})
		return res.Stdout, err
	}
	const tar = `cd /etc/kubernetes/pki
[ ! -f ` + backup.SuccessionName + ` ] || set -- "$@" ` + backup.SuccessionName + `
tar -cf - "$@"`
	archive, err := read("read the CAs", tar, backup.PKINames()...)
	if err != nil {
		return backup.Keys{}, err
	}
	keys := backup.Keys{}
	if keys.PKI, err = authority.ReadArchive(archive); err != nil {
		return backup.Keys{}, fmt.Errorf("%s: read the CAs: %w", h.Name(), err)
	}
	authority.Agree(keys.PKI)
	const look = `sed -n 's/^ *- --encryption-provider-config=//p' /etc/kubernetes/manifests/kube-apiserver.yaml`
	path, err := read("find the encryption configuration", look)
	if keys.EncryptionPath = strings.TrimSpace(string(path)); err != nil || keys.EncryptionPath == "" {
		return keys, err
	}
	keys.Encryption, err = read("read the configuration of encryption at rest", `cat -- "$1"`, keys.EncryptionPath)
	return keys, err
}
