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
	"io"
	"os"
	"path/filepath"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
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
		l.check()
	}
	if l.failed() {
		return Loaded{}, l.problems()
	}
	return l.loaded()
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

// check fills in the defaults and adds what is wrong with the cluster to what was wrong with the files.
func (l *loader) check() {
	l.cluster.Default()
	for _, f := range l.cluster.Validate() {
		if l.explained(f) || f.Missing && l.partial {
			continue
		}
		severity := Error
		if f.Warning {
			severity = Warning
		}
		l.report(f.Path, severity, f.Hint, f.Message)
	}
	if !l.failed() {
		l.addExtras()
	}
}

// loaded turns the checked cluster into what the other stages need.
func (l *loader) loaded() (Loaded, error) {
	public, err := l.cluster.WithoutSecrets()
	if err != nil {
		return Loaded{}, err
	}
	text, err := textOf(public)
	if err != nil {
		return Loaded{}, err
	}
	cluster, secrets := l.desired(), l.secrets()
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
		Warnings:           l.problems().List,
		Notes:              l.notes(),
		ManifestText:       text,
		StrictHostKeys:     l.cluster.StrictHostKeys,
		Mirror:             trimSlash(l.cluster.Artifacts.Mirror),
		MachineDeployments: machines,
		Controllers:        controllers != nil && *controllers,
	}, nil
}
