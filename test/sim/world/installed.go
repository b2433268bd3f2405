package world

import "kubeone/internal/model/desired"

// Installed returns the world of a healthy cluster that runs that version on all hosts of the manifest.
func Installed(want desired.Cluster, version string) *World {
	w := New(want)
	first := w.Hosts[0]
	w.beginEtcd(first, Objects{
		Addons: map[string]string{want.Network.CNI.Name: Addon}, Record: want.Digest, Endpoint: want.Endpoint.Host,
		Secrets: newSecrets(nil),
	}, 1)
	r := w.EtcdCluster()
	for _, h := range w.Hosts {
		h.Disk.Marker = &Marker{Cluster: w.Name, Complete: true, Role: desired.Worker, ID: h.ID, Node: h.Name}
		if h.ControlPlane {
			h.Disk.Marker.Role = desired.ControlPlane
		}
		h.Disk.KubeletCA, h.Disk.Local = 1, h.ControlPlane
		if !h.ControlPlane {
			h.Disk.Dials = want.Endpoint.Host
		}
		h.Disk.Fetched, h.Disk.Digest = []string{version}, Config
		h.Disk.Settings = Config
		h.Run.Containerd = true
		startKubelet(h, version)
		h.Run.Registered = true
		r.Objects.Nodes = append(r.Objects.Nodes,
			&Node{Name: h.Name, Address: h.Address, Kubelet: version, Ready: true, ControlPlane: h.ControlPlane})
		if !h.ControlPlane {
			continue
		}
		h.Disk.Admin, h.Disk.Names = want.Endpoint.Host, want.Endpoint.Required()
		h.Disk.CA, h.Disk.AdminCA, h.Disk.Etcd, h.Disk.API, h.Disk.Controllers = 1, 1, true, version, true
		if h != first {
			r.next++
			id := r.ID*100 + r.next
			r.Members = append(r.Members, Member{ID: id, Name: h.Name, Address: h.Address})
			h.Disk.Data = &Data{EtcdCluster: r.ID, Member: id, Revision: 1}
		}
	}
	r.Objects.Known = w.knownNodes(nil)
	r.Objects.DNS = DNS{Pod: Pod{Node: first.Name, Since: -podStart}, Runs: true}
	w.settleWorld()
	return w
}

// Addon is the digest of the desired network plugin.
const Addon = "addon-1"

// Deploy adds an application with that many pods. least is the minimum of available ones.
func (w *World) Deploy(name string, pods, least int) {
	r := w.EtcdCluster()
	r.Objects.Apps = append(r.Objects.Apps, &App{Name: name, Min: least, Pods: make([]Pod, pods)})
	w.settleWorld()
	for _, a := range r.Objects.Apps {
		for i := range a.Pods {
			a.Pods[i].Since = -podStart // they started long ago
		}
	}
}

// Pool adds bare hosts outside the manifest.
func (w *World) Pool(hosts ...desired.Host) {
	for _, h := range hosts {
		w.machines++
		w.Hosts = append(w.Hosts, &Host{
			ID: h.ID, Name: h.Hostname, Address: h.PrivateAddress, Machine: w.machines, Up: true, Outside: true,
		})
	}
}

// Extend adds the manifest's missing hosts, bare, and sorts all in the manifest's order. Hosts outside the manifest
// come last.
func (w *World) Extend(want desired.Cluster) {
	all := New(want)
	for i, h := range all.Hosts {
		if have := w.Host(h.ID); have != nil {
			all.Hosts[i] = have
			continue
		}
		w.machines++
		h.Machine = w.machines
	}
	for _, h := range w.Hosts {
		if all.Host(h.ID) == nil {
			h.Outside = true
			all.Hosts = append(all.Hosts, h)
		}
	}
	w.Hosts, w.want = all.Hosts, want
}
