package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons/embedded"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// newBundleCommand returns "kubeone bundle". It reads a manifest from in, and writes results to out and progress to
// errOut.
func newBundleCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Create and inspect bundles for offline installation",
		Args:  refuseUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newBundleCreateCommand(in, out, errOut), newBundleInspectCommand(out))
	return cmd
}

// bundleCreate is the command to name in usage errors.
const bundleCreate = "kubeone bundle create"

// bundleCreateFlags holds the flags of "bundle create".
type bundleCreateFlags struct {
	file, output  string
	src           release.Source
	want          release.Want
	skipKubeProxy bool
	images        []string
	verificationFlags
	manifest, terraform, credentials string // empty without a manifest
}

// manifestFlags are the flags of "bundle create" whose values a manifest has.
func manifestFlags() []string {
	return []string{"kubernetes-version", "containerd-version", "cni", "addons", "skip-kube-proxy"}
}

func newBundleCreateCommand(in io.Reader, out, errOut io.Writer) *cobra.Command {
	f := &bundleCreateFlags{}
	cmd := &cobra.Command{
		Use:   "create -f FILE (-m MANIFEST | --kubernetes-version VERSION)",
		Short: "Download a Kubernetes version into one file",
		Long: "Download the binaries and container images of a Kubernetes version, check their digests, and write\n" +
			"them to FILE. With -m, also download the charts of the Helm releases in the manifest, and the images\n" +
			"of charts and addons. The parts come from their official locations, a mirror or a registry. Hosts that\n" +
			"are installed from the bundle download nothing. The command prints the SHA-256 digest of the bundle,\n" +
			"which you can pass to other commands with --bundle-sha256.",
		Example: "  kubeone bundle create -f demo.tar -m kubeone.yaml\n" +
			"  kubeone bundle create -f kubernetes-1.36.3.tar --kubernetes-version 1.36.3",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBundleCreate(cmd, f, in, out, errOut) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "bundle `FILE` to write")
	flags.StringVarP(&f.manifest, "manifest", "m", "",
		"manifest `FILE` of the cluster, or - for standard input; it decides about versions, network plugin and addons")
	flags.StringVarP(&f.terraform, "tfjson", "t", "",
		"with -m, `PATH` of Terraform or OpenTofu output: a file, a directory, or - for standard input")
	flags.StringVarP(&f.credentials, "credentials", "c", "",
		"with -m, YAML `FILE` with credentials and parameters of addons")
	flags.StringSliceVar(&f.images, "images", nil,
		"more `IMAGES` for all hosts, separated by commas, such as those that an operator starts; can be repeated")
	flags.StringVar(&f.want.KubernetesVersion, "kubernetes-version", "", "Kubernetes `VERSION`, such as 1.36.3")
	flags.StringVar(&f.want.Containerd, "containerd-version", "",
		"containerd `VERSION`, such as 2.4.2 (default: depends on the Kubernetes version)")
	flags.StringVar(&f.want.Arch, "arch", "amd64",
		"architecture `ARCH` of the hosts: "+strings.Join(release.Architectures(), ", "))
	flags.StringVar(&f.want.CNI, "cni", plugins.Names()[0],
		"network `PLUGIN` to include: "+strings.Join(plugins.Names(), ", ")+" (none); cilium@1.20.1 chooses a version")
	flags.StringVar(&f.want.Addons, "addons", desired.MetricsServerAddon,
		"`NAMES` of addons whose images are included, separated by commas: "+strings.Join(embedded.Names(), ", "))
	flags.StringVar(&f.src.Mirror, "mirror", "", "base `URL` of a mirror that serves binaries at URL/HOST/PATH")
	flags.StringVar(&f.want.OverwriteRegistry, "overwrite-registry", "",
		"`REGISTRY` to pull all images from: HOST[:PORT][/PREFIX]")
	flags.BoolVar(&f.want.Insecure, "insecure-registry", false,
		"allow plain HTTP or an unverified certificate for --overwrite-registry")
	completeFlag(cmd, "arch", release.Architectures()...)
	completeFlag(cmd, "cni", v1beta2.CNINames()...)
	f.verificationFlags.registerFlags(cmd, "--mirror")
	flags.BoolVar(&f.skipKubeProxy, "skip-kube-proxy", false, "leave out kube-proxy")
	outputFlag(cmd, &f.output)
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// checkManifestFlags returns a *usageError unless the command line has either a manifest, or the flags instead.
func (f *bundleCreateFlags) checkManifestFlags(cmd *cobra.Command) error {
	has := func(name string) bool { return cmd.Flags().Changed(name) }
	if has("manifest") {
		for _, name := range manifestFlags() {
			if has(name) {
				return &usageError{fmt.Errorf("--%s contradicts -m: the manifest decides", name), bundleCreate}
			}
		}
		return nil
	}
	for _, name := range []string{"tfjson", "credentials"} {
		if has(name) {
			return &usageError{fmt.Errorf("--%s needs -m", name), bundleCreate}
		}
	}
	if !has("kubernetes-version") {
		return &usageError{errors.New("set -m or --kubernetes-version"), bundleCreate}
	}
	return nil
}

// readContents returns what the bundle contains according to the flags, or to the manifest, whose warnings it prints.
func (f *bundleCreateFlags) readContents(ctx context.Context, src release.Source, in io.Reader,
	errOut io.Writer) (workspace.BundleContents, error) {
	if f.manifest == "" {
		want := f.want
		want.KubernetesVersion = strings.TrimPrefix(want.KubernetesVersion, "v")
		want.Containerd = strings.TrimPrefix(want.Containerd, "v")
		want.KubeProxy = !f.skipKubeProxy
		return workspace.BundleContents{Want: want, Workloads: release.Workloads{Images: f.images}}, nil
	}
	contents, err := workspace.ReadBundleContents(ctx, workspace.Options{
		Manifest: f.manifest, Terraform: f.terraform, Credentials: f.credentials, Stdin: in,
	}, src)
	if err != nil {
		return contents, err
	}
	for _, warning := range contents.Warnings {
		_, _ = fmt.Fprintf(errOut, "warning: %v\n", warning)
	}
	for _, note := range contents.Notes {
		_, _ = fmt.Fprintf(errOut, "note: %s\n", note)
	}
	contents.Want.Arch, contents.Want.OverwriteRegistry = f.want.Arch, f.want.OverwriteRegistry
	contents.Want.Insecure = f.want.Insecure
	contents.Workloads.Images = append(contents.Workloads.Images, f.images...)
	return contents, nil
}

func runBundleCreate(cmd *cobra.Command, f *bundleCreateFlags, in io.Reader, out, errOut io.Writer) error {
	if err := f.checkManifestFlags(cmd); err != nil {
		return err
	}
	if err := f.readCNI(); err != nil {
		return err
	}
	want := f.want
	if err := checkBundleAddons(want.Addons); err != nil {
		return err
	}
	if want.Insecure && want.OverwriteRegistry == "" {
		return &usageError{
			errors.New("--insecure-registry needs --overwrite-registry: official registries are always verified"),
			bundleCreate,
		}
	}
	if f.insecure && f.src.Mirror == "" {
		return &usageError{
			errors.New("--insecure-mirror needs --mirror: official locations always use TLS"), bundleCreate,
		}
	}
	src := f.src
	src.Trusted, src.InsecureMirror = f.trust, f.insecure
	var err error
	if src.Known, err = release.ReadDigests(f.digests); err != nil {
		return &classError{view.ExitConfig, err}
	}
	contents, err := f.readContents(cmd.Context(), src, in, errOut)
	if err != nil {
		return err
	}
	progress := view.NewByteProgress(errOut)
	created, err := release.CreateFile(cmd.Context(), f.file, src, contents.Want, release.CreateOptions{
		Workloads: contents.Workloads, CreatedBy: "kubeone " + Version, Progress: progress.Show,
	})
	progress.End()
	if err != nil {
		return bundleError(err)
	}
	doc := BundleDocument{
		Format: BundleFormat, File: f.file, SHA256: created.SHA256, Size: created.Index.Size(),
		KubernetesVersion: created.Index.KubernetesVersion, Arch: created.Index.Arch, CNI: created.Index.CNI,
		Note: release.UnknownNote(created.Artifacts.PartsFor(desired.ControlPlane)),
	}
	return printResult(out, f.output, jsonEncoder(doc), func(out io.Writer) error {
		text := fmt.Sprintf("%s: %s\nsha256: %s\n", doc.File, view.BundleSummary(created.Index), doc.SHA256)
		if doc.Note != "" {
			text += doc.Note + "\n"
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

// BundleFormat is the version of BundleDocument.
const BundleFormat = 1

// BundleDocument is the JSON that "bundle create" prints.
type BundleDocument struct {
	Format            int    `json:"format"` // BundleFormat
	File              string `json:"file"`
	SHA256            string `json:"sha256"` // hex, of the bundle file
	Size              int64  `json:"size"`   // bytes, sum of the binaries and images in the bundle
	KubernetesVersion string `json:"kubernetesVersion"`
	Arch              string `json:"arch"`
	CNI               string `json:"cni"`
	Note              string `json:"note,omitempty"` // binaries and images without a known digest
}

// checkBundleAddons returns an error unless all addons have images.
func checkBundleAddons(names string) error {
	for name := range strings.SplitSeq(names, ",") {
		if names != "" && !slices.Contains(embedded.Names(), name) {
			return &usageError{
				fmt.Errorf("unknown addon %q in --addons: use %s", name, strings.Join(embedded.Names(), ", ")), bundleCreate,
			}
		}
	}
	return nil
}

// readCNI splits the flag --cni into plugin and version. It returns an error unless a manifest can select both.
func (f *bundleCreateFlags) readCNI() error {
	names := v1beta2.CNINames()
	f.want.CNI, f.want.CNIVersion, _ = strings.Cut(f.want.CNI, "@")
	if !slices.Contains(names, f.want.CNI) {
		return &usageError{fmt.Errorf("--cni: unknown plugin %q; use one of %s", f.want.CNI, strings.Join(names, ", ")),
			bundleCreate}
	}
	if f.want.CNIVersion == "" {
		return nil
	}
	if _, err := plugins.FindVersion(f.want.CNI, f.want.CNIVersion); err != nil {
		return &usageError{fmt.Errorf("--cni: %w", err), bundleCreate}
	}
	return nil
}

func newBundleInspectCommand(out io.Writer) *cobra.Command {
	var format string
	var verify bool
	cmd := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Show the contents of a bundle",
		Long:    "List the binaries and images in a bundle. With --verify, also check their digests.",
		Example: "  kubeone bundle inspect kubernetes-1.36.3.tar --verify",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bundleError(runBundleInspect(cmd.Context(), args[0], format, verify, out))
		},
	}
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&verify, "verify", false, "check the digest of every binary and image")
	return cmd
}

func runBundleInspect(ctx context.Context, path, format string, verify bool, out io.Writer) error {
	bundle, err := release.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = bundle.Close() }()
	if verify {
		if err := bundle.Verify(ctx); err != nil {
			return err
		}
	}
	return printResult(out, format, jsonEncoder(bundle.Index()), func(out io.Writer) error {
		view.Bundle(out, bundle.Index(), verify)
		return nil
	})
}

// bundleError gives an unusable bundle, or a release that does not exist, the exit status of a configuration error.
func bundleError(err error) error {
	var truncated *release.TruncatedError
	var altered *release.AlteredError
	var format *release.FormatError
	var unsupported *release.UnsupportedError
	var mismatch *release.MismatchError
	var untrusted *release.UntrustedError
	var mirror *release.MirrorError
	var image *release.ImageNameError
	if errors.As(err, &truncated) || errors.As(err, &altered) || errors.As(err, &format) ||
		errors.As(err, &unsupported) || errors.As(err, &mismatch) || errors.As(err, &untrusted) ||
		errors.As(err, &mirror) || errors.As(err, &image) || errors.Is(err, fs.ErrNotExist) {
		return &classError{status: view.ExitConfig, err: err}
	}
	return err
}
