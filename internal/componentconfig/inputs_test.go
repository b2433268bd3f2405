package componentconfig

import (
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/testutil/configtest"
)

// input returns the input of a host in a test cluster.
func input(name string) Input {
	want := configtest.Cluster()
	h, _ := want.Host(name)
	return Input{Want: want, Host: h, NodeName: name, Arch: "amd64", Network: plugins.Host(want)}
}

// hardened returns a host of a cluster with that hardening.
func hardened(name, value string) Input {
	in := input(name)
	in.Want = in.Want.Harden(value)
	return in
}

func ptr[T any](v T) *T { return &v }
