package cli

import (
	"bytes"
	"fmt"
	"kubeone/internal/view"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// upstreamGlobal lists the flags of every upstream command. Its -l is skipped for commands that have another -l here.
const upstreamGlobal = "-m --manifest -t --tfjson -c --credentials -v --verbose -d --debug --log-format"

// upstream maps the upstream commands to their own flags. The flags of commands that do not exist here do not matter.
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

// here returns the command with that name, or nil.
func here(root *cobra.Command, name string) *cobra.Command {
	cmd, _, err := use{args: strings.Fields(name)}.resolve(root)
	if err != nil || cmd.CommandPath() != "kubeone "+name {
		return nil
	}
	return cmd
}

// absence is a command or flag that only upstream has.
type absence struct{ command, flag string }

// absences returns the absences in the table.
func absences() []absence {
	var out []absence
	for _, gap := range upstreamGaps {
		for _, command := range strings.Split(gap.commands, ", ") {
			for _, flag := range strings.Split(gap.flags, ", ") {
				out = append(out, absence{command, flag})
			}
		}
	}
	return out
}

// TestTheTableOfGapsIsDocumented checks that docs/commands.md has exactly the rows of the table.
func TestTheTableOfGapsIsDocumented(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(read(t, "../../docs/commands.md"),
		"\n## Differences from upstream KubeOne\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, documented, found := strings.Cut(section, "\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/commands.md has no such table")
	}
	code := func(names string) string {
		if names == anyCommand || names == beforeName {
			return names
		}
		return "`" + strings.ReplaceAll(names, ", ", "`, `") + "`"
	}
	var want strings.Builder
	for _, gap := range upstreamGaps {
		flags := "the command"
		if gap.flags != "" {
			flags = code(gap.flags)
		}
		fmt.Fprintf(&want, "| %s | %s | %s |\n", code(gap.commands), flags, gap.instead)
	}
	if diff := cmp.Diff(want.String(), documented); diff != "" {
		t.Errorf("docs/commands.md (-table of the program +documented):\n%s", diff)
	}
}

// TestWhatIsNotHereIsRefused checks that every missing command and flag is refused as a mistake in the command line.
func TestWhatIsNotHereIsRefused(t *testing.T) {
	t.Parallel()
	root := program()
	for _, a := range absences() {
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
			says := regexp.MustCompile(`unknown (shorthand )?flag: [^:]*: .*; see kubeone`)
			if a.flag == "" {
				says = regexp.MustCompile(`unknown command "[^"]*": .*; see kubeone`)
			}
			if status != view.ExitConfig || out.Len() > 0 || !says.MatchString(said.String()) {
				t.Errorf("kubeone %s: exit status %d, %q, %q", strings.Join(args, " "), status, &out, &said)
			}
		}
	}
}

// TestWhatUpstreamHasIsHereOrNamed checks that docs/commands.md names every upstream command and flag that does not
// exist here, and nothing else.
func TestWhatUpstreamHasIsHereOrNamed(t *testing.T) {
	t.Parallel()
	root, named, used := program(), absences(), map[absence]bool{}
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
