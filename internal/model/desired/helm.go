package desired

// HelmRelease is a desired Helm release, without its values, which may contain secrets.
type HelmRelease struct {
	Namespace, Name string
	// Chart names the chart for people: "nginx 1.2.0 from https://charts.example.com".
	Chart string
	// Source is a digest of where the chart is and which version it has, as the manifest says. Values is a digest of the
	// values.
	Source, Values string
	// TimeoutSeconds limits each operation on the release.
	TimeoutSeconds int
	// Network says that the release is the network plugin. Version is then the version of its chart.
	Network bool
	Version string
	// CloudManager says that the release is the cloud's controller manager. Nodes accept ordinary pods only once it runs.
	CloudManager bool
}

// Key returns "namespace/name".
func (r HelmRelease) Key() string { return r.Namespace + "/" + r.Name }
