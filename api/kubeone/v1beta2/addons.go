package v1beta2

import (
	"path"
	"path/filepath"
)

// Addons are additional objects that are applied to the cluster.
type Addons struct {
	// Enable switches addons on. If it is false, addons that are in the cluster are removed. Default: true.
	Enable *bool `json:"enable,omitempty"`
	// Path is a folder, relative to the manifest, with one subfolder of YAML files for each addon. All addons in it are
	// applied: first those listed in addons, in that order, then the others by name.
	Path string `json:"path,omitempty"`
	// GlobalParams are template parameters of all addons. A value env:NAME stands for an environment variable.
	GlobalParams map[string]string `json:"globalParams,omitempty" secret:"keys" lines:"yes"`
	// Addons are addons with settings of their own.
	Addons []Addon `json:"addons,omitempty"`
}

// Addon is one addon.
type Addon struct {
	// Name is the name of the subfolder. Required unless addons are switched off.
	Name string `json:"name"`
	// Params are template parameters of this addon. They override globalParams.
	Params map[string]string `json:"params,omitempty" secret:"keys" lines:"yes"`
	// DisableTemplating applies the files unchanged, although they may contain template syntax. Default: false.
	DisableTemplating bool `json:"disableTemplating,omitempty"`
	// Delete removes the addon from the cluster, with its namespaces and custom resource definitions. Default: false.
	Delete bool `json:"delete,omitempty"`
}

// HelmRelease is a Helm chart that is installed in the cluster.
type HelmRelease struct {
	// Chart is the chart's name in repoURL; without repoURL, a chart folder, relative to the manifest.
	Chart string `json:"chart,omitempty"`
	// RepoURL is the repository of the chart: https://…, or oci://… for a registry.
	RepoURL string `json:"repoURL,omitempty"`
	// ChartURL is the URL of the chart's archive, instead of chart: https://…, or oci://… without a tag.
	ChartURL string `json:"chartURL,omitempty"`
	// Version is the chart's version, or a range such as ~1.2. Default: the latest version at the installation.
	Version string `json:"version,omitempty"`
	// ReleaseName is the release's name. Default: the name of the chart or its folder.
	ReleaseName string `json:"releaseName,omitempty"`
	// Namespace is the release's namespace. Required.
	Namespace string `json:"namespace,omitempty"`
	// Wait waits until the release's objects are ready, and rolls back an upgrade that does not become ready. Default:
	// false.
	Wait bool `json:"wait,omitempty"`
	// Timeout is how long to wait, as a Go duration. Default: 5m.
	Timeout string `json:"timeout,omitempty"`
	// Insecure accepts any certificate of the repository. Default: false.
	Insecure bool `json:"insecure,omitempty"`
	// Values override the chart's values, later ones earlier ones.
	Values []HelmValues `json:"values,omitempty"`
	// Auth are credentials for the repository.
	Auth *HelmAuth `json:"auth,omitempty" secret:"true"`
}

// NameOfRelease returns the name of the release. The default name for a chart folder is that of the folder.
func (r HelmRelease) NameOfRelease() string {
	switch {
	case r.ReleaseName != "" || r.Chart == "":
		return r.ReleaseName
	case r.RepoURL == "":
		return path.Base(filepath.ToSlash(r.Chart))
	}
	return r.Chart
}

// HelmValues overrides a chart's values.
type HelmValues struct {
	// ValuesFile is a file with values.
	ValuesFile string `json:"valuesFile,omitempty"`
	// Inline are values.
	Inline Raw `json:"inline,omitempty" secret:"keys"`
}

// HelmAuth has credentials for a chart repository.
type HelmAuth struct {
	// Username is the user.
	Username string `json:"username,omitempty"`
	// Password is the user's password.
	Password string `json:"password,omitempty"`
}
