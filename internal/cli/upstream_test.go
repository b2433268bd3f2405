package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// upstreamGlobal are flags of every command of upstream's. Its -l is none of ours where we have a flag of that letter.
const upstreamGlobal = "-m --manifest -t --tfjson -c --credentials -v --verbose -d --debug --log-format"

// upstream are its commands, and the flags that each has besides. Of a command that is not here they do not matter.
var upstream = map[string]string{
	"apply": "-y --auto-approve -b --backup --no-init --force-install --force-upgrade --upgrade-machine-deployments " +
		"--create-machine-deployments --prune-images --rotate-encryption-key",
	"reset": "-y --auto-approve --destroy-workers --remove-volumes --remove-lb-services " +
		"--remove-binaries",
	"status":                    "",
	"kubeconfig":                "",
	"kubeconfig generate":       "",
	"certificates renew":        "",
	"etcd members":              "-o --output",
	"etcd snapshot":             "",
	"etcd defragment":           "",
	"etcd disarm":               "--all",
	"addons list":               "",
	"config dump":               "",
	"config migrate":            "",
	"config machinedeployments": "",
	"config images list":        "",
	"config print": "-f --full -n --cluster-name -k --kubernetes-version -p --provider --control-plane-hosts " +
		"--api-endpoint-host --api-endpoint-port --api-endpoint-alternative-names --pod-subnet --service-subnet " +
		"--service-dns --node-port-range --proxy-http --proxy-https --proxy-no-proxy --enable-always-pull-images " +
		"--enable-event-rate-limit --enable-pod-node-selector --enable-pod-security-policy --enable-static-audit-log " +
		"--enable-dynamic-audit-log --enable-openid-connect --enable-encryption-providers --enable-metrics-server " +
		"--deploy-machine-controller --container-log-max-size --container-log-max-files",
	"mirror-images":         "",
	"init":                  "",
	"local":                 "",
	"migrate to-containerd": "",
	"migrate to-ccm-csi":    "",
	"proxy":                 "",
	"ui":                    "",
	"version":               "",
	"completion bash":       "",
	"completion zsh":        "",
	"completion fish":       "",
	"document":              "",
}

// here is the program's command of that name, nil if it has none.
func here(root *cobra.Command, name string) *cobra.Command {
	cmd, _, err := use{args: strings.Fields(name)}.resolve(root)
	if err != nil || cmd.CommandPath() != "kubeone "+name {
		return nil
	}
	return cmd
}

// absence is one thing of upstream's that docs/commands.md says is not here: a command, or a flag of a command.
type absence struct{ command, flag string }

// The commands of a row about all commands, and of one about what stands before a command's name.
const (
	anyCommand = "all"
	beforeName = "before its name"
)

// absences are those of the section's table.
func absences(t *testing.T) []absence {
	t.Helper()
	_, section, found := strings.Cut(read(t, "../../docs/commands.md"),
		"\n## What upstream KubeOne has and this does not\n")
	if !found {
		t.Fatal("docs/commands.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	code := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) []string {
		var out []string
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
		return out
	}
	var out []absence
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| command |") {
			continue
		}
		commands, flags := names(cells[0]), names(cells[1])
		if first := strings.TrimPrefix(cells[0], "| "); first == anyCommand || first == beforeName {
			commands = []string{first}
		}
		if cells[1] == "the command" {
			flags = []string{""}
		}
		if len(commands) == 0 || len(flags) == 0 {
			t.Errorf("nothing is named as absent in %s", line)
		}
		for _, command := range commands {
			for _, flag := range flags {
				out = append(out, absence{command, flag})
			}
		}
	}
	return out
}

// TestWhatIsNotHereIsRefused holds that all that docs/commands.md says of upstream's is not here is a mistake in the
// command line.
func TestWhatIsNotHereIsRefused(t *testing.T) {
	t.Parallel()
	root := program()
	for _, a := range absences(t) {
		lines := [][]string{append(strings.Fields(a.command), strings.Fields(a.flag)...)}
		switch a.command {
		case beforeName:
			lines = [][]string{{a.flag, "status"}}
		case anyCommand:
			lines = nil
			for name := range upstream {
				if here(root, name) != nil {
					lines = append(lines, append(strings.Fields(name), a.flag))
				}
			}
		}
		for _, args := range lines {
			var out, said bytes.Buffer
			status := Main(t.Context(), args, IO{
				In: strings.NewReader(""), Out: &out, Err: &said, Getenv: func(string) string { return "" },
				Interactive: func() bool { return false },
			})
			says := []string{"unknown flag: ", "unknown shorthand flag: "}
			if a.flag == "" {
				// Where a command takes a manifest, the name of one below it is taken for that.
				says = []string{"there is no command ", "read the manifest: open " + args[len(args)-1]}
			}
			if status != exitConfig || out.Len() > 0 ||
				!slices.ContainsFunc(says, func(text string) bool { return strings.Contains(said.String(), text) }) {
				t.Errorf("kubeone %s: exit status %d, %q, %q", strings.Join(args, " "), status, &out, &said)
			}
		}
	}
}

// TestWhatUpstreamHasIsHereOrNamed holds that docs/commands.md names every command of upstream's, and every flag of a
// command of the same name, that is not here; and nothing that upstream does not have.
func TestWhatUpstreamHasIsHereOrNamed(t *testing.T) {
	t.Parallel()
	root, named, used := program(), absences(t), map[absence]bool{}
	isNamed := func(command, flag string) bool {
		for _, a := range named {
			if (a.command == command || a.command == anyCommand) && a.flag == flag {
				used[a] = true
				return true
			}
		}
		return false
	}
	for name, flags := range upstream {
		cmd := here(root, name)
		if cmd == nil {
			if !isNamed(name, "") {
				t.Errorf("there is no command %s, and docs/commands.md does not name it", name)
			}
			continue
		}
		for _, flag := range strings.Fields(upstreamGlobal + " " + flags) {
			_, has, err := use{args: append(strings.Fields(name), flag)}.resolve(root)
			if known := err == nil && len(has) == 1; known == isNamed(name, flag) {
				t.Errorf("%s %s: here %t, named in docs/commands.md as absent %t", name, flag, known, known)
			}
		}
	}
	for _, a := range named {
		if !used[a] && a.command != beforeName {
			t.Errorf("docs/commands.md names as absent what upstream does not have: %s %s", a.command, a.flag)
		}
	}
}
