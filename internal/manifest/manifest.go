// Package manifest is the load stage: it reads a KubeOneCluster manifest and the output of Terraform or OpenTofu,
// merges them, fills in defaults, validates the result and returns a desired.Cluster.
//
// Problems are collected. YAML and JSON are parsed into nodes with line numbers. One walk decodes them into Go values,
// reports unknown fields, and records the place of each value. Problems that later checks find therefore have a file
// and line, also for values from Terraform.
package manifest

import (
	"context"
	"fmt"
	"io"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Options says what to load.
type Options struct {
	// ManifestPath is the file of the manifest; "-" means Stdin. Relative paths in the manifest are relative to its
	// directory.
	ManifestPath string
	// ManifestReader, if set, is read instead of the file; ManifestPath then only names it.
	ManifestReader io.Reader
	// TerraformPath is "" for none, "-" for Stdin, a file with the JSON of "terraform output -json" or of a state, or a
	// directory. In a directory, RunTerraform is called. Without Terraform, its terraform.tfstate is read if that is
	// certainly the state in use.
	TerraformPath string
	// CredentialsPath is a credentials file that only its owner can read; "" means none.
	CredentialsPath string
	// Stdin is read at most once, for "-".
	Stdin io.Reader
	// RunTerraform returns what "terraform output -json" prints in dir, or ErrNoTerraform. Default: RunTerraform of
	// this package.
	RunTerraform func(ctx context.Context, dir string) ([]byte, error)
	// Getenv returns an environment variable: TF_WORKSPACE and TF_DATA_DIR. Default: os.Getenv.
	Getenv func(name string) string
	// Home replaces "~/". Default: the user's home directory.
	Home string
}

// Loaded is the result of Load.
type Loaded struct {
	Cluster desired.Cluster
	Secrets Secrets
	// Warnings are problems that stop nothing.
	Warnings []Problem
	// Notes are about fields that this version does not support. If apply refuses a field, its note has the severity
	// Error.
	Notes []Problem
	// ManifestText is the effective manifest: merged with Terraform's output, with defaults and files, without secrets,
	// as YAML with sorted keys. Loading it returns the same cluster with the same digest.
	ManifestText []byte
	// StrictHostKeys is the manifest's strictHostKeys.
	StrictHostKeys bool
	// Mirror is the manifest's artifacts.mirror, a base URL without a final slash; "" means none.
	Mirror string
	// MachineDeployments are the dynamicWorkers as objects of the cluster, in JSON types.
	MachineDeployments []map[string]any
	// Controllers means that the Machine controllers run in the cluster.
	Controllers bool
}

// Load reads, merges and validates a manifest. All problems of the files, including warnings, are one *Problems. Errors
// of reading a file or running Terraform have this type, too, and errors.Is finds their cause (fs.ErrNotExist,
// context.Canceled). It is safe for concurrent use.
func Load(ctx context.Context, o Options) (Loaded, error) {
	l := newLoader(o)
	if l.readManifest() {
		l.readTerraform(ctx)
		l.readAuthorities()
		l.readFeatures()
		l.readCredentials()
		l.defaultAndCheck()
	}
	if l.hasErrors() {
		return Loaded{}, l.sortedProblems()
	}
	return l.finishLoad()
}

// loader is the state of one Load: values, problems, and the places of values.
type loader struct {
	Options
	dir     string // the manifest's folder, absolute
	cluster *v1beta2.KubeOneCluster
	where   positions
	found   []Problem
	explain []string // paths with a problem, so that consequences are not reported, too
	extras  []desired.Extra
	files   map[string][]byte // the secret ones of extras
	partial bool              // Terraform's output is missing, so missing fields are not reported
	// registries holds the credentials of the file by host; nil without a file.
	registries    map[string]v1beta2.ContainerdRegistryAuthConfig
	inCredentials positions
}

func newLoader(o Options) *loader {
	l := &loader{Options: o, cluster: &v1beta2.KubeOneCluster{}, where: positions{}}
	if l.ManifestPath == "" {
		l.ManifestPath = "manifest"
	}
	if l.RunTerraform == nil {
		l.RunTerraform = RunTerraform
	}
	if l.Getenv == nil {
		l.Getenv = os.Getenv
	}
	if l.Home == "" {
		l.Home, _ = os.UserHomeDir() // without a home, "~/" stays as it is, and the file is not found later
	}
	l.dir, _ = filepath.Abs(filepath.Dir(l.ManifestPath)) // fails only without a working directory
	return l
}

// defaultAndCheck fills in defaults and adds the problems of the cluster.
func (l *loader) defaultAndCheck() {
	l.cluster.Default()
	for _, f := range l.cluster.Validate() {
		if l.isExplained(f) || f.Missing && l.partial {
			continue
		}
		severity := Error
		if f.Warning {
			severity = Warning
		}
		l.reportPath(f.Path, severity, f.Hint, f.Message)
	}
	if !l.hasErrors() {
		l.addExtras()
	}
}

// finishLoad converts the validated cluster for the other stages.
func (l *loader) finishLoad() (Loaded, error) {
	public, err := l.cluster.WithoutSecrets()
	if err != nil {
		return Loaded{}, err
	}
	text, err := textOf(public)
	if err != nil {
		return Loaded{}, err
	}
	cluster, secrets := l.desiredCluster(), l.secretValues()
	cluster.Extras, secrets.Files = l.extras, l.files
	if cluster.Digest, err = digestOf(public); err != nil {
		return Loaded{}, err
	}
	machines, err := machineDeployments(l.cluster)
	if err != nil {
		return Loaded{}, err
	}
	controllers := controllersWanted(l.cluster)
	if controllers != nil && *controllers {
		if cluster.MachineDeployments, err = wantedMachines(machines); err != nil {
			return Loaded{}, err
		}
	}
	cluster.NoControllers = controllers != nil && !*controllers
	return Loaded{
		Cluster:            cluster,
		Secrets:            secrets,
		Warnings:           l.sortedProblems().List,
		Notes:              l.addFieldNotes(),
		ManifestText:       text,
		StrictHostKeys:     l.cluster.StrictHostKeys,
		Mirror:             trimSlash(l.cluster.Artifacts.Mirror),
		MachineDeployments: machines,
		Controllers:        controllers != nil && *controllers,
	}, nil
}

// mergeTerraform merges Terraform's output into the cluster:
//
//   - the endpoint and its alternative names replace the manifest's;
//   - the cluster's name and the cloud provider are taken where the manifest has none;
//   - the control-plane hosts replace the manifest's, but a host in both keeps the manifest's settings;
//   - static workers are added, but a host in both is one host, with the manifest's settings;
//   - worker machines are added; unset cloud settings of one in both are filled in;
//   - unset proxy settings are filled in.
func (l *loader) mergeTerraform(out *terraformOutput) {
	l.mergeAPI(out)
	l.mergeName(out)
	l.mergeProvider(out)
	l.mergeControlPlane(out)
	l.mergeStatic(out)
	l.mergeWorkers(out)
	l.mergeProxy(out)
}

// positionOf returns the position of a value in the output by its path below the outputs.
func (out *terraformOutput) positionOf(path string) position {
	if out.above != "" {
		path = out.above + "." + path
	}
	where := out.where.findPosition(path)
	where.File, where.Path = out.file, path
	return where
}

func (l *loader) mergeAPI(out *terraformOutput) {
	if out.api.Endpoint != "" {
		l.cluster.APIEndpoint.Host = out.api.Endpoint
		l.where["apiEndpoint.host"] = out.positionOf("kubeone_api.value.endpoint")
	}
	if names := out.api.AlternativeNames; len(names) > 0 {
		l.cluster.APIEndpoint.AlternativeNames = names
		l.where.cutBelow("apiEndpoint.alternativeNames")
		for i := range names {
			l.where[v1beta2.Item("apiEndpoint.alternativeNames",
				i)] = out.positionOf(v1beta2.Item("kubeone_api.value.apiserver_alternative_names", i))
		}
	}
}

// mergeName refuses the output of another cluster, because its hosts would join this one.
func (l *loader) mergeName(out *terraformOutput) {
	const path = controlPlaneOutput + ".cluster_name"
	theirs := out.hosts.ControlPlane.ClusterName
	switch {
	case theirs == "" || theirs == l.cluster.Name:
	case l.cluster.Name == "":
		l.cluster.Name = theirs
		l.where["name"] = out.positionOf(path)
	default:
		at := out.positionOf(path)
		l.reportPath("name", Error,
			fmt.Sprintf("use the output that belongs to this manifest, or correct the name here "+
				"or on line %d of %s", at.Line, at.File),
			fmt.Sprintf("the Terraform output is for cluster %q, but the name in the manifest is %q", theirs,
				l.cluster.Name))
	}
}

func (l *loader) mergeProvider(out *terraformOutput) {
	const path = controlPlaneOutput + ".cloud_provider"
	cp, p := out.hosts.ControlPlane, &l.cluster.CloudProvider
	ours := p.Providers()
	switch {
	case cp.CloudProvider == "" || slices.Contains(ours, cp.CloudProvider):
	case len(ours) > 0:
		l.reportAt(out.positionOf(path), Warning, "",
			fmt.Sprintf("%q is ignored, because the manifest sets %q", cp.CloudProvider, ours[0]))
	case !p.Choose(cp.CloudProvider):
		l.reportAt(out.positionOf(path), Error, "", fmt.Sprintf("%q is not a known cloud provider", cp.CloudProvider))
		l.explain = append(l.explain, "cloudProvider")
	default:
		l.where["cloudProvider"] = out.positionOf(path)
	}
	if p.Hetzner != nil && p.Hetzner.NetworkID == "" {
		p.Hetzner.NetworkID = cp.NetworkID
	}
	if v := p.VMwareCloudDirector; v != nil {
		fillString(&v.VApp, cp.VAppName)
		fillString(&v.StorageProfile, cp.StorageProfile)
	}
}

func (l *loader) mergeProxy(out *terraformOutput) {
	for _, field := range []struct {
		name   string
		ours   *string
		theirs string
	}{
		{"http", &l.cluster.Proxy.HTTP, out.proxy.HTTP},
		{"https", &l.cluster.Proxy.HTTPS, out.proxy.HTTPS},
		{"noProxy", &l.cluster.Proxy.NoProxy, out.proxy.NoProxy},
	} {
		if *field.ours == "" && field.theirs != "" {
			*field.ours = field.theirs
			l.where["proxy."+field.name] = out.positionOf("proxy.value." + field.name)
		}
	}
}

// mergeWorkers adds worker machines sorted by name.
func (l *loader) mergeWorkers(out *terraformOutput) {
	for _, name := range slices.Sorted(maps.Keys(out.workers)) {
		theirs := out.workers[name]
		i := slices.IndexFunc(l.cluster.DynamicWorkers, func(w v1beta2.DynamicWorkerConfig) bool {
			return w.Name == name
		})
		if i < 0 {
			theirs.Name = name
			l.where[v1beta2.Item("dynamicWorkers",
				len(l.cluster.DynamicWorkers))] = out.positionOf(v1beta2.Child("kubeone_workers.value", name))
			l.cluster.DynamicWorkers = append(l.cluster.DynamicWorkers, theirs)
			continue
		}
		spec := &l.cluster.DynamicWorkers[i].ProviderSpec.CloudProviderSpec
		if *spec == nil {
			*spec = v1beta2.Raw{}
		}
		for key, value := range theirs.ProviderSpec.CloudProviderSpec {
			if _, set := (*spec)[key]; !set && !isEmpty(value) {
				(*spec)[key] = value
			}
		}
	}
}

// isEmpty reports whether Terraform has no value.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func fillString(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// reportAt adds a problem at a place in Terraform's output.
func (l *loader) reportAt(at position, severity Severity, hint, message string) {
	l.found = append(l.found, Problem{
		File: at.File, Line: at.Line, Column: at.Column, Path: at.Path, Message: message, Hint: hint,
		Severity: severity,
	})
}
