// Package componentconfig renders what the programs of a cluster are configured with: kubeadm, the kubelet, the
// container runtime, the control plane's components, the kernel and firewalls. It is pure: the same desired cluster and
// host give the same text, byte for byte. Package script has hosts write these files, and digests of them are what
// drift is measured against.
package componentconfig

import (
	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
)

// Where things are on a host that its configuration names.
const (
	BinDir     = "/opt/kubeone/bin"
	SecretsDir = "/run/kubeone/secrets" // on a memory file system
	// joinFile, in SecretsDir, is the kubeconfig with the bootstrap token that kubeadm reads; made on the host.
	joinFile = "join.conf"
)

// APIPort is where a host's own API server listens.
const APIPort = 6443

// Input is all that a host's configuration depends on.
type Input struct {
	Want     desired.Cluster
	Host     desired.Host
	NodeName string
	Arch     string // as Go names it
	Network  network.Host
}
