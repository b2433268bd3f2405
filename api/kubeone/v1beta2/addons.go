package v1beta2

// Addons are additional objects that are applied to the cluster.
type Addons struct {
	// Enable switches addons on.
	Enable *bool `json:"enable,omitempty"`
	// Path is the folder with the operator's own addons.
	Path string `json:"path,omitempty"`
	// GlobalParams are parameters of all addons.
	GlobalParams map[string]string `json:"globalParams,omitempty" secret:"keys" lines:"yes"`
	// Addons are the addons to apply or delete.
	Addons []Addon `json:"addons,omitempty"`
}

// Addon is one addon.
type Addon struct {
	// Name is the addon's name. Each has one, unless addons are switched off.
	Name string `json:"name"`
	// Params are the addon's parameters; they win over globalParams.
	Params map[string]string `json:"params,omitempty" secret:"keys" lines:"yes"`
	// DisableTemplating applies the addon's files as they are. Default: false.
	DisableTemplating bool `json:"disableTemplating,omitempty"`
	// Delete removes the addon. Default: false.
	Delete bool `json:"delete,omitempty"`
}

// HelmRelease is a Helm chart that is installed in the cluster.
type HelmRelease struct {
	// Chart is the chart's name, or a folder.
	Chart string `json:"chart,omitempty"`
	// RepoURL is the repository of the chart.
	RepoURL string `json:"repoURL,omitempty"`
	// ChartURL is the chart's own URL.
	ChartURL string `json:"chartURL,omitempty"`
	// Version is the chart's version.
	Version string `json:"version,omitempty"`
	// ReleaseName is the release's name. Default: chart.
	ReleaseName string `json:"releaseName,omitempty"`
	// Namespace is the release's namespace. Required.
	Namespace string `json:"namespace,omitempty"`
	// Wait waits until the release's objects are ready. Default: false.
	Wait bool `json:"wait,omitempty"`
	// Timeout is how long to wait, as a Go duration. Default: 5m.
	Timeout string `json:"timeout,omitempty"`
	// Insecure accepts any certificate of the repository. Default: false.
	Insecure bool `json:"insecure,omitempty"`
	// Values overrides the chart's values.
	Values []HelmValues `json:"values,omitempty"`
	// Auth are credentials for the repository.
	Auth *HelmAuth `json:"auth,omitempty" secret:"true"`
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
