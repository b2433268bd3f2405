package step

import (
	"cmp"

	"kubeone/internal/model/desired"
)

// Kinds that install Kubernetes on bare hosts, and create a cluster.
const (
	Prepare Kind = "prepare"
	Images  Kind = "images"
	Init    Kind = "init"
)

// PrepareParams are what a host lacks.
type PrepareParams struct {
	Content
	Packages []string `json:"packages,omitempty"` // of the distribution
}

// Kind returns Prepare.
func (PrepareParams) Kind() Kind { return Prepare }

func prepareRow() row {
	return row{
		kind: Prepare, about: "installs packages, kernel settings, binaries, container runtime and kubelet unit",
		traits: installsRelease | runsByHand,
		place:  OnHost, concerns: ItsHost, group: groupPrepare, params: paramsOf[PrepareParams](),
		secrets: []Secret{CredentialsSecret}, partOf: desired.Joining,
		effect: afterCredentials, // no decision depends on the rest before the host joins
	}
}

// ImagesParams are the images that a host lacks.
type ImagesParams struct{ Content }

// Kind returns Images.
func (ImagesParams) Kind() Kind { return Images }

func imagesRow() row {
	return row{
		kind: Images, about: "imports images into the container runtime",
		traits: installsRelease | runsByHand,
		place:  OnHost, concerns: ItsHost, group: groupImages, params: paramsOf[ImagesParams](),
		partOf: desired.Joining, effect: noEffect,
	}
}

func initRow() row {
	return row{
		kind: Init, about: "creates the first control-plane host of a new cluster",
		traits: writesStaticPods | createsControlPlane | joinsCluster | runsByHand | coreOfActivity,
		place:  OnHost, group: groupInit, event: "KubeOneJoined", secrets: []Secret{NewTokenSecret, EncryptionSecret},
		partOf: desired.Joining, effect: afterInit,
	}
}

// afterInit makes a host the first member of a cluster whose CA is not known yet.
func afterInit(w *World, h desired.Host, i Intent) {
	w.CA = ""
	afterJoin(w, h, i)
	w.dnsMade()
}

// afterJoin makes a host a member with this manifest's settings, whatever an unfinished installation had left on it.
func afterJoin(w *World, h desired.Host, _ Intent) {
	seen := w.Is.Hosts[h.ID]
	seen.Kubelet.Version, seen.APIServerVersion, seen.Upgrading = w.Want.KubeletVersion(h), "", ""
	seen.ControllerManagerVersion, seen.SchedulerVersion = "", ""
	seen.Containerd.Version = cmp.Or(h.Versions.Containerd, seen.Containerd.Version)
	seen.Digests, seen.Swaps, seen.CNIFiles = w.Config[h.ID], nil, nil
	seen.Firewalls, seen.StoppedTimers = w.firewallsOf(seen), nil
	seen.Endpoint = w.Want.Endpoint.URL()
	if h.Role == desired.ControlPlane {
		w.encryptedLikeOthers(h.ID, &seen)
		seen.Endpoint, seen.AdminEndpoint = "", w.Want.Endpoint.URL() // its kubelet uses the host's own API server
		seen.APINames = w.Want.APINames()
	}
	w.Is.Hosts[h.ID] = seen
	w.makeMember(h)
}
