// Package componentconfig renders the configuration of a cluster's programs: kubeadm, the kubelet, the container
// runtime, the control plane's components, the kernel and firewalls. It is pure: the same desired cluster and host give
// the same text, byte for byte. Package script makes hosts write these files, and drift is measured against their
// digests.
package componentconfig

import (
	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
)

// Paths on a host that its configuration refers to.
const (
	BinDir     = "/opt/kubeone/bin"
	SecretsDir = "/run/kubeone/secrets" // on a tmpfs
	// joinFile, in SecretsDir, is the kubeconfig with the bootstrap token that kubeadm reads; the host creates it.
	joinFile = "join.conf"
)

// APIPort is the port of a host's own API server.
const APIPort = 6443

// Input is everything that a host's configuration depends on.
type Input struct {
	Want     desired.Cluster
	Host     desired.Host
	NodeName string
	Arch     string // as Go names it
	Network  network.Host
}
