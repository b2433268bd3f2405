// Package script renders the steps of a plan that run on one host as a shell script with stages (`node.sh STAGE`).
// Without a stage, the script runs all steps of its host. Rendering is pure: the same input gives the same text, byte
// for byte. Golden files check that.
//
// A script has three parts: variables (lines of NAME='value'), files (functions that print the content of a file), and
// the stages, which are in sh/ and are the same for every host. Scripts contain no secrets. The secrets of a step are
// uploaded to SecretsDir just before it, readable only by root, and are removed after it.
package script

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/distro"
	"kubeone/internal/plan/step"
)

//go:embed sh/*.sh sh/files/*.sh
var stages embed.FS

// Paths on a host. The probe reads what the stages write.
const (
	BinDir       = componentconfig.BinDir
	ArtifactsDir = "/var/lib/kubeone/artifacts"
	StepDir      = "/var/lib/kubeone/step"
	LockDir      = "/var/lib/kubeone/lock"
	// ControllerNote is a file with the name and digest of the controller image on the host.
	ControllerNote = "/var/lib/kubeone/controller-image"
	SecretsDir     = componentconfig.SecretsDir
	MarkerFile     = "/etc/kubeone/marker"
	DigestsFile    = "/etc/kubeone/digests"
	FilesFile      = "/etc/kubeone/files"         // digests of files, as sha256sum writes them
	KeptDir        = "/etc/kubeone/kept"          // copies of these files, each named after its digest
	AsideDir       = "/etc/kubeone/aside"         // the host's own files that are moved aside until a reset
	MaskedFile     = "/etc/kubeone/masked"        // names of units that kubeone has masked until a reset
	RotationFile   = "/etc/kubeone/rotation"      // phases of rotations that have begun on the host and not ended
	UpgradeFile    = "/var/lib/kubeone/upgrading" // the version to which an upgrade of the host has begun and not ended
	BeforeDir      = "/var/lib/kubeone/before"    // files from before a reconfiguration that has not ended
	HooksDir       = "/var/lib/kubeone/hooks"     // files named after activities whose hooks have not all succeeded
	APIPort        = componentconfig.APIPort

	// EncryptionDir contains the configuration of encryption at rest, named after its digest. EncryptionPatch names it.
	EncryptionDir   = "/etc/kubernetes/encryption"
	EncryptionPatch = "/etc/kubeone/patches/kube-apiserverencryption+json.yaml"

	// RecoveryDir is the working directory of a restore, for root only. It is removed at the end.
	RecoveryDir = "/var/lib/kubeone/recovery"
	// RecoverySnapshot is the snapshot to restore.
	RecoverySnapshot = RecoveryDir + "/snapshot.db"
)

// Names of secret files in SecretsDir.
const (
	TokenFile     = "token"          // a bootstrap token
	DiscoveryFile = "discovery.conf" // a kubeconfig with the cluster's CA and endpoint, and no credentials
	PKIFile       = "pki.tar"        // CAs and service-account keys
	// EncryptionFile is the configuration of encryption at rest, of a backup or of other control-plane hosts.
	EncryptionFile = "encryption.yaml"
	// AuthoritiesFile is a tar of a host's new authorities, with paths below /etc/kubernetes/pki. TokenKeysFile names
	// the keys whose tokens will be refused, one a line.
	AuthoritiesFile = "authorities.tar"
	TokenKeysFile   = "token-keys"
)

// Input is everything that the script for a host depends on.
type Input struct {
	componentconfig.Input

	OS         string // ID in the host's /etc/os-release; "" if unknown
	ImageIndex string // OCI index.json of this host's images, when they are pushed
	ImageBlobs []string
	Steps      []step.Intent // on this host, in order
	// Credentials are the host credentials for registries and proxies. Nil means unknown, and hosts keep their
	// credentials. The script contains only the names of their files.
	Credentials *desired.Credentials
	Reason      string // last part of a snapshot's name; "" means DefaultSnapshotReason
	Epoch       int    // number of recoveries of the cluster, including one by this script
}

// Render returns the script for a host.
func Render(in Input) (string, error) {
	artifacts, ok := in.Want.ArtifactsFor(in.Host, in.Arch)
	if !ok && !in.resetOnly() {
		return "", fmt.Errorf("%s: no artifacts for architecture %q", in.NodeName, in.Arch)
	}
	kubeadm, err := componentconfig.KubeadmFiles(in.Input)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# %s (%s) of cluster %s, %s. Run as root: sh node.sh [STAGE]\n", in.NodeName,
		in.Host.ID, in.Want.Name, in.Host.Role)
	b.WriteString("set -eu\nexport LC_ALL=C\n")
	fmt.Fprintf(&b, "export PATH=%s:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin\n", BinDir)
	b.WriteString(ownEnvironment)
	for _, v := range shellVariables(in, artifacts) {
		value, err := v.Value()
		if err != nil {
			return "", fmt.Errorf("%s: %w", in.NodeName, err)
		}
		fmt.Fprintf(&b, "%s=%s\n", v.Name, Quote(value))
	}
	snapshots, err := snapshotFiles(in)
	if err != nil {
		return "", err
	}
	addons, err := hostAddonFiles(in)
	if err != nil {
		return "", err
	}
	for _, f := range slices.Concat(componentconfig.HostFiles(in.Input, artifacts),
		[]componentconfig.Text{
			{Name: "file_guard", Content: guardProgram(in.Host.Role)}, {Name: "file_guard_unit", Content: guardUnit},
			{Name: "file_image_index", Content: in.ImageIndex},
		}, componentconfig.FirewallFiles(in.Input), kubeadm, snapshots, addons) {
		b.WriteString(functionDefinition(f.Name, f.Content))
	}
	for i, f := range componentconfig.ComponentFiles(in.Input) {
		if !f.Secret {
			b.WriteString(functionDefinition(fmt.Sprintf("file_component_%d", i), f.Content))
		}
	}
	b.WriteString(registryFunction(in.Want))
	b.WriteString(hooksFunction(in.Steps))
	b.WriteString("\n" + distroName(in).Shell() + linkPlugin(in))
	text, err := stageText()
	if err != nil {
		return "", err
	}
	b.WriteString(text)
	return b.String(), nil
}

// ownEnvironment unsets proxy variables from the caller of the script or the systemd configuration, because kubeadm
// copies them into static pods.
const ownEnvironment = `
for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
	case $name in PATH | LC_ALL | HOME | PWD | KUBEONE_RUN | SHELLOPTS | BASHOPTS) ;; *) unset "$name" ;; esac
done

`

// Private returns the shell functions that create directories and lock files that only root can access.
func Private() string {
	text, err := stages.ReadFile("sh/private.sh")
	if err != nil {
		panic(err) // embedded at build time
	}
	return string(text)
}

// stageText returns all files of sh/, lib.sh first and main.sh last.
func stageText() (string, error) {
	names, err := fs.Glob(stages, "sh/*.sh")
	if err != nil {
		return "", err
	}
	const first, last = "sh/lib.sh", "sh/main.sh"
	names = slices.DeleteFunc(names, func(name string) bool { return name == first || name == last })
	var b strings.Builder
	for _, name := range slices.Concat([]string{first}, names, []string{last}) {
		text, err := stages.ReadFile(name)
		if err != nil {
			return "", err
		}
		b.WriteString("\n")
		b.Write(text)
	}
	return b.String(), nil
}

// registryFunction returns the function that writes containerd's hosts.toml files and removes obsolete ones.
func registryFunction(want desired.Cluster) string {
	var b strings.Builder
	files := componentconfig.RegistryFiles(want)
	for i, f := range files {
		b.WriteString(functionDefinition(fmt.Sprintf("file_registry_%d", i), f.Content))
	}
	b.WriteString("\nregistry_files() {\n\tmkdir -p /etc/containerd/certs.d\n")
	keep := make([]string, 0, len(files))
	for i, f := range files {
		fmt.Fprintf(&b, "\tput %s 0600 file_registry_%d\n", Quote("/etc/containerd/certs.d/"+f.Name+"/hosts.toml"),
			i)
		keep = append(keep, f.Name)
	}
	fmt.Fprintf(&b, "\tkept=%s\n\tfor dir in /etc/containerd/certs.d/*/; do\n\t\tname=${dir%%/}\n",
		Quote(" "+strings.Join(keep, " ")+" "))
	b.WriteString("\t\tcase $kept in *\" ${name##*/} \"*) ;; *) rm -rf \"$dir\" ;; esac\n\tdone\n}\n")
	return b.String()
}

// functionDefinition returns a shell function that prints the content of a file from a here-document. The delimiter is
// extended until no line of the content is equal to it. dash 0.5.12 loses bytes in lines that start like the delimiter
// and contain non-ASCII characters, so content with such a line is quoted instead.
func functionDefinition(function, content string) string {
	content = strings.TrimRight(content, "\n")
	end := "KUBEONE_END_OF_FILE"
	mistaken := func(line string) bool {
		return strings.HasPrefix(line, end[:1]) && strings.ContainsFunc(line, func(r rune) bool { return r > '\x7f' })
	}
	if slices.ContainsFunc(strings.Split(content, "\n"), mistaken) {
		return fmt.Sprintf("\n%s() {\n\tprintf '%%s\\n' %s\n}\n", function, Quote(content))
	}
	for slices.Contains(strings.Split(content, "\n"), end) {
		end += "_"
	}
	return fmt.Sprintf("\n%s() {\n\tcat <<'%s'\n%s\n%s\n}\n", function, end, content, end)
}

// resetOnly reports whether the host can only be reset, because its architecture is unknown or no version is desired.
func (in Input) resetOnly() bool { return len(in.Want.Artifacts) == 0 }

// Quote returns s as one word of a POSIX shell, whatever it contains.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Stage returns the name of the stage that carries out the intent.
func Stage(i step.Intent) string {
	if i.Kind == step.Hooks {
		return string(i.Kind) + "-" + i.Moment().String()
	}
	return string(i.Kind)
}

// shellVariables returns the variables of the script, in order. The files in sh/ document them.
func shellVariables(in Input, a desired.Artifacts) []step.Variable {
	text, words := step.Text, step.Words
	stages, others, secrets := splitManualStages(in.Steps)
	return slices.Concat([]step.Variable{
		words("STAGES", stages...),
		words("LEFT", others...),
		words("SECRET_FILES", secrets...),
		words("HOOKS_OWED", pendingHooks(in.Steps)...),
		text("CLUSTER", in.Want.Name),
		text("ROLE", string(in.Host.Role)),
		text("HOST_ID", in.Host.ID),
		text("ADDRESS", in.Host.PublicAddress),
		text("ID_DERIVED", yesNo(!in.Host.HasOwnID)),
		text("MACHINE", in.Host.Machine),
		text("CNI_CONFIG", in.Network.Config.File),
		words("PLUGIN_BINARIES", pluginBinaries(in)...),
		words("PLUGIN_INTERFACES", in.Network.Traces.Interfaces...),
		words("PLUGIN_TABLES", in.Network.Traces.Tables...),
		text("CHAINS", strings.Join(append([]string{"KUBE-", "CNI-"}, in.Network.Traces.Chains...), "|")),
		words("PLUGIN_PATHS", in.Network.Traces.Paths...),
		text("PUSHED", yesNo(a.Pushed)),
		text("CA_BUNDLE", yesNo(in.Want.CABundle != "")),
		text("SNAPSHOT_EVERY", strconv.Itoa(snapshotEvery(in.Want))),
		text("SNAPSHOT_REASON", cmp.Or(in.Reason, DefaultSnapshotReason)),
		text("KEEP_SNAPSHOTS", strconv.Itoa(keepSnapshots(in.Want))),
		text("IGNORE", strings.Join(in.Want.Preflight.IgnoreErrors, ",")),
		text("ENDPOINT", in.Want.Endpoint.URL()),
		text("LOCAL_ENDPOINT", "https://"+net.JoinHostPort(in.Host.PrivateAddress, strconv.Itoa(APIPort))),
		text("INIT_FLAGS", initFlags(in.Want)),
		text("TOOLS", distroName(in).ToolPackages()),
		words("HOST_DIGESTS", digestList(componentconfig.PreparedDigests(in.Input))...),
		words("NODE_DIGESTS", digestList(componentconfig.NodeDigests(in.Input))...),
		text("SANDBOX_NAMED", yesNo(in.Want.Containerd.SandboxImage != "")),
		text("RUNTIME_CONFIG", "file_containerd_config"),
		text("POLL", "0.2"),
		text("CHANGED", "no"),
		text("SWITCH", "yes"),
		text("KUBERNETES", in.Want.KubernetesVersion),
		text("KUBELET", in.Want.KubeletVersion(in.Host)),
		text("SKIP_PROXY", yesNo(in.Want.Network.KubeProxy.Skip)),
		text("NODE_NAME", in.NodeName),
		text("HARDENING", in.Want.Hardening),
		text("FILE_MODE", componentconfig.FileMode(in.Want)),
		text("EPOCH", strconv.Itoa(in.Epoch)),
		text("PEER_URL", "https://"+net.JoinHostPort(in.Host.PrivateAddress, "2380")),
		words("ETCD_IMAGE", etcdImage(a)),
		text("RECOVERY", RecoveryDir),
		words("IMAGE_BLOBS", in.ImageBlobs...),
		step.Lines("COMPONENT_FILES", componentconfig.ComponentFileLines(in.Input)),
		words("EXEMPT_NAMESPACES", componentconfig.ExemptNamespaces(in.Input)...),
		words("COMPONENT_DIRS", componentconfig.ComponentDirectories(in.Input)...),
		step.Lines("BINARIES", binaryLines(a, in.Host.Role)),
		step.Lines("IMAGES", imageLines(a, in.Host.Role)),
		text("DNS_IMAGE", desired.DNSImageNote(in.Want)), text("ADDON_IMAGES", desired.AddonImagesNote(in.Want)),
		text("WORKLOAD_IMAGES", in.Want.WorkloadImages),
	}, hostAddonVariables(in), proxyVariables(in.Want.Proxy), cniVariables(in), firewallVariables(in),
		credentialVariables(in.Credentials), pathVariables(), step.Variables(in.Steps))
}

// proxyVariables returns variables about the HTTP proxy.
func proxyVariables(p desired.Proxy) []step.Variable {
	return []step.Variable{
		step.Text("PROXY", yesNo(p.HTTP != "" || p.HTTPS != "")),
		step.Text("HTTP_PROXY_URL", p.HTTP),
		step.Text("HTTPS_PROXY_URL", p.HTTPS),
		step.Text("NO_PROXY_LIST", p.NoProxy),
		step.Text("PROXY_AUTH", yesNo(p.HasAuth)),
	}
}

// cniVariables returns variables about the CNI configuration of the network plugin, and whether the operator installs
// the plugin.
func cniVariables(in Input) []step.Variable {
	return []step.Variable{
		step.Words("CNI_FILES", in.Network.Config.Files()...),
		step.Text("CNI_EXTERNAL", yesNo(in.Want.Network.CNI.Name == desired.ExternalCNI)),
	}
}

// pathVariables returns variables with paths on a host.
func pathVariables() []step.Variable {
	text := step.Text
	return []step.Variable{
		text("BIN", BinDir),
		text("ARTIFACTS", ArtifactsDir),
		text("BUNDLES", desired.BundleDir),
		text("CONTROLLER_NOTE", ControllerNote),
		text("SECRETS", SecretsDir),
		text("MARKER", MarkerFile),
		text("HOOKS", HooksDir),
		text("DIGESTS", DigestsFile),
		text("FILES", FilesFile),
		text("KEPT", KeptDir),
		text("ASIDE", AsideDir),
		text("MASKED", MaskedFile),
		text("UPGRADING", UpgradeFile),
		text("ROTATION", RotationFile),
		text("BEFORE", BeforeDir),
		text("PROXY_FILE", componentconfig.ProxyFile),
		text("CREDENTIALS_DIR", componentconfig.CredentialsDir),
		text("CLIENT_CERT", "/var/lib/kubelet/pki/kubelet-client-current.pem"),
		text("SERVING_CERT", "/var/lib/kubelet/pki/kubelet-server-current.pem"),
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func initFlags(want desired.Cluster) string {
	switch {
	case want.LimitsNodes():
		return "--skip-phases=addon" // addons are applied later, when their namespace is exempt
	case want.Network.KubeProxy.Skip:
		return "--skip-phases=addon/kube-proxy"
	}
	return ""
}

// distroName returns the operating system of the host, or the zero System if it is not supported.
func distroName(in Input) distro.System {
	s, _ := distro.Find(in.OS)
	return s
}

// pluginBinaries returns the names of the binaries of the network plugin.
func pluginBinaries(in Input) []string {
	names := make([]string, 0, len(in.Network.Binaries))
	for _, b := range in.Network.Binaries {
		names = append(names, b.Name)
	}
	return names
}

// linkPlugin returns a shell function that links a binary of the network plugin into the directory that the container
// runtime uses.
func linkPlugin(in Input) string {
	var b strings.Builder
	b.WriteString("\n# link_plugin NAME HOME\nlink_plugin() {\n\tcase $1 in\n")
	for _, p := range in.Network.Binaries {
		fmt.Fprintf(&b, "\t%s) for p in \"$2\"/%s; do link \"$p\" /opt/cni/bin/%s; done ;;\n", p.Name, p.Files,
			p.Program)
	}
	return b.String() + "\tesac\n}\n"
}

// binaryLines returns the binaries for hosts of a role, each as NAME VERSION SHA256 ARCHIVE URL.
func binaryLines(a desired.Artifacts, r desired.Role) [][]string {
	binaries := a.BinariesFor(r)
	lines := make([][]string, 0, len(binaries))
	for _, b := range binaries {
		lines = append(lines, []string{b.Name, b.Version, b.SHA256, yesNo(b.Archive), b.URL})
	}
	return lines
}

// imageLines returns the images for hosts of a role, each as NAME DIGEST SOURCE.
func imageLines(a desired.Artifacts, r desired.Role) [][]string {
	images := a.ImagesFor(r)
	lines := make([][]string, 0, len(images))
	for _, i := range images {
		lines = append(lines, []string{i.Name, i.Digest, i.Source})
	}
	return lines
}

// etcdImage returns the name of the etcd image in the release, or "" if there is none.
func etcdImage(a desired.Artifacts) string {
	for _, i := range a.Images {
		if _, name, _ := componentconfig.ImageParts(i.Name); name == "etcd" {
			return i.Name
		}
	}
	return ""
}

// digestList returns digests as NAME=SHA256, sorted.
func digestList(digests map[string]string) []string {
	pairs := make([]string, 0, len(digests))
	for name, sum := range digests {
		pairs = append(pairs, name+"="+sum)
	}
	slices.Sort(pairs)
	return pairs
}
