// Package manifest is the load stage: it reads a KubeOneCluster manifest and the output of Terraform or OpenTofu,
// merges them, fills in defaults, validates the result and returns a desired.Cluster.
//
// Load reports all problems at once. It parses YAML and JSON into nodes with line numbers. One pass then decodes the
// nodes into Go values, reports unknown fields, and records the position of each value. Problems found by later checks
// therefore have a file and line, even for values from Terraform.
package manifest

import (
	"context"
	"fmt"
	"io"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons"
	"kubeone/internal/manifest/objects"
	"kubeone/internal/model/desired"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Options says what to load.
type Options struct {
	// ManifestPath is the path of the manifest; "-" means Stdin. Relative paths in the manifest are relative to its
	// directory.
	ManifestPath string
	// ManifestReader, if set, is read instead of the file. ManifestPath then only appears in messages.
	ManifestReader io.Reader
	// TerraformPath is "" for none, "-" for Stdin, a JSON file (the output of "terraform output -json", or a state), or a
	// directory. For a directory, Load calls RunTerraform. If Terraform is not installed, Load reads terraform.tfstate in
	// that directory, but only if no other state can be in use.
	TerraformPath string
	// CredentialsPath is the path of a credentials file, which only its owner may be able to read; "" means none.
	CredentialsPath string
	// Stdin is read at most once, for "-".
	Stdin io.Reader
	// RunTerraform returns the output of "terraform output -json" in dir, or ErrNoTerraform. The default is the function
	// RunTerraform of this package.
	RunTerraform func(ctx context.Context, dir string) ([]byte, error)
	// Getenv returns the value of an environment variable: TF_WORKSPACE, TF_DATA_DIR, those that parameters of addons
	// name, and the credentials of an external cloud. The default is os.Getenv.
	Getenv func(name string) string
	// NoFiles makes a manifest that names files an error, because it comes from another machine.
	NoFiles bool
	// ReadAddons makes Load read and render the operator's own addons, which are in a folder next to the manifest.
	ReadAddons bool
	// Home replaces "~" in paths that begin with "~/". The default is the user's home directory.
	Home string
}

// Loaded is the result of Load.
type Loaded struct {
	Cluster desired.Cluster
	Secrets Secrets
	// Warnings are problems that do not stop a run.
	Warnings []Problem
	// Notes list the fields that this version does not support. A note has the severity Error if apply refuses the field.
	Notes []Problem
	// ManifestText is the effective manifest: merged with the Terraform output, with defaults and the content of files,
	// without secrets, as YAML with sorted keys. Loading it returns the same cluster with the same digest.
	ManifestText []byte
	// Written is the manifest as the operator wrote it, merged with the Terraform output and with defaults. It has
	// secrets, and names of files instead of their content.
	Written *v1beta2.KubeOneCluster
	// Objects are the objects of a file with a Cluster and Machines, with the content of Written; nil for a manifest.
	// OtherObjects are those that a manifest cannot express, as JSON values.
	Objects      *objects.Objects
	OtherObjects []map[string]any
	// StrictHostKeys is the field strictHostKeys in the manifest.
	StrictHostKeys bool
	// Mirror is the field artifacts.mirror in the manifest, a base URL without a trailing slash; "" means none.
	Mirror string
	// MachineDeployments are the Kubernetes objects for the dynamicWorkers, as JSON values.
	MachineDeployments []map[string]any
	// Addons are the operator's own addons and Helm releases; nil if Options.ReadAddons is false.
	Addons *addons.Sources
	// Controllers reports whether the Machine controllers run in the cluster.
	Controllers bool
}

// Load reads, merges and validates a manifest. If there are errors, it returns all problems, including warnings, as one
// *Problems. This includes failures to read a file or to run Terraform; errors.Is finds their cause, such as
// fs.ErrNotExist or context.Canceled. Load is safe for concurrent use.
func Load(ctx context.Context, o Options) (Loaded, error) {
	l := newLoader(o)
	if l.readManifest() {
		l.readTerraform(ctx)
		l.keepWritten()
		l.readCABundle()
		l.readFeatures()
		l.readCredentials()
		l.defaultAndCheck()
		l.checkPluginVersion()
		if !l.hasErrors() {
			l.readAddons()
			l.readReleases()
			l.readCloud()
		}
	}
	if l.hasErrors() {
		return Loaded{}, l.sortedProblems()
	}
	return l.finishLoad()
}

// loader is the state of one call of Load: the values read so far, the problems found, and the positions of values.
type loader struct {
	Options
	dir             string // directory of the manifest, absolute
	cluster         *v1beta2.KubeOneCluster
	where           positions
	written         *v1beta2.KubeOneCluster
	sources         []objects.Source // where the parts of the manifest come from, if the file has objects
	fileObjects     *objects.Objects // nil if the file has a manifest
	otherObjects    []map[string]any // objects that the manifest cannot express
	found           []Problem
	explained       []string // paths with a reported problem, to suppress follow-up problems
	extras          []desired.Extra
	files           map[string][]byte // content of the secret files in extras, by name
	terraformFailed bool              // the Terraform output is unusable, so missing fields are not reported
	// registries holds the credentials from the credentials file, by registry host; nil means there is no file.
	registries           map[string]v1beta2.ContainerdRegistryAuthConfig
	credentialsPositions positions
	customSecrets        map[string]string            // from the credentials file
	secretParams         map[string]map[string]string // of addons, by addon, from the credentials file
	cloudKeys            map[string]string            // of the external cloud, from the credentials file
	addons               *addons.Sources
	embeddedNames        []string // listed addons of kubeone that are applied like custom addons
	hostAddons           []desired.HostAddon
	replaced             []string // default addons that the operator replaces with a subfolder
	listedMetricsServer  *bool    // whether addons lists metrics-server, and not to delete it
	listedNodeLocalDNS   *bool    // likewise
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
		l.Home, _ = os.UserHomeDir() // without one, paths that begin with "~/" stay unchanged and cannot be read
	}
	l.dir, _ = filepath.Abs(filepath.Dir(l.ManifestPath)) // fails only if there is no working directory
	return l
}

// keepWritten keeps a copy of the manifest before files are read into it.
func (l *loader) keepWritten() {
	written, err := objects.Clone(l.cluster)
	if err != nil {
		l.reportFile(l.ManifestPath, "", err)
		return
	}
	written.Default()
	l.written = written
}

// defaultAndCheck fills in defaults and reports the problems that validation finds in the cluster.
func (l *loader) defaultAndCheck() {
	l.cluster.Default()
	for _, f := range l.cluster.Validate() {
		if l.isExplained(f) || f.Missing && l.terraformFailed {
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

// finishLoad converts the validated cluster to the types of the other stages.
func (l *loader) finishLoad() (Loaded, error) {
	public, err := l.cluster.WithoutSecrets()
	if err != nil {
		return Loaded{}, err
	}
	text, err := marshalManifest(public)
	if err != nil {
		return Loaded{}, err
	}
	cluster, secrets := l.desiredCluster(), l.secretValues()
	cluster.Extras, secrets.Files = l.extras, l.files
	if cluster.Digest, err = computeDigest(public); err != nil {
		return Loaded{}, err
	}
	machines, err := objects.MachineDeployments(l.cluster)
	if err != nil {
		return Loaded{}, err
	}
	machines = append(machines, l.otherDeployments()...)
	controllers := l.controllersSetting()
	if controllers != nil && *controllers {
		if cluster.MachineDeployments, err = newMachineDeployments(machines); err != nil {
			return Loaded{}, err
		}
	}
	written, err := l.objectsOf(l.written)
	if err != nil {
		return Loaded{}, err
	}
	if err := l.storeObjects(public); err != nil {
		return Loaded{}, err
	}
	cluster.Objects = written != nil
	cluster.NoControllers = controllers != nil && !*controllers
	return Loaded{
		Cluster:            cluster,
		Secrets:            secrets,
		Warnings:           l.sortedProblems().List,
		Notes:              l.unsupportedFieldNotes(),
		ManifestText:       text,
		Written:            l.written,
		Objects:            written,
		OtherObjects:       l.otherObjects,
		StrictHostKeys:     l.cluster.StrictHostKeys,
		Mirror:             trimSlash(l.cluster.Artifacts.Mirror),
		MachineDeployments: machines,
		Addons:             l.addons,
		Controllers:        controllers != nil && *controllers,
	}, nil
}

// mergeTerraform merges the Terraform output into the cluster:
//
//   - the endpoint and its alternative names replace those in the manifest;
//   - the cluster name and the cloud provider are used if the manifest does not set them;
//   - the control-plane hosts replace those in the manifest, but a host in both keeps its settings from the manifest;
//   - static workers are added, but a host in both appears once, with its settings from the manifest;
//   - dynamic workers are added; for one in both, unset cloud settings are filled in;
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

// positionOf returns the position of a value in the Terraform output. The path is relative to the outputs.
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

// mergeName takes the cluster name from the Terraform output if the manifest does not set one. A different name is an
// error, because hosts of another cluster would join this one.
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
		l.explained = append(l.explained, "cloudProvider")
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

// mergeWorkers adds the dynamic workers in the Terraform output, sorted by name, and fills in unset cloud settings of
// those that are also in the manifest.
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

// isEmpty reports whether a value in the Terraform output is null, or an empty string, list or map.
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

// reportAt adds a problem at a position in the Terraform output.
func (l *loader) reportAt(at position, severity Severity, hint, message string) {
	l.found = append(l.found, Problem{
		File: at.File, Line: at.Line, Column: at.Column, Path: at.Path, Message: message, Hint: hint,
		Severity: severity,
	})
}
