package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// upstreamGap is something that upstream's program has and this one does not.
type upstreamGap struct {
	commands string // separated by ", "; anyCommand, or beforeName for what stands before a command's name
	flags    string // of these commands, separated by ", "; "" for the commands themselves
	instead  string // what to do instead, or why it is not here, as docs/commands.md has it
}

const (
	anyCommand = "all"
	beforeName = "before its name"
)

// upstreamGaps are the rows of the table in docs/commands.md.
var upstreamGaps = []upstreamGap{
	{"all", "-d, --debug, --log-format",
		"an error says what, where and what to do, and has no stack; `-v` says more, `-o json` and " +
			"`--log-file FILE` are for programs. Nor is there its `-l`: with `apply` that is `--selector`"},
	{"before its name", "-v, --verbose",
		"goes after it: `kubeone apply -v`"},
	{"completion bash, completion fish, completion zsh, config print, version", "-m, --manifest, -t, " +
		"--tfjson, -c, --credentials, -v, --verbose",
		"they read no manifest"},
	{"apply", "-b, --backup",
		"`kubeone backup`, which holds etcd too, and is encrypted"},
	{"apply", "--no-init",
		"nothing puts binaries alone on hosts; `kubeone plan --scripts DIR` writes what would run on each"},
	{"apply", "--force-install",
		"packages of the system have no say in versions: the manifest's are put in place"},
	{"apply", "--create-machine-deployments",
		"where it has the controllers run, it makes those of `dynamicWorkers` anyway; elsewhere `kubeone " +
			"config machinedeployments` prints them, for `kubectl apply -f -`"},
	{"apply", "--prune-images",
		"the kubelet does it by itself: `imageGCHighThresholdPercent` and `imageGCLowThresholdPercent` in the " +
			"[manifest](manifest.md)"},
	{"reset", "--destroy-workers",
		"hosts of Machines are returned first anyway, unless `--abandon-machines` is given"},
	{"reset", "--remove-volumes, --remove-lb-services",
		"no cloud is spoken to: where something in the cluster creates volumes or load balancers, delete " +
			"their objects first"},
	{"reset", "--remove-binaries",
		"hosts become bare in any case"},
	{"kubeconfig generate", "",
		"ask the cluster for a certificate: a CertificateSigningRequest for " +
			"`kubernetes.io/kube-apiserver-client`, with `kubectl certificate approve`"},
	{"config print", "-n, --cluster-name, -k, --kubernetes-version, -p, --provider, --control-plane-hosts, " +
		"--api-endpoint-host, --api-endpoint-port, --api-endpoint-alternative-names, --pod-subnet, " +
		"--service-subnet, --service-dns, --node-port-range, --proxy-http, --proxy-https, --proxy-no-proxy, " +
		"--container-log-max-size, --container-log-max-files",
		"change what it prints; `kubeone config schema` has editors complete it"},
	{"config print", "--enable-always-pull-images, --enable-event-rate-limit, --enable-pod-node-selector, " +
		"--enable-pod-security-policy, --enable-static-audit-log, --enable-dynamic-audit-log, " +
		"--enable-openid-connect, --enable-encryption-providers, --enable-metrics-server, " +
		"--deploy-machine-controller",
		"`--full` prints the fields, and [manifest.md](manifest.md) says which of them are carried out"},
	{"config images list", "",
		"`kubeone bundle inspect FILE` lists those of a bundle"},
	{"mirror-images", "",
		"a [bundle](bundle.md) needs no registry; one of your own is filled with any tool that copies images"},
	{"addons list", "",
		"addons of the manifest are not carried out; `kubeone plan` says so"},
	{"init", "",
		"`kubeone config print` prints a manifest to begin with; Terraform's files are yours"},
	{"local", "",
		"a manifest with one control-plane host, reached through SSH"},
	{"proxy", "",
		"`ssh -D` to a control-plane host"},
	{"ui", "",
		"`kubeone status`, and `kubectl` for Machines: no page that everybody on the network may use"},
	{"config migrate", "",
		"manifests of `kubeone.k8c.io/v1beta2` are read as they are; no other format is"},
	{"migrate to-containerd, migrate to-ccm-csi", "",
		"there has been no other container runtime here, and there are no clouds"},
	{"document", "",
		"this page, and `--help`"},
}

// plainText is a sentence of the table without its markup.
func plainText(markdown string) string {
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1"), "`", "")
}

// missingCommand is the error about a command of upstream's that is not here, and what to do instead; nil where the
// arguments name none.
func missingCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	typed := strings.TrimPrefix(cmd.CommandPath()+" "+strings.Join(args, " "), cmd.Root().Name()+" ") + " "
	for _, gap := range upstreamGaps {
		for _, name := range strings.Split(gap.commands, ", ") {
			name += " "
			if gap.flags == "" && (strings.HasPrefix(typed, name) || strings.HasPrefix(name, typed)) {
				return fmt.Errorf("there is no command %q: %s", cmd.CommandPath()+" "+strings.Join(args, " "),
					plainText(gap.instead))
			}
		}
	}
	return nil
}

// missingFlag adds to the error about a flag what to do instead, where upstream's command has that flag.
func missingFlag(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return err
	}
	flag := "--" + missing.GetSpecifiedName()
	if missing.GetSpecifiedShortnames() != "" {
		flag = "-" + missing.GetSpecifiedName()
	}
	command := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if !cmd.HasParent() {
		command = beforeName
	}
	for _, gap := range upstreamGaps {
		commands := strings.Split(gap.commands, ", ")
		if slices.Contains(strings.Split(gap.flags, ", "), flag) &&
			(gap.commands == anyCommand || slices.Contains(commands, command)) {
			return fmt.Errorf("%w: %s", err, plainText(gap.instead))
		}
	}
	return err
}

// refuseMissing has every command that takes arguments refuse the names of commands of upstream's.
func refuseMissing(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := missingCommand(cmd, given); err != nil {
				return err
			}
			return args(cmd, given)
		}
	}
	for _, below := range cmd.Commands() {
		refuseMissing(below)
	}
}
