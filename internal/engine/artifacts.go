package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kubeone/internal/addons/chart"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/release"
)

// Releases are the Kubernetes releases that an engine can install, from any source. The methods are safe for
// concurrent use.
type Releases interface {
	// Names returns the images of a release by name only. It does not use the network. The names are the same for every
	// architecture. Published manifests have their content if it is available, and otherwise a problem.
	Names(release.Want) (desired.Artifacts, error)
	// Resolve returns all binaries and images of a release, with digests. Repeated calls return the same. A
	// *release.FetchError means that a location does not answer; any other error means that the release does not exist.
	Resolve(context.Context, release.Want) (desired.Artifacts, error)
	// Chart returns the archive of a chart. Repeated calls return the same. A *release.ChartError that is not a
	// release.ErrNoChart means that its source does not answer; a *release.MissingChartError, that no bundle has it.
	Chart(context.Context, chart.Source) ([]byte, error)
	// WorkloadImages returns a digest (hex) of the images in bundles that pods of addons and Helm releases use; "" if
	// there are none. Resolve returns these images for every cluster.
	WorkloadImages() string
	// Verify reads all content that would be uploaded to hosts. It returns an error if any of it is damaged.
	Verify(context.Context) error
	// Blob returns a file to upload to hosts, by sha256 (hex), and its size in bytes.
	Blob(sha256 string) (io.Reader, int64, error)
}

// resolveRelease returns the release of a cluster for hosts of that architecture with these versions.
func resolveRelease(want desired.Cluster, arch string, named desired.Versions) release.Want {
	return release.Want{
		KubernetesVersion: want.KubernetesVersion, Kubelet: named.Kubernetes, Containerd: named.Containerd,
		Arch: arch, CNI: want.Network.CNI.Name, CNIVersion: want.Network.CNI.Version,
		KubeProxy:         !want.Network.KubeProxy.Skip,
		OverwriteRegistry: want.Registry.Overwrite, Insecure: want.Registry.Insecure,
		DNSRepository: want.Network.DNS.Repository, Addons: strings.Join(want.AddonsWithImages(), ","),
	}
}

// errNamesOnly means that the request did not ask for digests.
var errNamesOnly = errors.New("the artifacts to install were not resolved")

// releases holds the artifacts that a plan would install on its hosts.
type releases struct {
	known   map[string]desired.Artifacts // by desired.ArtifactsKey
	charts  map[string]chart.Chart       // by the key of their Helm release
	missing error                        // why some are unknown; nil if all are known
}

// missingLines returns the missing artifacts as lines for a plan.
func (r releases) missingLines() []string {
	if r.missing == nil {
		return nil
	}
	return strings.Split(r.missing.Error(), "\n")
}

// resolveArtifacts resolves the artifacts and charts that the plan needs. If it cannot resolve some, it returns their
// names without digests. Such artifacts count as missing unless they are already on the hosts.
func (e *Engine) resolveArtifacts(ctx context.Context, p Proposal) (releases, error) {
	needs := p.Plan.Needs()
	key := func(n plan.Need) string {
		h, _ := p.Want.Host(n.Host)
		return desired.ArtifactsKey(n.Arch, h.Versions)
	}
	sought := map[string]bool{}
	for _, n := range needs {
		sought[key(n)] = sought[key(n)] || !n.Found
	}
	known := map[string]desired.Artifacts{}
	var missing []error
	for _, n := range needs {
		key := key(n)
		if _, done := known[key]; done {
			continue
		}
		h, _ := p.Want.Host(n.Host)
		want := resolveRelease(p.Want, n.Arch, h.Versions)
		a, unresolved, err := e.lookUp(ctx, p.Request, want)
		if err != nil && ctx.Err() == nil && !sought[key] {
			a, err = e.cfg.Releases.Names(want) // for example, the bundle contains a different release
		}
		if err != nil {
			return releases{}, fmt.Errorf("%s: %w", p.Plan.Hosts[n.Host], err)
		}
		known[key] = a
		if unresolved != nil && sought[key] {
			missing = append(missing, unresolved)
		}
	}
	charts, absent, err := e.resolveCharts(ctx, p)
	if err != nil {
		return releases{}, err
	}
	missing = append(append(missing, absent), e.unknownAddons(p.Plan)...)
	return releases{known, charts, errors.Join(missing...)}, nil
}

// unknownAddons returns an error for each addon that the plan applies and whose objects are unknown.
func (e *Engine) unknownAddons(p plan.Plan) []error {
	var out []error
	for _, a := range e.addons {
		if a.Problem != "" && slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
			return step.ParamsOf[step.ApplyAddonParams](s.Intent).Addon == a.Name
		}) {
			out = append(out, fmt.Errorf("addon %s: %s", a.Name, a.Problem))
		}
	}
	return out
}

// unknownNotes returns the plan's note on artifacts without a known digest; none while artifacts are missing.
func unknownNotes(p Proposal, found releases) []string {
	if found.missing != nil {
		return nil
	}
	var parts []desired.Part
	seen := map[string]bool{} // parts of an architecture
	for _, n := range p.Plan.Needs() {
		if !n.Installs {
			continue
		}
		h, _ := p.Want.Host(n.Host)
		for _, part := range found.known[desired.ArtifactsKey(n.Arch, h.Versions)].PartsFor(h.Role) {
			if key := n.Arch + " " + part.What; !seen[key] {
				seen[key] = true
				parts = append(parts, part)
			}
		}
	}
	if note := release.UnknownNote(parts); note != "" {
		return []string{note}
	}
	return nil
}

// lookUp returns a release with digests, or by name only. In the second case, unresolved is the reason.
func (e *Engine) lookUp(ctx context.Context, r Request,
	want release.Want) (a desired.Artifacts, unresolved, err error) {
	if resolvesNames(r) {
		unresolved = errNamesOnly
	} else if a, err = e.cfg.Releases.Resolve(ctx, want); err != nil {
		var unreachable *release.FetchError
		switch {
		case ctx.Err() != nil:
			return a, nil, ctx.Err()
		case !errors.As(err, &unreachable):
			return a, nil, &ConfigError{&ReleaseError{err}}
		}
		unresolved = err
	}
	if unresolved == nil {
		return a, nil, nil
	}
	if a, err = e.cfg.Releases.Names(want); err != nil {
		return a, nil, &ConfigError{&ReleaseError{err}}
	}
	return a, unresolved, nil
}
