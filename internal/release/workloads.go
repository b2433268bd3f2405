package release

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"

	"kubeone/internal/addons/chart"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/pattern"
)

// Workloads are what a cluster runs in addition to its release.
type Workloads struct {
	Charts []Chart
	// Images are names as in pods, such as "nginx:1.27". Repeated names count once.
	Images []string
}

// Chart is the archive of a chart, and the source from which it was fetched.
type Chart struct {
	From    chart.Source
	Content chart.Chart
}

// addWorkloads adds images and charts to the parts of the release. An image that the release has anyway is also marked
// as an image of workloads.
func (r *resolver) addWorkloads(w Workloads) error {
	r.workloads = map[string]bool{}
	known := map[string]bool{}
	for _, i := range r.images {
		known[i.officialName()] = true
	}
	for _, text := range w.Images {
		i, err := parseImage(text)
		if err != nil {
			return err
		}
		name := i.officialName()
		if r.workloads[name] = true; !known[name] {
			known[name], r.images = true, append(r.images, i)
		}
	}
	charts := map[desired.BundledChart]bool{}
	for _, c := range w.Charts {
		if listed := c.bundled(); !charts[listed] {
			charts[listed], r.charts = true, append(r.charts, c)
		}
	}
	if len(r.images) > maxImages || len(r.charts) > maxCharts {
		return fmt.Errorf("%d images and %d charts are more than a bundle can have", len(r.images), len(r.charts))
	}
	return nil
}

// parseImage returns the image that containerd uses for a name in a pod: an image of Docker Hub without a registry, the
// tag latest without a tag, and no tag with a digest.
func parseImage(text string) (image, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return image{}, &ImageNameError{text}
	}
	registry := ref.Context().RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io"
	}
	out := image{
		registry: registry, repository: ref.Context().RepositoryStr(), tag: ref.Identifier(), unmoved: true,
	}
	if !imageName().MatchString(out.officialName() + " linux/amd64") {
		return image{}, &ImageNameError{text}
	}
	return out, nil
}

// bundled returns the chart as it is listed in a bundle.
func (c Chart) bundled() desired.BundledChart {
	out := sourceWithoutVersion(c.From)
	out.Name, out.Version = cmp.Or(out.Name, c.Content.Name), c.Content.Version
	out.SHA256, out.Size = c.Content.Digest, int64(len(c.Content.Archive()))
	return out
}

// sourceWithoutVersion returns the location of a chart, without credentials.
func sourceWithoutVersion(from chart.Source) desired.BundledChart {
	return desired.BundledChart{
		URL: withoutUser(from.URL), RepoURL: strings.TrimSuffix(withoutUser(from.RepoURL), "/"), Name: from.Name,
	}
}

func withoutUser(location string) string {
	u, err := url.Parse(location)
	if err != nil || u.User == nil {
		return location
	}
	u.User = nil
	return u.String()
}

// isArchive reports whether the URL of a chart is that of an archive, which has no other versions.
func isArchive(url string) bool { return url != "" && !strings.HasPrefix(url, "oci://") }

// chartContents checks the charts, and returns them as entries of a bundle.
func (r *resolver) chartContents() ([]content, error) {
	claims := claimCheck{known: r.src.Known, trusted: true} // the manifest says where charts come from
	var out []content
	for _, c := range r.charts {
		listed := c.bundled()
		if _, err := selectVersion([]string{listed.Version}, c.From.Version); err != nil && !isArchive(c.From.URL) {
			return nil, fmt.Errorf("chart %s: its archive has version %s", c.From, listed.Version)
		}
		if err := checkChart(listed, map[string]int64{listed.SHA256: listed.Size}); err != nil {
			return nil, err
		}
		if _, err := claims.checkClaim(chartClaim(listed, c.From.String()), true); err != nil {
			return nil, err
		}
		out = append(out, content{
			Entry: Entry{Size: listed.Size, SHA256: listed.SHA256, Holds: describeChart(listed)},
			open:  inMemory(func() ([]byte, error) { return c.Content.Archive(), nil }),
		})
	}
	return out, nil
}

// describeChart names a chart with its version and source.
func describeChart(c desired.BundledChart) string {
	return fmt.Sprintf("chart %s %s from %s", c.Name, c.Version, cmp.Or(c.URL, c.RepoURL))
}

// chartClaim returns a claim about the archive of a chart. Its name in lists of digests is HOST/PATH.
func chartClaim(c desired.BundledChart, source string) Claim {
	location := cmp.Or(c.URL, c.RepoURL+"/"+c.Name)
	if !isArchive(c.URL) {
		location += "-" + c.Version + ".tgz"
	}
	_, location, _ = strings.Cut(location, "://")
	return Claim{What: "chart " + c.Name + " " + c.Version, Name: location, SHA256: c.SHA256, Source: source}
}

var chartName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

const maxLocation = 2048 // bytes

// checkChart checks a chart in an index.
func checkChart(c desired.BundledChart, sizes map[string]int64) error {
	location := c.URL + c.RepoURL
	scheme, _, found := strings.Cut(location, "://")
	_, err := semver.NewVersion(c.Version)
	switch size, ok := sizes[c.SHA256]; {
	case !chartName().MatchString(c.Name):
		return fmt.Errorf("chart %.80q", c.Name)
	case err != nil || !isPrintable(c.Version):
		return fmt.Errorf("version %.80q of chart %s", c.Version, c.Name)
	case c.URL != "" && c.RepoURL != "" || !found || !slices.Contains([]string{"https", "http", "oci"}, scheme) ||
		len(location) > maxLocation || !isPrintable(location):
		return fmt.Errorf("location %.80q of chart %s", location, c.Name)
	case c.Size > chart.MaxArchiveBytes:
		return fmt.Errorf("chart %s has %d bytes", c.Name, c.Size)
	case !ok || size != c.Size:
		return fmt.Errorf("no entry for chart %s", c.Name)
	}
	return nil
}

// MissingChartError says that no bundle contains a chart.
type MissingChartError struct {
	Chart   string   // as chart.Source.String
	Bundled []string // its versions in bundles
}

func (e *MissingChartError) Error() string {
	out := "no bundle contains chart " + e.Chart
	if len(e.Bundled) > 0 {
		out += " (only " + briefNames(e.Bundled) + ")"
	}
	return out + "; create the bundle again with kubeone bundle create -m and this manifest"
}

// Chart returns the archive of a chart: in the version of the source, or in the highest version of its range that a
// bundle has. The error is a *MissingChartError if no bundle has it, an *AlteredError, a *MismatchError or an
// *UntrustedError.
func (l *Library) Chart(from chart.Source) ([]byte, error) {
	if from.Archive != nil {
		return from.Archive, nil
	}
	place := sourceWithoutVersion(from)
	var found []desired.BundledChart
	var versions []string
	for _, b := range l.bundles {
		for _, c := range b.index.Artifacts.Charts {
			if c.URL == place.URL && c.RepoURL == place.RepoURL && (place.Name == "" || c.Name == place.Name) {
				found, versions = append(found, c), append(versions, c.Version)
			}
		}
	}
	version, err := selectVersion(versions, chartVersion(from, versions))
	if errors.Is(err, ErrNoChart) {
		return nil, &MissingChartError{Chart: from.String(), Bundled: versions}
	}
	if err != nil {
		return nil, err
	}
	c := found[slices.Index(versions, version)]
	claims := l.claims
	if _, err := claims.checkClaim(chartClaim(c, l.describeSource(c.SHA256)), false); err != nil {
		return nil, err
	}
	if err := claims.untrustedError(); err != nil {
		return nil, err
	}
	archive, err := l.readEntry(c.SHA256, describeChart(c))
	if err != nil {
		return nil, err
	}
	loaded, err := chart.Load(archive)
	if err == nil && loaded.Version != c.Version {
		err = l.bundleWith(c.SHA256).alteredError(describeChart(c) + " has version " + loaded.Version)
	}
	return archive, err
}

// chartVersion returns the version to look for. An archive at a URL has only the versions that bundles have.
func chartVersion(from chart.Source, bundled []string) string {
	if isArchive(from.URL) && len(bundled) > 0 {
		return slices.MaxFunc(bundled, compareVersions)
	}
	return from.Version
}

// compareVersions compares two versions that checkChart has accepted.
func compareVersions(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}

// addWorkloads adds the images of workloads for an architecture. Every host gets them, also those that the release has
// for some hosts only.
func (l *Library) addWorkloads(images []desired.Image, arch string, claims *claimCheck) ([]desired.Image, error) {
	for _, have := range l.workloadImages() {
		if have.arch != arch {
			continue
		}
		if n := slices.IndexFunc(images, func(i desired.Image) bool { return i.Name == have.Name }); n >= 0 {
			images[n].Roles, images[n].Workload = nil, true
			continue
		}
		i := have.Image
		var err error
		i.Known, err = claims.checkClaim(newImageClaim(i.Name, arch, i.Digest, l.describeSource(i.Digest)), false)
		if err != nil {
			return nil, err
		}
		i.Roles = nil
		images = append(images, i)
	}
	return images, nil
}

// workloadImage is an image of workloads in a bundle.
type workloadImage struct {
	desired.Image
	arch string
}

// workloadImages returns the images of workloads in all bundles, each once.
func (l *Library) workloadImages() []workloadImage {
	var out []workloadImage
	seen := map[string]bool{}
	for _, b := range l.bundles {
		for _, i := range b.index.Artifacts.Images {
			if key := b.index.Arch + " " + i.Name; i.Workload && !seen[key] {
				seen[key], out = true, append(out, workloadImage{i, b.index.Arch})
			}
		}
	}
	return out
}

// WorkloadImages returns a digest (hex) of the images of workloads in the bundles, in any order; "" if there are none.
func (l *Library) WorkloadImages() string {
	var lines []string
	for _, i := range l.workloadImages() {
		lines = append(lines, i.Name+" linux/"+i.arch+" "+i.Digest+"\n")
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	return hexSum([]byte(strings.Join(lines, "")))
}
