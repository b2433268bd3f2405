package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster/live"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
	"kubeone/internal/release"
	"kubeone/internal/testutil/plugintest"
)

// offline returns the error of a download location that does not answer.
func offline() error {
	return &release.FetchError{KubernetesVersion: "1.36.3", Arch: "amd64", Failures: []release.Failure{
		{Part: "kubelet 1.36.3", Host: "dl.k8s.io", Err: errors.New("no route to host")},
	}}
}

// A plan is shown even if a location does not answer; it just cannot be carried out.
func TestAPlanIsShownThoughADownloadLocationDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := play(t)
	whole, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	s.releases.fail(offline())
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	titles := func(p plan.Plan) (out []string) {
		for _, step := range p.Steps {
			out = append(out, step.ID+": "+step.Title+" ("+step.Reason+")")
		}
		return out
	}
	if diff := cmp.Diff(titles(whole.Plan), titles(p.Plan)); diff != "" {
		t.Error(diff)
	}
	if len(p.Plan.Unresolved) == 0 || p.Plan.Digest() != "" || len(p.Scripts) != 0 {
		t.Errorf("unresolved %q, digest %q, %d scripts", p.Plan.Unresolved, p.Plan.Digest(), len(p.Scripts))
	}
	var unresolved *UnresolvedError
	var fetch *release.FetchError
	_, err = s.CarryOut(t.Context(), p, RunOptions{})
	if !errors.As(err, &unresolved) || !errors.As(err, &fetch) {
		t.Errorf("got %v", err)
	}
	_, err = s.CarryOut(t.Context(), whole, RunOptions{}) // it answered at plan time only
	if !errors.As(err, &unresolved) {
		t.Errorf("got %v", err)
	}
	if done := s.changed(); len(done) > 0 {
		t.Errorf("hosts were asked to %q", done)
	}
}

func TestOnlyWhatAPlanNeedsIsResolved(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.hosts["192.0.2.21"].say("x86_64", "aarch64")
	for name, c := range map[string]struct {
		request Request
		archs   []string
	}{
		"an installation":           {Apply{}, []string{"amd64", "arm64"}},
		"a look":                    {Apply{NamesOnly: true}, nil},
		"a reset installs nothing":  {Reset{}, nil},
		"what the limit leaves out": {Apply{Limit: map[string]bool{"192.0.2.11": true}}, []string{"amd64"}},
	} {
		s.releases.resolved = nil
		if _, err := s.Propose(t.Context(), c.request); err != nil {
			t.Fatal(err)
		}
		var archs []string
		for _, w := range s.releases.resolved {
			archs = append(archs, w.Arch)
		}
		if diff := cmp.Diff(c.archs, archs); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// In a disaster without a network, a host that has all it needs is recovered by the names of its images. A joining
// host is different.
func TestAWholeSurvivorIsRecoveredWithoutAnyRelease(t *testing.T) {
	t.Parallel()
	s := play(t, func(c *Config) {
		c.Want.ControlPlane = append(c.Want.ControlPlane, desired.Host{
			ID: "192.0.2.12", Role: desired.ControlPlane, PublicAddress: "192.0.2.12", PrivateAddress: "192.0.2.12",
		})
	})
	alone := Recover{About: plan.Copy{From: step.SurvivingMember}, Destroyed: []string{"192.0.2.12"}}
	gone := survived(observed.Host{Reach: observed.Unreachable})
	for _, why := range []error{errors.New("the bundle is of another release"), offline()} {
		s.releases.fail(why)
		p, err := s.proposeFor(t.Context(), s.completeObservation(t.Context(), alone, probe.Result{World: gone}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Refusal(); err != nil || !slices.ContainsFunc(p.Plan.Steps, restores) || p.Plan.Installs() {
			t.Errorf("%v: refused: %v, steps %+v", why, err, p.Plan.Steps)
		}
		if text := p.Scripts["192.0.2.11"]; !strings.Contains(text, "registry.k8s.io/etcd:") {
			t.Errorf("%v: etcd's image has no name in its script of %d bytes", why, len(text))
		}
	}
	both := Recover{About: plan.Copy{From: step.SurvivingMember}}
	bare := observed.Host{
		Reach: observed.Reached, KubeletConf: observed.No, EtcdData: observed.No, PKI: observed.No, Arch: "amd64",
	}
	p, err := s.proposeFor(t.Context(), s.completeObservation(t.Context(), both, probe.Result{World: survived(bare)}),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	var unresolved *UnresolvedError
	if err := p.Refusal(); !errors.As(err, &unresolved) || !slices.ContainsFunc(p.Plan.Steps, restores) {
		t.Errorf("with a host that joins: got %v, steps %+v", err, p.Plan.Steps)
	}
}

func restores(s plan.Step) bool { return s.Intent.Kind == step.Restore }

// survived is a world where 192.0.2.11 has lost its quorum and 192.0.2.12 is as given.
func survived(other observed.Host) observed.World {
	other.ID = "192.0.2.12"
	return observed.World{
		Hosts: map[string]observed.Host{
			"192.0.2.11": {
				ID: "192.0.2.11", Reach: observed.Reached, Hostname: "cp-1", Arch: "amd64",
				Marker:      &observed.Marker{Cluster: "demo", Role: "control-plane", Complete: true},
				KubeletConf: observed.Yes, AdminConf: observed.Yes, PKI: observed.Yes, EtcdData: observed.Yes,
				CAHash:     "ca",
				EtcdHealth: observed.No, APIServer: observed.No, Manifests: []string{"etcd", "kube-apiserver"},
				Kubelet:    observed.Unit{Installed: true, Active: true},
				Containerd: observed.Unit{Installed: true, Active: true},
			},
			"192.0.2.12": other,
			"192.0.2.21": {ID: "192.0.2.21", Reach: observed.Unreachable, Hostname: "worker"},
		},
		API: observed.API{Reached: observed.No},
		Etcd: observed.Etcd{Reached: observed.Yes, Members: []observed.Member{
			{ID: "1", Name: "cp-1", PeerURLs: []string{"https://192.0.2.11:2380"}, Healthy: observed.No},
			{ID: "2", Name: "cp-2", PeerURLs: []string{"https://192.0.2.12:2380"}, Healthy: observed.No},
		}},
	}
}

// If the plan installs an artifact without a known digest, it gets one more line and no other change.
func TestPlanNotesArtifactsWithoutKnownDigest(t *testing.T) {
	t.Parallel()
	s := play(t)
	digest := ""
	propose := func(r Request, known func(string) bool) (notes []string) {
		t.Helper()
		s.releases.known = known
		p, err := s.Propose(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, whole := r.(Apply); whole && p.unresolved == nil {
			if digest == "" {
				digest = p.Plan.Digest()
			}
			if p.Plan.Digest() != digest || digest == "" {
				t.Error("who vouches for what is installed makes another plan")
			}
		}
		for _, n := range p.Plan.Notes {
			if strings.Contains(n, "known digest") {
				notes = append(notes, n)
			}
		}
		return notes
	}
	const says = "%d of %d artifacts could not be checked against a known digest: "
	all := func(string) bool { return true }
	for name, c := range map[string]struct {
		request Request
		known   func(string) bool
		want    []string
	}{
		"nothing is known": {Apply{}, nil, []string{fmt.Sprintf(says, 9, 9) +
			"image registry.k8s.io/kube-apiserver:v1.36.3, image registry.k8s.io/kube-controller-manager:v1.36.3, " +
			"image registry.k8s.io/kube-scheduler:v1.36.3 and 6 more"}},
		"all but one": {Apply{}, func(image string) bool { return !strings.Contains(image, "pause") },
			[]string{fmt.Sprintf(says, 1, 9) + "image registry.k8s.io/pause:3.10.2"}},
		"all is known":             {Apply{}, all, nil},
		"a reset installs nothing": {Reset{}, nil, nil},
		"nothing was looked up":    {Apply{NamesOnly: true}, nil, nil},
	} {
		if diff := cmp.Diff(c.want, propose(c.request, c.known)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	known := map[string]desired.Artifacts{"amd64": {Binaries: []desired.Binary{{Name: "kubelet", Version: "1.36.3"}}}}
	for kind, want := range map[step.Kind]string{
		step.SystemAddons: "", // writes image names
		step.Prepare:      fmt.Sprintf(says, 1, 1) + "kubelet 1.36.3",
	} {
		p := Proposal{Want: wanted("demo"), Plan: plan.Plan{Steps: []plan.Step{
			{Host: "192.0.2.11", Intent: step.Intent{Kind: kind, Arch: "amd64"}},
		}}}
		if got := strings.Join(unknownNotes(p, releases{known: known}), ""); got != want {
			t.Errorf("of %s: %q, want %q", kind, got, want)
		}
	}
	digest = ""
	s.hosts["192.0.2.21"].say("x86_64", "aarch64") // a worker needs half of the images
	if got := propose(Apply{}, nil); len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf(says, 14, 14)) {
		t.Errorf("of two architectures: %q", got)
	}
	s.releases.fail(offline())
	if got := propose(Apply{}, nil); got != nil {
		t.Errorf("of what is not known at all: %q", got)
	}
}

func TestAReleaseThatIsNoneIsAMistake(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.releases.fail(&release.UnsupportedError{What: "architecture", Value: "m68k"})
	var wrong *ConfigError
	if _, err := s.Propose(t.Context(), Apply{}); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
}

// playCanal returns an engine whose network plugin has a published manifest, with a stand-in for its content.
func playCanal(t *testing.T, published []desired.PublishedManifest) stage {
	t.Helper()
	return play(t, func(c *Config) {
		c.Want.Network.CNI = desired.CNI{Name: "canal", MTU: 1450, Supported: []string{"canal"}}
		c.Releases.(*shelf).published = published
	})
}

// Without its published manifest, an addon is planned by the digest of its settings, and cannot be applied.
func TestAnAddonWithoutItsPublishedManifestIsPlanned(t *testing.T) {
	t.Parallel()
	manifests := plugintest.Published(t, "../..", "canal")
	whole, err := playCanal(t, manifests).Propose(t.Context(), Apply{})
	if err != nil || whole.Unresolved() != nil {
		t.Fatal(err, whole.Unresolved())
	}
	find := func(p Proposal) plan.Step {
		i := slices.IndexFunc(p.Plan.Steps, func(s plan.Step) bool { return s.Intent.Kind == step.ApplyAddon })
		if i < 0 {
			t.Fatal("no addon is applied")
		}
		return p.Plan.Steps[i]
	}
	if got := step.ParamsOf[step.ApplyAddonParams](find(whole).Intent); got.Manifest != manifests[0].SHA256 {
		t.Errorf("the plan has not the digest of the manifest: %+v", got)
	}
	lacking := slices.Clone(manifests)
	lacking[0].Content, lacking[0].Problem = nil, "no route to host"
	s := playCanal(t, lacking)
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	if find(p).Intent.Digest != find(whole).Intent.Digest || p.Plan.Digest() != "" ||
		!slices.Equal(p.Plan.Unresolved, []string{"addon canal: canal-manifest 3.32.0: no route to host"}) {
		t.Errorf("unresolved %q, digest %q", p.Plan.Unresolved, p.Plan.Digest())
	}
	var unresolved *UnresolvedError
	if _, err := s.CarryOut(t.Context(), p, RunOptions{}); !errors.As(err, &unresolved) {
		t.Errorf("got %v", err)
	}
}

// A plan that does not apply the addon does not need its manifest, but the addon cannot be compared.
func TestAnAppliedAddonNeedsNoPublishedManifest(t *testing.T) {
	t.Parallel()
	lacking := plugintest.Published(t, "../..", "canal")
	lacking[0].Content, lacking[0].Problem = nil, "no route to host"
	s := playCanal(t, lacking)
	if errs := s.unknownAddons(plan.Plan{}); len(errs) > 0 {
		t.Error(errs)
	}
	i := slices.IndexFunc(s.live, func(c live.Component) bool { return c.Name == "canal" })
	if got := live.Compare(t.Context(), nil, s.live[i]); got.Problem != "canal-manifest 3.32.0: no route to host" ||
		len(got.Differences) > 0 {
		t.Errorf("%+v", got)
	}
	if _, known := s.addonObjects["canal"]; known {
		t.Error("objects that are unknown are listed")
	}
}

func TestAPublishedManifestThatIsNotTheExpectedOneStopsTheEngine(t *testing.T) {
	t.Parallel()
	other := plugintest.Published(t, "../..", "canal")
	other[0].Content = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canal-config, namespace: kube-system}\n")
	want := wanted("demo")
	want.Network.CNI = desired.CNI{Name: "canal", Supported: []string{"canal"}}
	hosts := map[string]host.Host{}
	for _, h := range want.Hosts() {
		hosts[h.ID] = &player{id: h.ID}
	}
	_, err := New(Config{Want: want, Hosts: hosts, Releases: &shelf{published: other}})
	var config *ConfigError
	if !errors.As(err, &config) || !strings.Contains(err.Error(), "ConfigMap kube-system/canal-config: field data/net") {
		t.Errorf("got %v", err)
	}
}
