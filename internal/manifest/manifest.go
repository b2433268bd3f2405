// Package manifest is the load stage: it reads a KubeOneCluster manifest and the output of Terraform or OpenTofu,
// merges them, fills in defaults, checks everything and makes one desired.Cluster of it.
//
// Problems are collected, not thrown one by one. YAML and JSON are read into trees of nodes that know their lines, and
// one walk over a tree decodes it into Go values, reports what does not belong, and remembers where each value was
// written. Whatever a later check finds wrong about a value, the operator is told its file and line, also when the
// value came from Terraform.
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

// Options says what is loaded.
type Options struct {
	// ManifestPath is the manifest's file; "-" is Stdin. Relative paths in the manifest are relative to its folder.
	ManifestPath string
	// ManifestReader, if set, is read instead of the file; ManifestPath then only names it.
	ManifestReader io.Reader
	// TerraformPath is "" for none, "-" for Stdin, a file with the JSON of "terraform output -json" or of a state, or a
	// folder: what RunTerraform says there, or where there is no Terraform, its terraform.tfstate if that is certainly
	// the state in use.
	TerraformPath string
	// CredentialsPath is a file with credentials that only its owner may read; "" is none.
	CredentialsPath string
	// Stdin is read at most once, for "-".
	Stdin io.Reader
	// RunTerraform returns what "terraform output -json" prints in dir, or ErrNoTerraform. Default: RunTerraform of
	// this package.
	RunTerraform func(ctx context.Context, dir string) ([]byte, error)
	// Getenv returns a variable of the environment: TF_WORKSPACE and TF_DATA_DIR are looked at. Default: os.Getenv.
	Getenv func(name string) string
	// Home is the folder that "~/" stands for. Default: the user's home directory.
	Home string
}

// Loaded is what was loaded.
type Loaded struct {
	Cluster desired.Cluster
	Secrets Secrets
	// Warnings are problems that do not stop anything.
	Warnings []Problem
	// Notes are about fields that are set and that this version does not carry out. One that stops apply has the
	// severity Error.
	Notes []Problem
	// ManifestText is the manifest as it is wanted: merged with Terraform's output, defaults filled in, files read in,
	// without secrets, as YAML with sorted keys. Loading it gives the same cluster with the same digest.
	ManifestText []byte
	// StrictHostKeys is the manifest's strictHostKeys.
	StrictHostKeys bool
	// Mirror is the manifest's artifacts.mirror, a base URL without a slash at its end; "" for none.
	Mirror string
	// MachineDeployments are its dynamicWorkers as objects of the cluster, as in JSON.
	MachineDeployments []map[string]any
	// Controllers says that the controllers of Machines are to run in the cluster.
	Controllers bool
}

// Load reads, merges and checks a manifest. Whatever is wrong with the files is returned at once as one *Problems,
// warnings included; that is also the type of an error from reading a file or running Terraform, and errors.Is finds
// its cause (fs.ErrNotExist, context.Canceled). It is safe for concurrent use.
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

// loader is one Load: what has been read so far, what was wrong with it, and where everything was written.
type loader struct {
	Options
	dir     string // the manifest's folder, absolute
	cluster *v1beta2.KubeOneCluster
	where   positions
	found   []Problem
	explain []string // paths about which there is a problem already, so that what follows from it is not reported too
	extras  []desired.Extra
	files   map[string][]byte // the secret ones of extras
	partial bool              // Terraform's part is missing, so nothing can be said to be missing
	// registries are the credentials of the file, by host; nil where there is no file.
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

// defaultAndCheck fills in the defaults and adds what is wrong with the cluster to what was wrong with the files.
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

// finishLoad turns the checked cluster into what the other stages need.
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

// mergeTerraform brings Terraform's output into the cluster:
//
//   - the endpoint and its alternative names replace the manifest's;
//   - the cluster's name and the cloud provider are taken where the manifest has none;
//   - the control-plane hosts replace the manifest's, but a host in both keeps the manifest's settings;
//   - static workers are added, but a host in both is one host, with the manifest's settings;
//   - worker machines are added; of one in both, the cloud's specification is filled up;
//   - the proxy is filled up.
func (l *loader) mergeTerraform(out *terraformOutput) {
	l.mergeAPI(out)
	l.mergeName(out)
	l.mergeProvider(out)
	l.mergeControlPlane(out)
	l.mergeStatic(out)
	l.mergeWorkers(out)
	l.mergeProxy(out)
}

// positionOf is the position of a value in the output, by its path below the outputs.
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

// mergeName refuses the output of another cluster: its hosts would be made members of this one.
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
			fmt.Sprintf("Terraform's output is for cluster %q, the manifest says %q", theirs, l.cluster.Name))
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
			fmt.Sprintf("%q is not used: the manifest says %q", cp.CloudProvider, ours[0]))
	case !p.Choose(cp.CloudProvider):
		l.reportAt(out.positionOf(path), Error, "", fmt.Sprintf("%q is not a cloud provider", cp.CloudProvider))
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

// mergeWorkers adds worker machines in the order of their names.
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

// isEmpty reports whether Terraform has nothing to say about a value.
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

// reportAt adds a problem about a place in Terraform's output.
func (l *loader) reportAt(at position, severity Severity, hint, message string) {
	l.found = append(l.found, Problem{
		File: at.File, Line: at.Line, Column: at.Column, Path: at.Path, Message: message, Hint: hint,
		Severity: severity,
	})
}
