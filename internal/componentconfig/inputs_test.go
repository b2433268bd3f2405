package componentconfig

import (
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/testutil/configtest"
)

// input is what a host of a cluster for tests depends on.
func input(name string) Input {
	want := configtest.Cluster()
	h, _ := want.Host(name)
	return Input{Want: want, Host: h, NodeName: name, Arch: "amd64", Network: plugins.Host(want)}
}

// hardened is a host of a cluster that is hardened so much.
func hardened(name, value string) Input {
	in := input(name)
	in.Want = in.Want.Harden(value)
	return in
}

func ptr[T any](v T) *T { return &v }
