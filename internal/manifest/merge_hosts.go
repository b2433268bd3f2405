package manifest

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"kubeone/api/kubeone/v1beta2"
)

// Paths of the host lists in the manifest.
const (
	controlPlanePath = "controlPlane.hosts"
	workersPath      = "staticWorkers.hosts"
)

// mergeControlPlane replaces the control-plane hosts in the manifest with those in the Terraform output, if it contains
// any.
func (l *loader) mergeControlPlane(out *terraformOutput) {
	cp := out.hosts.ControlPlane
	theirs := l.groupHosts(out, controlPlaneOutput, cp.hostGroup)
	if len(theirs) == 0 {
		return
	}
	ours, where := l.cluster.ControlPlane.Hosts, l.where.cutBelow(controlPlanePath)
	matches := matchHosts(theirs, ours)
	for i, h := range ours {
		if !slices.Contains(matches, i) {
			at := where.findPosition(v1beta2.Item("", i))
			at.Path = v1beta2.Item(controlPlanePath, i)
			l.reportAt(at, Warning, "remove it from the manifest, or create it with Terraform",
				displayName(h)+" is ignored, because it is not a control-plane host in the Terraform output")
		}
	}
	hosts := make([]v1beta2.HostConfig, len(theirs))
	for i, t := range theirs {
		if cp.Untaint {
			t.host.Taints = []v1beta2.Taint{}
		}
		if k := matches[i]; k >= 0 {
			t = keepManifestFields(t, ours[k], where.cutBelow(v1beta2.Item("", k)), v1beta2.Item(controlPlanePath, k))
		}
		hosts[i] = t.host
		l.where.putBelow(v1beta2.Item(controlPlanePath, i), t.where)
	}
	l.cluster.ControlPlane.Hosts = hosts
	l.where[controlPlanePath] = out.positionOf(controlPlaneOutput)
	l.mergeLeader(out)
}

// mergeLeader sets isLeader only on the host with leader_ip in the Terraform output, if that is set.
func (l *loader) mergeLeader(out *terraformOutput) {
	leader := out.hosts.ControlPlane.LeaderIP
	if leader == "" {
		return
	}
	hosts := l.cluster.ControlPlane.Hosts
	isLeader := func(h v1beta2.HostConfig) bool {
		return isSameAddress(leader, h.PublicAddress) || isSameAddress(leader, h.PrivateAddress)
	}
	if !slices.ContainsFunc(hosts, isLeader) {
		l.reportAt(out.positionOf(controlPlaneOutput+".leader_ip"), Warning, "",
			fmt.Sprintf("%q is not a control-plane host", leader))
		return
	}
	for i := range hosts {
		hosts[i].IsLeader = isLeader(hosts[i])
		delete(l.where, v1beta2.Item(controlPlanePath, i)+".isLeader")
	}
}

// mergeStatic adds the static workers in the Terraform output, with the groups sorted by name.
func (l *loader) mergeStatic(out *terraformOutput) {
	var theirs []terraformHost
	for _, name := range slices.Sorted(maps.Keys(out.static)) {
		theirs = append(theirs, l.groupHosts(out, v1beta2.Child(outputStatic+".value", name), out.static[name])...)
	}
	hosts := l.cluster.StaticWorkers.Hosts
	matches := matchHosts(theirs, hosts)
	for i, t := range theirs {
		k := matches[i]
		if k < 0 {
			k = len(hosts)
			hosts = append(hosts, t.host)
		} else {
			path := v1beta2.Item(workersPath, k)
			t = keepManifestFields(t, hosts[k], l.where.cutBelow(path), path)
			hosts[k] = t.host
		}
		l.where.putBelow(v1beta2.Item(workersPath, k), t.where)
	}
	l.cluster.StaticWorkers.Hosts = hosts
}

// matchHosts returns, for each host in the Terraform output, the index of the same host in the manifest, or -1. Two
// hosts are the same if they share a public address, otherwise a private address, otherwise any address, otherwise a
// hostname. Any address counts, because one file may list as public the address that the other lists as private.
func matchHosts(theirs []terraformHost, ours []v1beta2.HostConfig) []int {
	matches, taken := make([]int, len(theirs)), map[int]bool{}
	for i := range matches {
		matches[i] = -1
	}
	for _, same := range []func(a, b v1beta2.HostConfig) bool{
		func(a, b v1beta2.HostConfig) bool { return isSameAddress(a.PublicAddress, b.PublicAddress) },
		func(a, b v1beta2.HostConfig) bool { return isSameAddress(a.PrivateAddress, b.PrivateAddress) },
		shareAddress,
		func(a, b v1beta2.HostConfig) bool { return isSameAddress(a.Hostname, b.Hostname) },
	} {
		for i, t := range theirs {
			if matches[i] >= 0 {
				continue
			}
			for k, h := range ours {
				if !taken[k] && same(t.host, h) {
					matches[i], taken[k] = k, true
					break
				}
			}
		}
	}
	return matches
}

// shareAddress reports whether two hosts share an address of any kind.
func shareAddress(a, b v1beta2.HostConfig) bool {
	return slices.ContainsFunc(addressesOf(a), func(address string) bool {
		return slices.ContainsFunc(addressesOf(b), func(other string) bool { return isSameAddress(address, other) })
	})
}

func addressesOf(h v1beta2.HostConfig) []string {
	return append([]string{h.PublicAddress, h.PrivateAddress}, h.IPv6Addresses...)
}

// isSameAddress reports whether two addresses are equal. It compares IP addresses by value, and names in their plain
// form. An empty address equals no other.
func isSameAddress(a, b string) bool {
	ip, errA := netip.ParseAddr(a)
	other, errB := netip.ParseAddr(b)
	if errA == nil && errB == nil {
		return ip.Unmap() == other.Unmap()
	}
	return a != "" && v1beta2.PlainName(a) == v1beta2.PlainName(b)
}

// keepManifestFields returns the Terraform host with the settings from the manifest. Addresses come from Terraform.
// Everything else comes from the manifest if it is set there. where holds the positions of the manifest fields,
// relative to the host at path.
func keepManifestFields(t terraformHost, ours v1beta2.HostConfig, where positions, path string) terraformHost {
	theirs := t.host
	if ours.Bastion != "" { // the other bastion fields from Terraform are for a different bastion
		theirs.Bastion, theirs.BastionPort, theirs.BastionUser = "", 0, ""
		theirs.BastionHostPublicKey, theirs.BastionPrivateKeyFile = "", ""
	}
	if ours.SSHPrivateKeyFile != "" {
		theirs.SSHCertFile = ""
	}
	public, private := theirs.PublicAddress, theirs.PrivateAddress
	fillUnset(reflect.ValueOf(&ours).Elem(), reflect.ValueOf(theirs))
	both := maps.Clone(t.where)
	for rest, at := range where {
		if rest != "" && rest != ".publicAddress" && rest != ".privateAddress" {
			at.Path = path + rest
			both[rest] = at
		}
	}
	if public != "" {
		ours.PublicAddress = public
	}
	if private != "" {
		ours.PrivateAddress = private
	}
	return terraformHost{host: ours, where: both}
}

// fillUnset copies fields and map keys that are unset in dst from src. An empty list counts as set.
func fillUnset(dst, src reflect.Value) {
	switch dst.Kind() {
	case reflect.Struct:
		for i := range dst.NumField() {
			fillUnset(dst.Field(i), src.Field(i))
		}
	case reflect.Map:
		merged := reflect.MakeMap(dst.Type())
		for _, from := range []reflect.Value{src, dst} {
			for _, key := range from.MapKeys() {
				merged.SetMapIndex(key, from.MapIndex(key))
			}
		}
		if merged.Len() > 0 {
			dst.Set(merged)
		}
	default:
		if dst.IsZero() {
			dst.Set(src)
		}
	}
}

// displayName returns the name of a host for messages.
func displayName(h v1beta2.HostConfig) string {
	for _, name := range []string{h.Hostname, h.PublicAddress, h.PrivateAddress} {
		if name != "" {
			return name
		}
	}
	return "a host without an address"
}
