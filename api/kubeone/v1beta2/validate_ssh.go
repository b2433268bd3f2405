package v1beta2

import (
	"encoding/base64"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

func (f *findings) ssh(path string, s SSHConfig) {
	f.port(path+".sshPort", s.SSHPort)
	f.port(path+".bastionPort", s.BastionPort)
	f.hostKey(path+".sshHostPublicKey", s.SSHHostPublicKey)
	f.hostKey(path+".bastionHostPublicKey", s.BastionHostPublicKey)
	if s.Bastion == "" {
		f.withoutBastion(path, s)
		return
	}
	f.address(path+".bastion", s.Bastion)
}

// withoutBastion reports settings of a missing jump host, which have no effect.
func (f *findings) withoutBastion(path string, s SSHConfig) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"bastionPort", s.BastionPort != 0},
		{"bastionUser", s.BastionUser != ""},
		{"bastionHostPublicKey", s.BastionHostPublicKey != ""},
		{"bastionPrivateKeyFile", s.BastionPrivateKeyFile != ""},
	} {
		if field.set {
			f.warnf(path+"."+field.name, "set bastion, or remove it", "has no effect without bastion")
		}
	}
}

func (f *findings) hostKey(path, key string) {
	if key == "" {
		return
	}
	if _, err := HostKey(key); err != nil {
		f.errorf(path, "use the second column of /etc/ssh/ssh_host_ed25519_key.pub",
			"is not a valid SSH public key: %v",
			err)
	}
}

// HostKey returns a host's public key as base64 of SSH's wire format. It accepts that format, a line of
// ssh_host_*_key.pub, and the line in base64, as Terraform's base64encode returns it.
func HostKey(key string) (string, error) {
	key = strings.TrimSpace(key)
	if parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err == nil {
		return base64.StdEncoding.EncodeToString(parsed.Marshal()), nil
	}
	data, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return "", errors.New("it is not base64")
	}
	if parsed, err := ssh.ParsePublicKey(data); err == nil {
		return base64.StdEncoding.EncodeToString(parsed.Marshal()), nil
	}
	parsed, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return "", errors.New("the base64 text is not a key")
	}
	return base64.StdEncoding.EncodeToString(parsed.Marshal()), nil
}
