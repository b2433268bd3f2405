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

// upstreamGap is a command or flag of upstream KubeOne that does not exist here.
type upstreamGap struct {
	// commands are separated by ", ". anyCommand means every command, beforeName flags before the name of a command.
	commands string
	flags    string // separated by ", "; "" means that the commands do not exist
	instead  string // alternative or reason, in Markdown
}

const (
	anyCommand = "all"
	beforeName = "before its name"
)

// upstreamGaps holds the rows for the table in docs/commands.md.
var upstreamGaps = []upstreamGap{
	{"all", "-d, --debug, --log-format",
		"`-v` prints more details; `-o json` and `--log-file FILE` are for programs. `-l` of `apply` is " +
			"`--selector`"},
	{"before its name", "-v, --verbose",
		"put it after the command: `kubeone apply -v`"},
	{"completion bash, completion fish, completion zsh, config print, version", "-m, --manifest, -t, " +
		"--tfjson, -c, --credentials, -v, --verbose",
		"these commands do not read a manifest"},
	{"apply", "-b, --backup",
		"use `kubeone backup`, which also includes etcd and is encrypted"},
	{"apply", "--no-init",
		"kubeone does not install binaries alone; `kubeone plan --scripts DIR` writes the script of each host"},
	{"apply", "--force-install",
		"kubeone always installs the versions in the manifest, regardless of the packages on a host"},
	{"apply", "--create-machine-deployments",
		"`apply` creates those of `dynamicWorkers` if it deploys the controllers; otherwise use `kubeone config " +
			"machinedeployments` with `kubectl apply -f -`"},
	{"apply", "--prune-images",
		"the kubelet removes unused images: `imageGCHighThresholdPercent` and `imageGCLowThresholdPercent` in the" +
			" [manifest](manifest.md)"},
	{"reset", "--destroy-workers",
		"Machine hosts are always returned to the pool first, unless you use `--abandon-machines`"},
	{"reset", "--remove-volumes, --remove-lb-services",
		"kubeone does not call cloud APIs; first delete the objects in the cluster that create volumes or load " +
			"balancers"},
	{"reset", "--remove-binaries",
		"binaries are always removed"},
	{"kubeconfig generate", "",
		"request a certificate: a CertificateSigningRequest for `kubernetes.io/kube-apiserver-client`, with " +
			"`kubectl certificate approve`"},
	{"config print", "-n, --cluster-name, -k, --kubernetes-version, -p, --provider, --control-plane-hosts, " +
		"--api-endpoint-host, --api-endpoint-port, --api-endpoint-alternative-names, --pod-subnet, " +
		"--service-subnet, --service-dns, --node-port-range, --proxy-http, --proxy-https, --proxy-no-proxy, " +
		"--container-log-max-size, --container-log-max-files",
		"edit the printed manifest; `kubeone config schema` lets editors complete it"},
	{"config print", "--enable-always-pull-images, --enable-event-rate-limit, --enable-pod-node-selector, " +
		"--enable-pod-security-policy, --enable-static-audit-log, --enable-dynamic-audit-log, " +
		"--enable-openid-connect, --enable-encryption-providers, --enable-metrics-server, " +
		"--deploy-machine-controller",
		"`--full` prints all fields, and [manifest.md](manifest.md) says which ones are supported"},
	{"config images list", "",
		"`kubeone bundle inspect FILE` lists the images of a bundle"},
	{"mirror-images", "",
		"use a [bundle](bundle.md), which needs no registry; to fill a registry, use an image-copying tool"},
	{"init", "",
		"use `kubeone config print` for an example manifest; Terraform files are not generated"},
	{"local", "",
		"use a manifest with one control-plane host, reached over SSH"},
	{"proxy", "",
		"use `ssh -D` to a control-plane host"},
	{"ui", "",
		"use `kubeone status`, and `kubectl` for Machines"},
	{"config migrate", "",
		"manifests of `kubeone.k8c.io/v1beta2` are read as they are; other formats are not supported"},
	{"migrate to-containerd, migrate to-ccm-csi", "",
		"not needed: the only container runtime is containerd, and clouds are not supported"},
	{"document", "",
		"use this page and `--help`"},
}

// plainText removes links and backquotes from Markdown.
func plainText(markdown string) string {
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1"), "`", "")
}

// checkUpstreamCommand returns an error with the alternative if the command exists only in upstream KubeOne.
func checkUpstreamCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	typed := strings.TrimPrefix(cmd.CommandPath()+" "+strings.Join(args, " "), cmd.Root().Name()+" ") + " "
	for _, gap := range upstreamGaps {
		for _, name := range strings.Split(gap.commands, ", ") {
			name += " "
			if gap.flags == "" && (strings.HasPrefix(typed, name) || strings.HasPrefix(name, typed)) {
				return fmt.Errorf("unknown command %q: %s", cmd.CommandPath()+" "+strings.Join(args, " "),
					plainText(gap.instead))
			}
		}
	}
	return nil
}

// explainUpstreamFlag adds the alternative to an error about an unknown flag that exists in upstream KubeOne. It
// returns other errors unchanged.
func explainUpstreamFlag(cmd *cobra.Command, err error) error {
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

// refuseUpstreamCommands makes the command and its subcommands refuse arguments that name a command in upstream
// KubeOne.
func refuseUpstreamCommands(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := checkUpstreamCommand(cmd, given); err != nil {
				return err
			}
			return args(cmd, given)
		}
	}
	for _, sub := range cmd.Commands() {
		refuseUpstreamCommands(sub)
	}
}
