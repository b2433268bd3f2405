package drive

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"kubeone/internal/keys/authority"
	"kubeone/internal/keys/encryption"
	"kubeone/internal/model/observed"
	"kubeone/internal/script"
	"kubeone/test/sim/world"
)

// apply reads the keys of hosts, so the simulated hosts have real keys under the names that the world knows.

// keysOf returns the host's report of its keys for Secrets.
func keysOf(h *world.Host) (string, error) {
	said := ""
	if h.Disk.Joined() {
		said = "member\n"
	}
	switch {
	case len(h.Disk.Keys) == 0:
		return said, nil
	case h.Disk.KeysGone:
		return said + "lost\n", nil
	}
	var config encryption.Config
	for _, name := range h.Disk.Keys {
		if name == encryption.Identity {
			config = append(config, encryption.IdentityKey())
			continue
		}
		sum := sha256.Sum256([]byte(name))
		key, err := encryption.NewKey(name, bytes.NewReader(sum[:]))
		if err != nil {
			return "", err
		}
		config = append(config, key)
	}
	return said + "config\n" + string(config.Text()), nil
}

// authorities are the key pairs of etcd's CA, by the world's names. They are created on first use.
type authorities map[string]authority.Pair

// archiveOf returns the archive of a host's keys, empty if it is not a member.
func (a authorities) archiveOf(h *world.Host) (string, error) {
	if !h.Disk.Joined() {
		return "", nil
	}
	has, at := h.Disk.Authority.Whole(), authority.FilesOf(observed.EtcdCA)
	files := map[string][]byte{}
	var trusted authority.Public
	for _, name := range has.Trusts {
		pair, err := a.pairOf(name)
		if err != nil {
			return "", err
		}
		trusted = trusted.With(pair.Public)
	}
	signs, err := a.pairOf(has.Signs)
	if err != nil {
		return "", err
	}
	files[at.Public], files[at.Key] = trusted.Text(), signs.KeyText()
	if has.Next != "" {
		next, err := a.pairOf(has.Next)
		if err != nil {
			return "", err
		}
		files["next/"+at.Next()], files["next/"+at.NextKey()] = next.Public.Text(), next.KeyText()
	}
	if has.Begun != "" {
		files[script.RotationFile] = []byte(observed.EtcdCA + " " + has.Begun + "\n")
	}
	archive, err := authority.WriteArchive(files, time.Now())
	return string(archive), err
}

func (a authorities) pairOf(name string) (authority.Pair, error) {
	if pair, made := a[name]; made {
		return pair, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority.Pair{}, err
	}
	ca := x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a) + 1)), Subject: pkix.Name{CommonName: "etcd-ca"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now(), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	public, err := x509.CreateCertificate(rand.Reader, &ca, &ca, key.Public(), key)
	if err != nil {
		return authority.Pair{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return authority.Pair{}, err
	}
	a[name], err = authority.ParsePair(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	return a[name], err
}
