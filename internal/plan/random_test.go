package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/atrest"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// kind is one sort of host in a random world: what it says, and what the API and etcd say of it.
type kind struct {
	host   func(desired.Host) observed.Host
	node   observed.Tri // readiness of its Node
	noNode bool
	voter  observed.Tri // health of its etcd member
	out    bool         // not a member of etcd
	weight int
}

// hostKinds returns the kinds of hosts. Healthy and bare ones are the most frequent, because otherwise nearly every
// world would be hopeless.
func hostKinds() []kind {
	return []kind{
		{host: memberHost, node: observed.Yes, voter: observed.Yes, weight: 12},
		{host: bareHost, noNode: true, out: true, weight: 8},
		{host: begunHost, noNode: true, out: true, weight: 4},
		{host: stoppedHost, node: observed.Unknown, voter: observed.Yes, weight: 3},
		{host: silentHost, node: observed.Unknown, voter: observed.No, weight: 1},
		{host: silentHost, noNode: true, out: true, weight: 1},
		{host: bareHost, node: observed.Unknown, voter: observed.No, weight: 1},
		{host: memberHost, node: observed.No, voter: observed.Yes, weight: 1},
		{host: incompleteHost, node: observed.Yes, voter: observed.Yes, weight: 1},
		{host: hostWithoutData, node: observed.No, voter: observed.No, weight: 1},
		{host: foreign, noNode: true, out: true, weight: 1},
		{host: withEditedFiles(memberHost), node: observed.Yes, voter: observed.Yes, weight: 2},
		{host: withEditedFiles(stoppedHost), node: observed.Unknown, voter: observed.Yes, weight: 1},
		{host: withFirewall(memberHost), node: observed.Yes, voter: observed.Yes, weight: 2},
		{host: withFirewall(bareHost), noNode: true, out: true, weight: 1},
	}
}

// withFirewall returns such a host with a firewall that lacks our rules.
func withFirewall(host func(desired.Host) observed.Host) func(desired.Host) observed.Host {
	return func(h desired.Host) observed.Host {
		is := host(h)
		is.Firewalls = []observed.Firewall{{Name: "ufw"}}
		return is
	}
}

// openedFirewalls returns the firewalls of a host as a stage leaves them.
func openedFirewalls(is observed.Host) []observed.Firewall {
	if len(is.Firewalls) == 0 {
		return nil
	}
	return []observed.Firewall{{Name: "ufw", Ours: true}}
}

// withEditedFiles returns such a host with two edited files: one can be restored, another has no copy.
func withEditedFiles(host func(desired.Host) observed.Host) func(desired.Host) observed.Host {
	return func(h desired.Host) observed.Host {
		is := host(h)
		is.Restorable = []string{"/etc/containerd/config.toml", "/var/lib/kubelet/config.yaml"}
		is.Edited = append([]string{"/etc/systemd/system/kubelet.service"}, is.Restorable...)
		is.Exposed = []observed.FileAccess{{Path: "/etc/kubernetes/kubelet.conf", Mode: "644"}}
		return is
	}
}

func foreign(h desired.Host) observed.Host {
	is := bareHost(h)
	is.EtcdData, is.PKI, is.CAHash = observed.Yes, observed.Yes, "sha256:bbbb"
	return is
}

// pickKind returns a random kind; most worlds draw from the first few only.
func pickKind(r *rand.Rand) kind {
	all := hostKinds()
	if r.IntN(3) > 0 {
		all = all[:4]
	}
	total := 0
	for _, k := range all {
		total += k.weight
	}
	n := r.IntN(total)
	for _, k := range all {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return all[0]
}

// randomWorld returns a world as the probes might find it.
func randomWorld(r *rand.Rand) decide.Input {
	cps, workers := 1+r.IntN(5), r.IntN(4)
	in := bareCluster(cps, workers)
	fresh := r.IntN(4) == 0
	for _, h := range in.Want.Hosts() {
		k := pickKind(r)
		if fresh {
			k = hostKinds()[1+r.IntN(2)]
		}
		putHost(&in, h, k)
	}
	varyDesired(r, &in)
	if r.IntN(3) == 0 {
		encryptSome(r, &in)
	}
	if r.IntN(3) == 0 {
		hookSome(r, &in)
	}
	if in.Is.Etcd.Reached = observed.Yes; len(in.Is.Etcd.Members) == 0 || r.IntN(8) == 0 {
		in.Is.Etcd = observed.Etcd{Reached: observed.No}
	}
	if in.Is.API.Reached, in.Is.API.Version = observed.Yes, version; len(in.Is.API.Nodes) == 0 || r.IntN(8) == 0 {
		in.Is.API = observed.API{Reached: observed.No} // and so nothing is known of what it holds
	}
	return decide.Settle(in, in.Limit != nil)
}

// hookSome has commands around some activities, and owes some to hosts.
func hookSome(r *rand.Rand, in *decide.Input) {
	all := []desired.Activity{
		desired.Applying, desired.Installing, desired.Joining, desired.Upgrading, desired.Draining,
		desired.Reconfiguring, desired.Resetting,
	}
	for n := range r.IntN(6) {
		when := []desired.When{desired.Before, desired.After}[r.IntN(2)]
		of := all[r.IntN(len(all))]
		in.Want.Hooks = append(in.Want.Hooks, desired.Hook{
			Name: fmt.Sprint("hook-", n), When: when, Activity: of,
			OnHost:  r.IntN(2) == 0 && of != desired.Applying && (of != desired.Resetting || when == desired.Before),
			Command: []string{"do", string(of)}, Timeout: time.Minute,
		})
	}
	for _, h := range in.Want.Hosts() {
		if is := in.Is.Hosts[h.ID]; is.Reach == observed.Reached && r.IntN(4) == 0 {
			is.HooksOwed = []string{string(all[1+r.IntN(3)])}
			if r.IntN(2) == 0 {
				is.HooksOwed = append(is.HooksOwed, string(desired.Reconfiguring))
			}
			in.Is.Hosts[h.ID] = is
		}
	}
}

// encryptSome has Secrets encrypted, in some phase or another.
func encryptSome(r *rand.Rand, in *decide.Input) {
	in.Want.EncryptSecrets = r.IntN(3) > 0
	in.RotateKey = in.Want.EncryptSecrets && r.IntN(3) == 0
	for _, h := range in.Want.ControlPlane {
		if is := in.Is.Hosts[h.ID]; is.KubeletConf == observed.Yes && is.EtcdData == observed.Yes {
			is.Encryption = encryptedBy([][]string{
				nil, {"identity", "kubeone-1"}, {"kubeone-1", "identity"}, {"kubeone-1"},
			}[r.IntN(4)])
			if is.Encryption != nil && r.IntN(9) == 0 {
				is.Encryption.Lost, is.Encryption.Next.Providers = true, nil
			}
			in.Is.Hosts[h.ID] = is
		}
	}
}

// The endpoints of random worlds.
const (
	oldEndpoint = "old.example.com"
	newEndpoint = "new.example.com"
)

// halfMoved is a cluster whose endpoint is moving, or has moved, or stays: each host is as far as it is.
func halfMoved(r *rand.Rand, in *decide.Input) {
	at := func() desired.Endpoint {
		return desired.Endpoint{Host: []string{oldEndpoint, newEndpoint}[r.IntN(2)], Port: 6443}
	}
	in.Want.Endpoint, in.Is.API.Endpoint = at(), at().String()
	for _, h := range in.Want.Hosts() {
		is := in.Is.Hosts[h.ID]
		if is.KubeletConf != observed.Yes {
			continue
		}
		if is.Endpoint = at().URL(); h.Role == desired.ControlPlane {
			is.AdminEndpoint = at().URL()
			is.APINames = []string{oldEndpoint, newEndpoint, "kubernetes"}[r.IntN(2):]
		}
		in.Is.Hosts[h.ID] = is
	}
}

// varyDesired changes what is desired of a cluster that is there.
func varyDesired(r *rand.Rand, in *decide.Input) {
	in.Is.API.Addons = map[string]string{"flannel": "addon-1"}
	if r.IntN(2) == 0 {
		in.Is.API.Addons = maps.Clone(in.Addons)
		in.Is.API.Record = &observed.Record{Cluster: cluster, ManifestDigest: in.Want.Digest}
	}
	in.System = map[string]string{"kube-proxy": "r/kube-proxy", "kube-dns": "r/coredns"}
	in.Is.API.Compared = map[string]observed.Comparison{}
	for _, name := range []string{"flannel", "kube-proxy", "kube-dns"} {
		var c observed.Comparison
		if r.IntN(4) == 0 {
			c.Differences = []observed.Difference{{Object: "an object of " + name, Missing: true}}
		}
		if r.IntN(4) == 0 && name != "flannel" {
			c.Settings = []observed.Difference{{Object: "an object of " + name, Fields: []string{"mode"}}}
		}
		in.Is.API.Compared[name] = c
	}
	hosts := in.Want.Hosts()
	h := hosts[r.IntN(len(hosts))]
	if r.IntN(3) == 0 {
		halfMoved(r, in)
	}
	if r.IntN(3) == 0 {
		in.Is.API.ServingRequests = []observed.ServingRequest{{Node: h.Hostname, Names: []string{h.PrivateAddress}}}
	}
	switch r.IntN(8) {
	case 0:
		in.Want.KubernetesVersion = "1.36.4"
		in.Want.Upgrade = desired.Upgrade{Canary: r.IntN(2) == 0, MaxUnavailable: desired.Share{Count: 1 + r.IntN(3)}}
		upgradeHalf(r, in)
	case 1:
		in.Config[h.ID] = map[string]string{"kubelet": "config-2"}
	case 2:
		in.Want.ControlPlane[0].Labels = map[string]string{"zone": "a", "gone-": ""}
	case 3:
		in.Limit = map[string]bool{}
		for _, h := range hosts {
			if r.IntN(2) == 0 {
				in.Limit[h.ID] = true
			}
		}
	}
	if r.IntN(4) == 0 {
		renameDNS(r, in)
	}
}

// upgradeHalf upgrades some hosts, as a run does that was interrupted: the control plane first, in order, the last of
// them still cordoned.
func upgradeHalf(r *rand.Rand, in *decide.Input) {
	hosts := in.Want.Hosts()
	for _, h := range hosts[:r.IntN(len(hosts)+1)] {
		is := in.Is.Hosts[h.ID]
		if is.Kubelet.Version == "" {
			return
		}
		is.Kubelet.Version = in.Want.KubernetesVersion
		if h.Role == desired.ControlPlane {
			is.APIServerVersion = in.Want.KubernetesVersion
		}
		in.Is.Hosts[h.ID] = is
		nodeOf(*in, h.Hostname, func(n *observed.Node) {
			n.KubeletVersion = in.Want.KubernetesVersion
			if r.IntN(3) == 0 {
				n.Unschedulable, n.Annotations = true, map[string]string{observed.CordonAnnotation: "run-1"}
			}
		})
	}
}

func putHost(in *decide.Input, h desired.Host, k kind) {
	in.Is.Hosts[h.ID] = k.host(h)
	if !k.noNode {
		n := testNode(h)
		n.Ready = k.node
		in.Is.API.Nodes = append(in.Is.API.Nodes, n)
	}
	if h.Role == desired.ControlPlane && !k.out {
		m := testMember(h)
		m.Healthy = k.voter
		in.Is.Etcd.Members = append(in.Is.Etcd.Members, m)
	}
}

// carryOut is what the world becomes when every step has succeeded, told without the plan's own predictions.
func carryOut(in decide.Input, p Plan) decide.Input {
	out := in
	out.Is = step.NewWorld(in, nil, 0).Is
	for _, s := range p.Steps {
		h, _ := in.Want.Host(s.Host)
		switch s.Intent.Kind {
		case step.Init, step.JoinWorker, step.JoinFinish:
			addHostJoinSteps(&out, h)
			encryptLikeOthers(&out, h, s.Intent.Kind)
		case step.RemoveEtcd:
			out.Is.Etcd.Members = slices.DeleteFunc(slices.Clone(out.Is.Etcd.Members), func(m observed.Member) bool {
				return m.ID == step.ParamsOf[step.RemoveEtcdParams](s.Intent).Member
			})
		case step.DeleteNode:
			out.Is.API.Nodes = slices.DeleteFunc(slices.Clone(out.Is.API.Nodes), func(n observed.Node) bool {
				return n.Name == s.Intent.NodeName
			})
		case step.ResetHost:
			out.Is.Hosts[h.ID] = bareHost(h)
		case step.Quarantine:
			is := begunHost(h)
			is.Digests = nil
			out.Is.Hosts[h.ID] = is
		case step.RestartUnits, step.Regenerate, step.RestoreFiles:
			is, was := memberHost(h), out.Is.Hosts[h.ID]
			is.Edited, is.Restorable, is.Encryption = was.Edited, was.Restorable, was.Encryption
			is.Firewalls = was.Firewalls
			if s.Intent.Kind == step.RestoreFiles {
				is.Edited, is.Restorable = desired.Missing(was.Edited, was.Restorable), nil
			}
			is.Endpoint, is.AdminEndpoint, is.APINames = was.Endpoint, was.AdminEndpoint, was.APINames
			is.Kubelet.Version = was.Kubelet.Version
			is.Digests = withDNSNote(is.Digests, was.Digests[desired.DNSImageDigest])
			if was.APIServerVersion != "" {
				is.APIServerVersion = was.APIServerVersion
			}
			out.Is.Hosts[h.ID] = is
			nodeOf(out, h.Hostname, func(n *observed.Node) {
				n.Ready = observed.Yes
				if is.Kubelet.Version != "" {
					n.KubeletVersion = is.Kubelet.Version // it says what was started
				}
			})
			etcdOf(out, h.Hostname, func(m *observed.Member) { m.Healthy = observed.Yes })
		case step.EncryptLearn, step.EncryptUse, step.EncryptForget, step.EncryptGive:
			is := out.Is.Hosts[h.ID]
			is.Encryption = encryptedBy(step.ParamsOf[step.EncryptParams](s.Intent).Providers)
			out.RotateKey = false // once
			if step.ParamsOf[step.EncryptParams](s.Intent).Phase == atrest.Give {
				version := is.Kubelet.Version
				works := memberHost(h)
				is.Containerd, is.Kubelet, is.Healthz = works.Containerd, works.Kubelet, works.Healthz
				is.KubeletConf, is.KubeletCert, is.APIServer = works.KubeletConf, works.KubeletCert, works.APIServer
				is.Kubelet.Version = version
				nodeOf(out, h.Hostname, func(n *observed.Node) { n.Ready = observed.Yes })
				etcdOf(out, h.Hostname, func(m *observed.Member) { m.Healthy = observed.Yes })
			}
			out.Is.Hosts[h.ID] = is
		case step.Hooks:
			is := out.Is.Hosts[h.ID]
			m := step.ParamsOf[step.HooksParams](s.Intent).Moment
			if m.Noted() {
				is.HooksOwed = slices.DeleteFunc(slices.Clone(is.HooksOwed), func(a string) bool {
					return a == string(m.Activity)
				})
			}
			out.Is.Hosts[h.ID] = is
		case step.Reconfigure:
			is := out.Is.Hosts[h.ID]
			is.Digests, is.Firewalls = withDigests(in, h, is), openedFirewalls(is)
			out.Is.Hosts[h.ID] = is
		case step.Fetch:
			is := out.Is.Hosts[h.ID]
			is.Digests = withDNSNote(is.Digests, in.Config[h.ID][desired.DNSImageDigest])
			out.Is.Hosts[h.ID] = is
		case step.UpgradeControlPlane, step.UpgradeWorker:
			is := out.Is.Hosts[h.ID]
			is.Kubelet.Version, is.Digests = in.Want.KubernetesVersion, withDigests(in, h, is)
			is.Edited, is.Restorable, is.Firewalls = nil, nil, openedFirewalls(is)
			if s.Intent.Kind == step.UpgradeControlPlane {
				is.APIServerVersion = in.Want.KubernetesVersion
			}
			out.Is.Hosts[h.ID] = is
			nodeOf(out, h.Hostname, func(n *observed.Node) { n.KubeletVersion = in.Want.KubernetesVersion })
		case step.Uncordon:
			nodeOf(out, s.Intent.NodeName, func(n *observed.Node) {
				if n.Annotations[observed.CordonAnnotation] != "" {
					n.Unschedulable, n.Annotations = false, nil
				}
			})
		case step.NodeReady:
			nodeOf(out, s.Intent.NodeName, func(n *observed.Node) {
				relabelNodes(n, step.ParamsOf[step.NodeReadyParams](s.Intent).Labels)
			})
		case step.ApplyAddon:
			out.Is.API.Addons = maps.Clone(out.Is.API.Addons)
			if out.Is.API.Addons == nil {
				out.Is.API.Addons = map[string]string{}
			}
			name := step.ParamsOf[step.ApplyAddonParams](s.Intent).Addon
			out.Is.API.Addons[name] = s.Intent.Digest
			setRight(&out, false, name)
		case step.SystemAddons:
			setRight(&out, false, "kube-proxy", "kube-dns")
			out.Is.API.Pods = nil
		case step.APINames:
			is := out.Is.Hosts[h.ID]
			is.APINames = append(slices.Clone(is.APINames), step.ParamsOf[step.APINamesParams](s.Intent).Add...)
			out.Is.Hosts[h.ID] = is
		case step.Dial:
			is := out.Is.Hosts[h.ID]
			is.Endpoint, is.AdminEndpoint = in.Want.Endpoint.URL(), in.Want.Endpoint.URL()
			out.Is.Hosts[h.ID] = is
		case step.PublishEndpoint:
			out.Is.API.Endpoint = in.Want.Endpoint.String()
		case step.ApproveServing:
			out.Is.API.ServingRequests = nil
		case step.SetSystem:
			setRight(&out, true, step.ParamsOf[step.SetSystemParams](s.Intent).Apps...)
		case step.SaveRecord:
			out.Is.API.Record = &observed.Record{Cluster: cluster, ManifestDigest: in.Want.Digest}
		}
	}
	return out
}

// setRight makes live objects, or what is set in them, what they must be.
func setRight(in *decide.Input, settings bool, components ...string) {
	if in.Is.API.Compared == nil {
		return // not probed
	}
	in.Is.API.Compared = maps.Clone(in.Is.API.Compared)
	for _, name := range components {
		c := in.Is.API.Compared[name]
		if settings {
			c.Settings = nil
		} else {
			c.Differences = nil
		}
		in.Is.API.Compared[name] = c
	}
}

func addHostJoinSteps(in *decide.Input, h desired.Host) {
	is := memberHost(h)
	is.Kubelet.Version, is.Digests = in.Want.KubernetesVersion, in.Config[h.ID]
	is.Firewalls = openedFirewalls(in.Is.Hosts[h.ID])
	n := testNode(h)
	n.KubeletVersion = in.Want.KubernetesVersion
	if h.Role == desired.ControlPlane {
		is.APIServerVersion = in.Want.KubernetesVersion
		in.Is.Etcd.Reached = observed.Yes
		if !slices.ContainsFunc(in.Is.Etcd.Members, func(m observed.Member) bool { return m.Name == h.Hostname }) {
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, testMember(h))
		}
		etcdOf(*in, h.Hostname, func(m *observed.Member) { m.Healthy = observed.Yes })
	}
	in.Is.Hosts[h.ID] = is
	in.Is.API.Reached, in.Is.API.Version = observed.Yes, in.Want.KubernetesVersion
	if !slices.ContainsFunc(in.Is.API.Nodes, func(n observed.Node) bool { return n.Name == h.Hostname }) {
		in.Is.API.Nodes = append(in.Is.API.Nodes, n)
	}
	nodeOf(*in, h.Hostname, func(n *observed.Node) {
		n.Ready, n.KubeletVersion = observed.Yes, in.Want.KubernetesVersion
	})
}

func relabelNodes(n *observed.Node, labels map[string]string) {
	n.Labels = maps.Clone(n.Labels)
	for k, v := range labels {
		if k[len(k)-1] == '-' {
			delete(n.Labels, k[:len(k)-1])
			continue
		}
		n.Labels[k] = v
	}
}

// encryptedBy returns how a host stores Secrets that runs with these keys.
func encryptedBy(names []string) *observed.Encryption {
	if len(names) == 0 {
		return nil
	}
	c := observed.EncryptionConfig{Digest: strings.Join(names, ",")}
	for _, name := range names {
		c.Providers = append(c.Providers, observed.EncryptedBy{Name: name, Key: name})
	}
	return &observed.Encryption{Running: []observed.EncryptionConfig{c}, Next: c}
}

// encryptLikeOthers gives a control-plane host that has joined the keys of all others, and the first one its first.
func encryptLikeOthers(out *decide.Input, h desired.Host, k step.Kind) {
	if h.Role != desired.ControlPlane {
		return
	}
	is := out.Is.Hosts[h.ID]
	if k == step.Init {
		if out.RotateKey = false; out.Want.EncryptSecrets {
			is.Encryption = encryptedBy([]string{atrest.FirstKey})
		}
		out.Is.Hosts[h.ID] = is
		return
	}
	var others []atrest.Host
	for _, other := range out.Want.ControlPlane {
		if seen := out.Is.Hosts[other.ID]; other.ID != h.ID && seen.Marker != nil && seen.Marker.Complete &&
			seen.Reach == observed.Reached {
			others = append(others, atrest.Of(other.ID, seen.Encryption))
		}
	}
	is.Encryption = encryptedBy(atrest.Join(others))
	out.Is.Hosts[h.ID] = is
}
