package hostile

import "slices"

// nameClaims returns attempts to get the name, and with it a certificate, of a Node that is no host of the manifest. A
// worker also requests a join token in that name, by reporting a missing kubelet.conf or a bare host.
func nameClaims() []attempt {
	var out []attempt
	for _, of := range [][2]string{
		{"the name of a Machine's Node", "pool-1"},
		{"the name of a Host that no Machine has", "pool-2"},
		{"the name of a Node that was joined by hand", "hand-1"},
		{"the name of a control-plane host that the manifest does not have", "cp-9"},
		{"the API's address as its name", endpointHost},
		{"an alternative name of the API, in capitals", "API.Demo.Example.com"},
		{"the API's name in the cluster", "kubernetes.default.svc"},
		{"the name localhost", "localhost"},
	} {
		what, name := of[0], of[1]
		claimed := []string{"-hostname", "hostname\t" + name}
		joined := append(slices.Clip(claimed), "-file\t/etc/kubeone/marker:node=",
			"file\t/etc/kubeone/marker:node="+name)
		lost := append(slices.Clip(joined), "-exists\t/etc/kubernetes/kubelet.conf",
			"absent\t/etc/kubernetes/kubelet.conf")
		out = append(out,
			attempt{name: what, as: asWorker, idle: true, says: addLines(joined...)},
			attempt{name: what + ", to join with it", as: []role{firstContact, controlPlane}, idle: true,
				says: addLines(claimed...)},
			attempt{name: what + ", and kubelet.conf gone", as: asWorker, idle: true, says: addLines(lost...)},
			attempt{name: what + ", and bare again", as: asWorker, idle: true,
				says: addLines(append(bareEdits(), claimed...)...)},
		)
	}
	return out
}

// bareEdits returns edits that make a joined host report that nothing is installed.
func bareEdits() []string {
	return []string{
		"-exists", "-file\t/etc/kubeone", "-unit", "-health", "-link", "absent\t/etc/kubernetes/kubelet.conf",
		"absent\t/etc/kubeone/marker",
	}
}
