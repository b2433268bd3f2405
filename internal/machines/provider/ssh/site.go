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

// Site describes the cluster that hosts join and how to join it. It must not be changed after the first use.
type Site struct {
	Access cluster.Access    // access to the cluster API
	CA     string            // hash of the CA public key, in the kubeadm format: "sha256:…"
	Signer cryptossh.Signer  // the SSH key of the cluster
	Holder string            // holder of locks: "controller/user@machine"
	Record func(apply.Event) // receives every event of every run; nil disables it
	Now    func() time.Time
	// Releases returns the available releases. If they have no bundles, hosts download from the mirror; "" means the
	// official locations.
	Releases func(ctx context.Context, mirror string) (engine.Releases, error)
}

// knownCA implements engine.KnownCA with a CA that does not change.
type knownCA string

func (ca knownCA) CA() string { return string(ca) }

func (knownCA) Know(string) error { return nil }

// aim is the goal of a run. The host should match the spec of its Machine, or be reset if reset is true.
type aim struct {
	what  string // a word for messages
	reset bool   // the host is returned
	// turn says whether the host may apply the settings of this revision. "" is an unknown revision.
	turn     decide.Turn
	revision string
	// onBegin is called before each plan is carried out.
	onBegin func()
}

// work carries out plans until the aim is reached.
type work func(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim, givenUp bool) error

// ensureAim starts or continues a run for the aim. For the results, see ensureRun.
func (p *Provider) ensureAim(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim) (done bool, err error) {
	hostCopy, machineCopy := h.DeepCopy(), m.DeepCopy()
	if isNodeNotReady(m) {
		p.runs.recheck(m.UID, p.site.Now())
	}
	return p.runs.ensureRun(ctx, m.UID, a.goalKey(m, h), a.what, func(ctx context.Context) error {
		lost, err := p.notReportingSince(ctx, machineCopy, hostCopy)
		if err != nil {
			return err
		}
		a.onBegin = func() { p.runs.noteBegun(m.UID) }
		err = p.work(ctx, machineCopy, hostCopy, a, a.reset && isGivenUp(machineCopy, lost, p.site.Now()))
		if a.reset {
			return err
		}
		return p.settings.noteResult(machineCopy.UID, a.revision, err)
	})
}

// notReportingSince returns when the Node of the Machine stopped reporting. It returns zero if the Node is reporting or
// does not exist. A kubelet that reports not ready is still running, and so may be its pods.
func (p *Provider) notReportingSince(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host) (time.Time, error) {
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

// targetKey returns a key for the target of a run: a hash of the desired versions, or "gone" for a host that is
// returned.
func targetKey(m *v1alpha1.Machine, reset bool) string {
	if reset {
		return "gone"
	}
	text, _ := json.Marshal(m.Spec.Versions) // strings cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// goalKey returns the goal that identifies the aim in ensureRun. It is equal for equal aims.
func (a aim) goalKey(m *v1alpha1.Machine, h *kubeone.Host) string {
	text := targetKey(m, a.reset) + " on " + string(h.UID)
	if a.revision != "" {
		text += " with " + a.revision + " " + string(a.turn)
	}
	return text
}

// isNodeNotReady reports whether the Machine has a Node that is not ready.
func isNodeNotReady(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
	return m.Status.NodeRef != nil && c != nil && c.Status != metav1.ConditionTrue
}

func workingError(what string) error {
	return &provider.Waiting{Reason: provider.Working, Message: "a run is in progress on the host: " + what,
		After: poll}
}

// carryOut creates and carries out plans until nothing is left to do. It continues the work of earlier runs.
func (s *Site) carryOut(ctx context.Context, m *v1alpha1.Machine, h *kubeone.Host, a aim, givenUp bool) error {
	target, err := TargetOf(h)
	if err != nil {
		return err // the Host is invalid, not the Machine
	}
	facts, err := s.probeFacts(ctx)
	if err != nil {
		return &provider.Waiting{Reason: reasonAPISilent, Message: err.Error()}
	}
	want, mirror, control, err := s.desiredCluster(ctx, facts.World.API, m, h, a.reset)
	if err != nil {
		return planError(err)
	}
	credentials, _, err := s.hostCredentials(ctx)
	if err != nil {
		return &provider.Waiting{Reason: reasonAPISilent, Message: err.Error()}
	}
	releases, err := s.Releases(ctx, mirror)
	if err != nil { // the host did not cause an unusable bundle
		return &provider.Waiting{Reason: reasonNoRelease, Message: err.Error(), After: time.Minute}
	}
	pool := OpenPool(s.Signer)
	defer func() { _ = pool.Close() }() // a failed close has no effect
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
		MachineDeleted: a.reset, APIServers: apiServers(facts.World.API, control), GivenUp: givenUp, Turn: a.turn,
	}, a.onBegin)
}

func (s *Site) probeFacts(ctx context.Context) (probe.Result, error) {
	return probe.API(ctx, s.Access, s.Now())
}

// Recorded returns the manifest in the cluster record, and the record itself. The error is a *provider.Waiting if there
// is no record or it cannot be decoded.
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
			Reason: reasonNoRecord, Message: "the cluster has no recorded manifest: run kubeone apply to record it",
		}
	}
	if unreadable := unreadableRecord(r); unreadable != nil {
		return manifest.Loaded{}, record.Record{}, unreadable
	}
	loaded, err := manifest.Load(ctx, manifest.Options{
		ManifestPath: "the manifest in the cluster record", ManifestReader: bytes.NewReader([]byte(r.Manifest)),
	})
	if loaded.Cluster.Hardening == "" {
		loaded.Cluster.Hardening = r.Hardening // the cluster was installed with it
	}
	return loaded, *r, err
}

// unreadableRecord returns a *provider.Waiting if a key with desired state or reserved names is unreadable.
func unreadableRecord(r *record.Record) error {
	for _, key := range []string{
		observed.RecordManifest, observed.RecordHardening, observed.RecordNodes, observed.RecordFormerEndpoints,
	} {
		if why := r.Unreadable[key]; why != "" {
			return &provider.Waiting{Reason: reasonRecordUnreadable, Message: fmt.Sprintf(
				"the key %s in the ConfigMap kube-system/kubeone cannot be read (%s): run kubeone apply to rewrite it",
				key, host.Printable(why))}
		}
	}
	return nil
}

// desiredCluster returns the desired cluster, with the host of the Machine as its only host. The other settings and the
// mirror come from the recorded manifest. Control contains the Node names of the control-plane hosts in the manifest.
func (s *Site) desiredCluster(ctx context.Context, api observed.API, m *v1alpha1.Machine, h *kubeone.Host, reset bool,
) (want desired.Cluster, mirror string, control map[string]bool, err error) {
	loaded, r, err := s.Recorded(ctx)
	if err != nil {
		return want, "", nil, err
	}
	if !reset { // a host that is being returned receives no certificate
		if err := CheckReserved(loaded.Cluster, r, h); err != nil {
			return want, "", nil, err
		}
	}
	want, control = loaded.Cluster, controlPlaneNodes(loaded.Cluster, r, api)
	want.ControlPlane, want.Workers = nil, []desired.Host{newDesiredHost(m, h)}
	want.KubernetesVersion = api.Version
	return want, loaded.Mirror, control, nil
}

// controlPlaneNodes returns the names of the existing Nodes of the control-plane hosts in the manifest. A host is
// matched by its name in the record or manifest, or by its address if it has no name.
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

// newDesiredHost returns the desired state of the host that the Machine uses. The controllers set the other labels and
// the annotations on its Node.
func newDesiredHost(m *v1alpha1.Machine, h *kubeone.Host) desired.Host {
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

// apiServers returns the versions of all API servers, which it reads from the images of their static pods. It returns
// nil if the version on a host in the manifest is unknown. Any other Node with the control-plane label counts only if
// it has an API server and belongs to no Machine. Otherwise a wrong label could stop all Machines in the cluster.
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

// OpenPool returns a pool of SSH connections that uses only this key and pinned host keys. It does not read the local
// SSH configuration. The caller must close it.
func OpenPool(key cryptossh.Signer) *sshpool.Pool {
	return sshpool.New(sshpool.Options{
		IgnoreSSHConfig: true, KnownHostsFiles: []string{}, Signers: []cryptossh.Signer{key}, HomeDir: "/nonexistent",
	})
}

// TargetOf returns the SSH target of a Host. It returns an error if no host key is pinned.
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
