// Package chart loads Helm charts and renders them without a cluster. Rendering is pure: the same chart, values and
// looked-up objects give the same objects. Charts come from others, so every size is limited, and a chart can neither
// read files outside its archive nor make requests.
package chart

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartv2util "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"kubeone/internal/addons/resources"
)

// MaxArchiveBytes limits the size of a chart's archive. RenderTimeout is for callers of Render.
const (
	MaxArchiveBytes = 20 << 20
	RenderTimeout   = 30 * time.Second
)

// Chart is the archive of a valid chart.
type Chart struct {
	archive []byte
	// Name and Version are those in Chart.yaml.
	Name, Version string
	// Digest is the sha256 (hex) of the archive.
	Digest string
}

// Archive returns the archive, which the caller must not change.
func (c Chart) Archive() []byte { return c.archive }

// Load checks the archive of a chart, a gzip-compressed tar.
func Load(archive []byte) (Chart, error) {
	if len(archive) > MaxArchiveBytes {
		return Chart{}, fmt.Errorf("the chart archive is larger than %d MiB", MaxArchiveBytes>>20)
	}
	loaded, err := Open(archive)
	if err != nil {
		return Chart{}, err
	}
	sum := sha256.Sum256(archive)
	return Chart{
		archive: archive, Name: loaded.Metadata.Name, Version: loaded.Metadata.Version,
		Digest: hex.EncodeToString(sum[:]),
	}, nil
}

// Open decodes the archive of a chart. The library changes a chart when it renders it, so each use needs its own.
func Open(archive []byte) (*chartv2.Chart, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	c, ok := loaded.(*chartv2.Chart)
	if !ok {
		return nil, fmt.Errorf("charts of type %T are not supported; use apiVersion v1 or v2", loaded)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// Release is what a chart is rendered for.
type Release struct {
	Name, Namespace   string
	Values            map[string]any
	KubernetesVersion string // without v
	// APIVersions are the API versions and kinds that the cluster serves: "apps/v1", "apps/v1/Deployment". Nil means
	// unknown: then the chart finds the API versions of Kubernetes that Helm knows.
	APIVersions []string
	// Lookup returns the live object for the template function lookup, or nil if there is none. If name is "", it returns
	// a list. Nil finds nothing.
	Lookup func(apiVersion, kind, namespace, name string) (map[string]any, error)
}

// ErrValues means that values do not match the schema of the chart.
var ErrValues = errors.New("the values do not match the schema of the chart")

// Render returns the objects of the chart in the order of its files: first those in crds/, then those of templates.
// Tests are left out. Mistakes in a template are a *resources.FileError.
func (c Chart) Render(ctx context.Context, r Release) ([]resources.Object, error) {
	loaded, err := Open(c.archive)
	if err != nil {
		return nil, err
	}
	values, err := renderValues(loaded, r)
	if err != nil {
		return nil, err
	}
	e := engine.Engine{CustomTemplateFuncs: map[string]any{"lookup": lookupFunction(r.Lookup)}}
	texts, err := e.RenderWithContext(ctx, loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render chart %s: %w", c.Name, err)
	}
	var out []resources.Object
	for _, crd := range loaded.CRDObjects() {
		objects, err := resources.Parse(crd.Filename, string(crd.File.Data))
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if base := path.Base(name); strings.HasPrefix(base, "_") || base == "NOTES.txt" {
			continue
		}
		objects, err := resources.Parse(name, texts[name])
		if err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(objects, isTest)...)
	}
	return out, nil
}

// renderValues merges the values with those of the chart and checks them against its schema.
func renderValues(c *chartv2.Chart, r Release) (chartcommon.Values, error) {
	if err := chartv2util.ProcessDependencies(c, r.Values); err != nil {
		return nil, err
	}
	capabilities := chartcommon.DefaultCapabilities.Copy()
	version, err := chartcommon.ParseKubeVersion(r.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	capabilities.KubeVersion = *version
	if r.APIVersions != nil {
		capabilities.APIVersions = r.APIVersions
	}
	values, err := chartutil.ToRenderValuesWithSchemaValidation(c, r.Values, chartcommon.ReleaseOptions{
		Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true,
	}, capabilities, true) // the library would fetch references of the schema from anywhere
	if err != nil {
		return nil, err
	}
	merged, _ := values["Values"].(chartcommon.Values)
	return values, checkSchema(c, merged)
}

// checkSchema validates values against the schema of a chart and its dependencies, without fetching other schemas.
func checkSchema(c *chartv2.Chart, values map[string]any) error {
	if len(c.Schema) > 0 {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
		if err != nil {
			return fmt.Errorf("values.schema.json of chart %s: %w", c.Name(), err)
		}
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(jsonschema.SchemeURLLoader{}) // nothing can be fetched
		if err := compiler.AddResource("values.schema.json", document); err != nil {
			return err
		}
		schema, err := compiler.Compile("values.schema.json")
		if err != nil {
			return fmt.Errorf("values.schema.json of chart %s: %w", c.Name(), err)
		}
		if err := schema.Validate(values); err != nil {
			return fmt.Errorf("%w %s: %w", ErrValues, c.Name(), err)
		}
	}
	for _, d := range c.Dependencies() {
		part, _ := values[d.Name()].(map[string]any)
		if err := checkSchema(d, part); err != nil {
			return err
		}
	}
	return nil
}

func lookupFunction(lookup func(apiVersion, kind, namespace, name string) (map[string]any, error)) any {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		if lookup == nil {
			return map[string]any{}, nil
		}
		found, err := lookup(apiVersion, kind, namespace, name)
		if found == nil {
			found = map[string]any{}
		}
		return found, err
	}
}

// isTest reports whether an object is a hook that only "helm test" runs.
func isTest(o resources.Object) bool {
	metadata, _ := o["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	hooks, _ := annotations["helm.sh/hook"].(string)
	return hooks == "test" || hooks == "test-success"
}
