package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/yaml"

	"kubeone/internal/addons/chart"
)

const (
	maxRepoIndex = 64 << 20 // bytes of a chart repository's index.yaml
	// chartLayer is the media type of the archive in an OCI artifact, as the Helm project defines it.
	chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// ErrNoChart means that a repository or registry answered, but does not have the chart or version.
var ErrNoChart = errors.New("no such chart")

// A ChartError says that a chart could not be fetched.
type ChartError struct {
	Chart string // as chart.Source.String
	Err   error
}

func (e *ChartError) Error() string { return fmt.Sprintf("chart %s: %v", e.Chart, e.Err) }

// Unwrap returns the cause.
func (e *ChartError) Unwrap() error { return e.Err }

// FetchChart returns the archive of a chart from its repository, registry or URL. The archive has at most
// chart.MaxArchiveBytes. Errors are *ChartError; if they are ErrNoChart, the source does not have the chart.
// Credentials are sent only to the host of the source.
func (s Source) FetchChart(ctx context.Context, from chart.Source) ([]byte, error) {
	if from.Archive != nil {
		return from.Archive, nil
	}
	var archive []byte
	var err error
	switch {
	case strings.HasPrefix(from.URL, "oci://"):
		archive, err = s.pullChart(ctx, from)
	case from.URL != "":
		archive, err = s.newChartFetcher(from).get(ctx, from.URL, chart.MaxArchiveBytes)
	default:
		archive, err = s.fetchFromRepository(ctx, from)
	}
	var status *statusError
	if errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone) {
		err = errors.Join(ErrNoChart, err)
	}
	if err != nil {
		return nil, &ChartError{Chart: from.String(), Err: err}
	}
	return archive, nil
}

// chartFetcher sends requests to a chart repository.
type chartFetcher struct {
	httpFetcher
	from chart.Source
	host string // that gets the credentials
}

func (s Source) newChartFetcher(from chart.Source) chartFetcher {
	f := s.newFetcher()
	if from.Insecure {
		f.client.Transport = s.httpTransport(true)
	}
	location := from.URL
	if location == "" {
		location = from.RepoURL
	}
	host := ""
	if u, err := url.Parse(location); err == nil {
		host = u.Host
	}
	return chartFetcher{httpFetcher: f, from: from, host: host}
}

// get fetches a file of at most limit bytes.
func (f chartFetcher) get(ctx context.Context, location string, limit int64) ([]byte, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && !f.from.Insecure {
		return nil, fmt.Errorf("%s does not use HTTPS; use https, or set insecure", u.Redacted())
	}
	var content []byte
	err = retryTransient(ctx, f.pause, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", "kubeone")
		if f.from.Username != "" && u.Host == f.host {
			req.SetBasicAuth(f.from.Username, f.from.Password)
		}
		resp, err := f.client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return &statusError{URL: u.Redacted(), Code: resp.StatusCode}
		}
		content, err = readLimited(resp.Body, limit)
		return err
	})
	return content, err
}

// readLimited returns an error if there are more than limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return content, err
}

// fetchFromRepository finds the version in the index of a repository and fetches its archive.
func (s Source) fetchFromRepository(ctx context.Context, from chart.Source) ([]byte, error) {
	f := s.newChartFetcher(from)
	base := strings.TrimSuffix(from.RepoURL, "/") + "/"
	text, err := f.get(ctx, base+"index.yaml", maxRepoIndex)
	if err != nil {
		return nil, err
	}
	entry, err := findInIndex(text, from)
	if err != nil {
		return nil, err
	}
	root, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	location, err := root.Parse(entry.URLs[0])
	if err != nil {
		return nil, err
	}
	if location.Scheme == "oci" {
		return s.pullChart(ctx, chart.Source{
			URL: strings.TrimSuffix(location.String(), ":"+entry.Version), Version: entry.Version, Insecure: from.Insecure,
		})
	}
	archive, err := f.get(ctx, location.String(), chart.MaxArchiveBytes)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(archive)
	if has, want := hex.EncodeToString(sum[:]), strings.TrimPrefix(entry.Digest, digestPrefix); want != "" && has != want {
		return nil, &DigestError{What: entry.Name + "-" + entry.Version, Has: has, Wants: want}
	}
	return archive, nil
}

// findInIndex returns the entry of an index.yaml for the version.
func findInIndex(text []byte, from chart.Source) (*repo.ChartVersion, error) {
	var index repo.IndexFile
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("index.yaml: %w", err)
	}
	versions := slices.DeleteFunc(index.Entries[from.Name], func(v *repo.ChartVersion) bool {
		return v == nil || v.Metadata == nil || len(v.URLs) == 0
	})
	listed := make([]string, len(versions))
	for i, v := range versions {
		listed[i] = v.Version
	}
	version, err := selectVersion(listed, from.Version)
	if err != nil {
		return nil, err
	}
	return versions[slices.Index(listed, version)], nil
}

// selectVersion returns the desired version if it is available, and otherwise the highest one in the desired range.
// The range "" contains every version without a pre-release. Unlike with Helm, 1.2.3 never selects another version.
func selectVersion(available []string, want string) (string, error) {
	if slices.Contains(available, want) {
		return want, nil
	}
	if want == "" {
		want = "*"
	}
	if exact, err := semver.StrictNewVersion(strings.TrimPrefix(want, "v")); err == nil {
		want = "=" + exact.String()
	}
	allowed, err := semver.NewConstraint(want)
	if err != nil {
		return "", fmt.Errorf("version %q: %w", want, err)
	}
	best, found := "", (*semver.Version)(nil)
	for _, text := range available {
		v, err := semver.NewVersion(text)
		if err == nil && allowed.Check(v) && (found == nil || v.GreaterThan(found)) {
			best, found = text, v
		}
	}
	if found == nil {
		return "", fmt.Errorf("%w: version %s is not among the %d available ones", ErrNoChart, want, len(available))
	}
	return best, nil
}

// pullChart fetches a chart from a registry.
func (s Source) pullChart(ctx context.Context, from chart.Source) ([]byte, error) {
	var named []name.Option
	through := http.RoundTripper(secureTransport{s.httpTransport(false)})
	if from.Insecure {
		named, through = []name.Option{name.Insecure}, s.httpTransport(true)
	}
	repository, err := name.NewRepository(strings.TrimPrefix(from.URL, "oci://"), named...)
	if err != nil {
		return nil, err
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(through), remote.WithUserAgent("kubeone"),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	}
	if from.Username != "" {
		options[3] = remote.WithAuth(&authn.Basic{Username: from.Username, Password: from.Password})
	}
	var archive []byte
	err = retryTransient(ctx, s.retryPause(), func() error {
		tags, err := listTags(repository, from.Version, options)
		if err != nil {
			return err
		}
		version, err := selectVersion(tags, from.Version)
		if err != nil {
			return err
		}
		archive, err = pullArchive(repository.Tag(strings.ReplaceAll(version, "+", "_")), options)
		return err
	})
	var refused *transport.Error
	if errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		err = errors.Join(ErrNoChart, err)
	}
	return archive, err
}

// listTags returns the versions of a chart in a registry. It asks the registry only if want is not a version itself.
func listTags(repository name.Repository, want string, options []remote.Option) ([]string, error) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(want, "v")); err == nil {
		return []string{want}, nil
	}
	tags, err := remote.List(repository, options...)
	for i := range tags {
		tags[i] = strings.ReplaceAll(tags[i], "_", "+") // a tag cannot contain a plus sign
	}
	return tags, err
}

// pullArchive returns the archive of a chart. The library checks it against the digest in the manifest.
func pullArchive(tag name.Tag, options []remote.Option) ([]byte, error) {
	img, err := remote.Image(tag, options...)
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(manifest.Layers, func(l v1.Descriptor) bool { return l.MediaType == chartLayer })
	if i < 0 {
		return nil, fmt.Errorf("%s is not a Helm chart", tag)
	}
	layer, err := img.LayerByDigest(manifest.Layers[i].Digest)
	if err != nil {
		return nil, err
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	archive, err := readLimited(content, chart.MaxArchiveBytes)
	if err != nil {
		return nil, err
	}
	return archive, nil
}
