package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/decide"
	"kubeone/internal/decide/match"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// Site is the cluster that the hosts are to join, and the means to make them do so. It is not changed once it is used.
type Site struct {
	Access cluster.Access    // to the cluster's API
	CA     string            // the hash of the public key of its CA, as kubeadm writes it: "sha256:…"
	Signer cryptossh.Signer  // with which the hosts let the cluster in
	Holder string            // who holds locks: "controller/user@machine"
	Record func(apply.Event) // is told all that happens in every run; nil is nobody
	Now    func() time.Time
	// Releases has what is installed. Without bundles, hosts download from the mirror, "" for the official locations.
	Releases func(ctx context.Context, mirror string) (engine.Releases, error)
}

// CA implements engine.KnownCA: it is known, and nobody makes it another one.
type knownCA string

func (ca knownCA) CA() string { return string(ca) }

func (knownCA) Know(string) error { return nil }

// aim is what a run is to bring about: that the host is what its Machine's spec says, or bare if that is gone.
type aim struct {
	what string // in a word
	gone bool
	// turn says whether the host may get other settings, which are of the revision; "" where that is not known.
	turn     decide.Turn
	revision string
	// begins is called when something begins to be carried out: what was waited for is over.
	begins func()
}

// work carries out what an aim asks for, until nothing is left to do.
type work func(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim, givenUp bool) error

// ensureAim sees to it that an aim is reached.
func (p *Provider) ensureAim(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim) (done bool, err error) {
	hostCopy, machineCopy := h.DeepCopy(), m.DeepCopy()
	if isNodeNotReady(m) {
		p.runs.recheck(m.UID, p.site.Now())
	}
	return p.runs.ensureRun(ctx, m.UID, a.goalText(m, h), a.what, func(ctx context.Context) error {
		lost, err := p.silentSince(ctx, machineCopy, hostCopy)
		if err != nil {
			return err
		}
		a.begins = func() { p.runs.noteBegun(m.UID) }
		err = p.work(ctx, machineCopy, hostCopy, a, a.gone && givenUp(machineCopy, lost, p.site.Now()))
		if a.gone {
			return err
		}
		return p.settings.noteResult(machineCopy.UID, a.revision, err)
	})
}

// silentSince is since when the Machine's Node says nothing; zero where it does, or is not there. A kubelet that says
// that it is not ready lives, and so may its pods.
func (p *Provider) silentSince(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host) (time.Time, error) {
	n := &corev1.Node{}
	if err := p.client.Get(ctx, client.ObjectKey{Name: h.Name}, n); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown && provider.Owns(m, n) {
			return c.LastTransitionTime.Time, nil
		}
	}
	return time.Time{}, nil
}

// goalText is what a run is to bring about.
func goalText(m *v1alpha1.Machine, gone bool) string {
	if gone {
		return "gone"
	}
	text, _ := json.Marshal(m.Spec.Versions) // of texts alone
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// goalText is what is to be brought about, in a text that is the same for the same.
func (a aim) goalText(m *v1alpha1.Machine, h *kubeone.Host) string {
	text := goalText(m, a.gone) + " on " + string(h.UID)
	if a.revision != "" {
		text += " with " + a.revision + " " + string(a.turn)
	}
	return text
}

// isNodeNotReady reports whether the Machine's Node is not ready: what was reached is then looked at again.
func isNodeNotReady(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
	return m.Status.NodeRef != nil && c != nil && c.Status != metav1.ConditionTrue
}

func workingError(what string) error {
	return &provider.Waiting{Reason: provider.Working, Message: "a run is under way on the host: " + what, After: poll}
}

// carryOut proposes and carries out until nothing is left to do. It is the same whatever an earlier run has left.
func (s *Site) carryOut(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim, givenUp bool) error {
	target, err := TargetOf(h)
	if err != nil {
		return err // of the Host, not of the Machine
	}
	facts, err := s.probeFacts(ctx)
	if err != nil {
		return &provider.Waiting{Reason: reasonAPISilent, Message: err.Error()}
	}
	want, mirror, control, err := s.desiredFor(ctx, facts.World.API, m, h, a.gone)
	if err != nil {
		return planError(err)
	}
	credentials, _, err := s.hostCredentials(ctx)
	if err != nil {
		return &provider.Waiting{Reason: reasonAPISilent, Message: err.Error()}
	}
	releases, err := s.Releases(ctx, mirror)
	if err != nil { // a bundle that cannot be used is no fault of the host
		return &provider.Waiting{Reason: reasonNoRelease, Message: err.Error(), After: time.Minute}
	}
	pool := OpenPool(s.Signer)
	defer func() { _ = pool.Close() }() // nothing depends on how a connection ends
	all, err := engine.New(engine.Config{
		Want: want, Hosts: map[string]host.Host{string(m.UID): pool.Host(target)}, Releases: releases,
		CA: knownCA(s.CA), Holder: s.Holder, Now: s.Now, Record: s.Record, Credentials: credentials,
	})
	if err != nil {
		return err
	}
	one, err := all.About(s.probeFacts, string(m.UID))
	if err != nil {
		return err
	}
	return carryOut(ctx, one, engine.Worker{
		Gone: a.gone, APIServers: apiServers(facts.World.API, control), GivenUp: givenUp, Turn: a.turn,
	}, a.begins)
}

func (s *Site) probeFacts(ctx context.Context) (probe.Result, error) {
	return probe.API(ctx, s.Access, s.Now())
}

// Recorded is the manifest as the last run of kubeone apply has recorded it, and that record. It is a
// *provider.Waiting where there is none.
func (s *Site) Recorded(ctx context.Context) (manifest.Loaded, record.Record, error) {
	c, err := cluster.Connect(s.Access)
	if err != nil {
		return manifest.Loaded{}, record.Record{}, err
	}
	defer c.Close()
	r, err := c.Record(ctx)
	switch {
	case err != nil:
		return manifest.Loaded{}, record.Record{}, err
	case r == nil || r.Manifest == "" && !r.IsUnreadable(observed.RecordManifest):
		return manifest.Loaded{}, record.Record{}, &provider.Waiting{
			Reason: reasonNoRecord, Message: "the cluster has no record of a manifest: kubeone apply leaves one",
		}
	}
	if wrong := unreadableRecord(r); wrong != nil {
		return manifest.Loaded{}, record.Record{}, wrong
	}
	loaded, err := manifest.Load(ctx, manifest.Options{
		ManifestPath: "the manifest in the cluster's record", ManifestReader: bytes.NewReader([]byte(r.Manifest)),
	})
	if loaded.Cluster.Hardening == "" {
		loaded.Cluster.Hardening = r.Hardening // what the cluster was made with
	}
	return loaded, *r, err
}

// unreadableRecord is a *provider.Waiting where the record does not say what a host must be like, or which names are
// taken.
func unreadableRecord(r *record.Record) error {
	for _, key := range []string{
		observed.RecordManifest, observed.RecordHardening, observed.RecordNodes, observed.RecordFormerEndpoints,
	} {
		if why := r.Unreadable[key]; why != "" {
			return &provider.Waiting{Reason: reasonRecordUnreadable, Message: fmt.Sprintf(
				"the key %s of the ConfigMap kube-system/kubeone cannot be read (%s): kubeone apply writes it again",
				key, host.Printed(why))}
		}
	}
	return nil
}

// desiredFor is the cluster with the Machine's host as its only host. What else is wanted of a worker is the
// manifest's, as recorded, and so is the mirror. Control are the names of the Nodes of the manifest's control-plane
// hosts.
func (s *Site) desiredFor(ctx context.Context, api observed.API, m *v1alpha1.Machine, h *kubeone.Host, gone bool,
) (want desired.Cluster, mirror string, control map[string]bool, err error) {
	loaded, r, err := s.Recorded(ctx)
	if err != nil {
		return want, "", nil, err
	}
	if !gone { // what is to be returned gets no certificate
		if err := Reserved(loaded.Cluster, r, h); err != nil {
			return want, "", nil, err
		}
	}
	want, control = loaded.Cluster, controlPlaneNodes(loaded.Cluster, r, api)
	want.ControlPlane, want.Workers = nil, []desired.Host{hostOf(m, h)}
	want.KubernetesVersion = api.Version
	return want, loaded.Mirror, control, nil
}

// controlPlaneNodes are the names of the Nodes of the manifest's control-plane hosts, as far as these are there: by the
// record or the manifest, or, where neither has the name, by the address.
func controlPlaneNodes(c desired.Cluster, r record.Record, api observed.API) map[string]bool {
	out, nodes := map[string]bool{}, match.IndexNodes(api.Nodes)
	for _, w := range c.ControlPlane {
		w.Hostname = NodeName(w, r)
		if n := nodes.Of(&w, &observed.Host{}); n != nil {
			out[n.Name] = true
		}
	}
	return out
}

// hostOf is the Machine's host as it is wanted. Labels and annotations of its Node are given to it by the controllers.
func hostOf(m *v1alpha1.Machine, h *kubeone.Host) desired.Host {
	out := desired.Host{
		ID: string(m.UID), HasOwnID: true, Machine: m.Namespace + "/" + m.Name, Role: desired.Worker, Hostname: h.Name,
		PublicAddress: h.Spec.Address, PrivateAddress: NodeAddress(h),
		Labels: map[string]string{desired.OwnerLabel: string(m.UID)},
	}
	out.Versions.Kubernetes = strings.TrimPrefix(m.Spec.Versions.Kubelet, "v")
	if r := m.Spec.Versions.ContainerRuntime; r != nil {
		out.Versions.Containerd = strings.TrimPrefix(r.Version, "v")
	}
	return out
}

// apiServers are the versions of all API servers, by the images of their static pods; none where that of one of the
// manifest's hosts is not known. Another Node with the control plane's label counts if it has an API server and is no
// Machine's: without one the label says nothing, and must not stop the Machines of the whole cluster.
func apiServers(api observed.API, control map[string]bool) []string {
	var out []string
	for _, n := range api.Nodes {
		if !n.ControlPlane || !control[n.Name] && n.Labels[desired.OwnerLabel] != "" {
			continue
		}
		version := ""
		for _, p := range api.Pods {
			if _, tag, ok := strings.Cut(p.Image, ":v"); ok && p.Node == n.Name && p.App == "kube-apiserver" {
				version = tag
			}
		}
		switch {
		case version != "":
			out = append(out, version)
		case control[n.Name]:
			return nil
		}
	}
	return out
}

// OpenPool makes connections with a key alone, to hosts whose keys are pinned: nothing of the machine on which it runs
// is read. The caller closes it.
func OpenPool(key cryptossh.Signer) *sshpool.Pool {
	return sshpool.New(sshpool.Options{
		IgnoreSSHConfig: true, KnownHostsFiles: []string{}, Signers: []cryptossh.Signer{key}, HomeDir: "/nonexistent",
	})
}

// TargetOf is the way to a host, by its Host alone. It is an error where no host key is pinned.
func TargetOf(h *kubeone.Host) (host.Target, error) {
	t, err := sshTarget(h.Name, h.Spec.Address, h.Spec.Port, h.Spec.User, h.Spec.HostKeys)
	if err != nil || h.Spec.Bastion == nil {
		return t, err
	}
	b := h.Spec.Bastion
	bastion, err := sshTarget("", b.Address, b.Port, b.User, b.HostKeys)
	t.Bastions = []host.Target{bastion}
	return t, err
}

func sshTarget(name, address string, port int32, user string, keys []string) (host.Target, error) {
	t := host.Target{Name: name, Address: address, Port: int(port), User: user, AgentSocket: "none"}
	for _, text := range keys {
		key, _, _, _, err := cryptossh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return t, fmt.Errorf("%s: host key %.40q: %w", address, text, err)
		}
		t.HostKeys = append(t.HostKeys, key)
	}
	if len(t.HostKeys) == 0 {
		return t, fmt.Errorf("%s: no host key is pinned", address)
	}
	return t, t.Validate()
}

func labelsOf(h *kubeone.Host) labels.Set { return h.Labels }
