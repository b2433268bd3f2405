package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/pool"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// newHostCommand returns "kubeone host".
func newHostCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "host", Short: "Manage the pool of hosts for Machines", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newHostAddCommand(stdio), newHostListCommand(stdio), newHostRemoveCommand(stdio))
	return cmd
}

// hostAddFlags holds the flags for the connection to machines and for the contents of their Host objects.
type hostAddFlags struct {
	kubeconfig, key, bastion, name, private, domain, labels string
	approve                                                 bool
}

func newHostAddCommand(stdio IO) *cobra.Command {
	f := &hostAddFlags{}
	cmd := &cobra.Command{
		Use:   "add [USER@]ADDRESS[:PORT]...",
		Short: "Add hosts to the pool for Machines",
		Long: "Add hosts to the pool for Machines. The command logs in to each host over SSH, shows its operating\n" +
			"system and its host key, and asks for confirmation. Then it installs the cluster SSH key on the\n" +
			"host, tests the connection with it, and creates a Host object. The host must be empty. Log in as\n" +
			"root (the default) or as a user with passwordless sudo. Your own SSH keys stay on your machine.\n\n" +
			"To add missing hosts or to install the cluster SSH key again, run the command again.",
		Example: "  kubeone host add --kubeconfig prod-kubeconfig ops@192.0.2.11 ops@192.0.2.12\n" +
			"  kubeone host add --bastion ops@bastion.example.com --failure-domain rack-7 10.0.7.11",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			machines, err := f.parseMachines(args)
			if err != nil {
				return &classError{view.ExitConfig, err}
			}
			return f.addHosts(cmd.Context(), stdio, machines)
		},
	}
	kubeconfigFlag(cmd, &f.kubeconfig)
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key-file", "",
		"private key `FILE` for the SSH login (default: the keys that ssh uses)")
	flags.StringVar(&f.bastion, "bastion", "", "`BASTION` to connect through: [USER@]ADDRESS[:PORT]")
	flags.StringVar(&f.name, "name", "", "`NAME` of the Host and its Node (default: the hostname)")
	flags.StringVar(&f.private, "private-address", "",
		"`IP` address that other Nodes connect to (default: ADDRESS, or the only address of the host)")
	flags.StringVar(&f.domain, "failure-domain", "",
		"failure `DOMAIN` of the host, such as a rack; Machines are spread across domains")
	flags.StringVar(&f.labels, "labels", "",
		"comma-separated `LABELS` for the Host, such as disk=ssd,zone=a; Machines select Hosts by label")
	flags.BoolVarP(&f.approve, "auto-approve", "y", false,
		"skip confirmation and record SSH host keys seen for the first time")
	return cmd
}

// parseMachines checks the flags and returns the machines in the arguments, each with the settings from the flags.
func (f *hostAddFlags) parseMachines(args []string) ([]pool.Machine, error) {
	if f.name != "" && len(args) > 1 {
		return nil, errors.New("--name can be used for one host only")
	}
	if f.private != "" && len(args) > 1 {
		return nil, errors.New("--private-address can be used for one host only")
	}
	private, err := netip.ParseAddr(f.private)
	if f.private != "" && (err != nil || private.Zone() != "") {
		return nil, fmt.Errorf("--private-address: %q is not an IP address", f.private)
	}
	hostLabels, err := labels.ConvertSelectorToLabelsMap(f.labels)
	if err != nil {
		return nil, fmt.Errorf("--labels: %w", err)
	}
	if len(f.domain) > validation.LabelValueMaxLength {
		return nil, fmt.Errorf("--failure-domain: the value is longer than %d characters",
			validation.LabelValueMaxLength)
	}
	var bastions []host.Target
	if f.bastion != "" {
		b, err := parseTarget(f.bastion)
		if err != nil {
			return nil, fmt.Errorf("--bastion: %w", err)
		}
		b.KeyFile = f.key
		bastions = append(bastions, b)
	}
	var out []pool.Machine
	for _, arg := range args {
		target, err := parseTarget(arg)
		if err != nil {
			return nil, err
		}
		target.KeyFile, target.Bastions, target.Name = f.key, bastions, f.name
		out = append(out, pool.Machine{
			At: target, PrivateAddress: f.private, FailureDomain: f.domain, Labels: hostLabels,
		})
	}
	return out, nil
}

// parseTarget parses [USER@]ADDRESS[:PORT]. The default user is root, the default port 22. An IPv6 address with a port
// must be in brackets.
func parseTarget(text string) (host.Target, error) {
	t := host.Target{User: "root", Port: 22, Address: text}
	if user, rest, ok := strings.Cut(text, "@"); ok {
		t.User, t.Address = user, rest
	}
	if address, port, err := net.SplitHostPort(t.Address); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q is not a port number in %q", port, text)
		}
		t.Address, t.Port = address, int(n)
	}
	t.Address = strings.TrimSuffix(strings.TrimPrefix(t.Address, "["), "]")
	if t.User == "" {
		return t, fmt.Errorf("%q: the user before the @ is missing", text)
	}
	return t, t.Validate()
}

// addHosts inspects the machines, shows them, asks for confirmation, and adds them to the pool.
func (f *hostAddFlags) addHosts(ctx context.Context, stdio IO, machines []pool.Machine) error {
	if !f.approve && !stdio.Interactive() {
		return &classError{view.ExitConfig, errNoTerminal}
	}
	a, done, err := f.newAdder(ctx, stdio)
	if err != nil {
		return err
	}
	defer done()
	var found []pool.Candidate
	var shown []view.PoolCandidate
	for _, m := range machines {
		c, err := a.Inspect(ctx, m, found...)
		if err != nil {
			return asConfigError(err)
		}
		found, shown = append(found, c), append(shown, newPoolCandidate(c))
	}
	view.PoolCandidates(stdio.Out, view.StyleFor(stdio.Out, stdio.Getenv), shown,
		ssh.FingerprintSHA256(a.Key.PublicKey()))
	if !f.approve {
		yes, err := askYes(stdio, "Add these hosts to the pool?")
		if err == nil && !yes {
			_, _ = fmt.Fprintln(stdio.Err, "Not confirmed. No host was changed.")
		}
		if err != nil || !yes {
			return err
		}
	}
	for _, c := range found {
		if err := a.Add(ctx, c); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(stdio.Out, "Added %s.\n", c.Host.Name)
	}
	return nil
}

// asConfigError gives an error the exit status of a configuration error, unless the error has its own status. The pool
// refuses machines and names that the operator must correct.
func asConfigError(err error) error {
	if exitStatus(err) == view.ExitOther {
		return &classError{view.ExitConfig, err}
	}
	return err
}

func newPoolCandidate(c pool.Candidate) view.PoolCandidate {
	out := view.PoolCandidate{
		Name: c.Host.Name, Address: hostAddress(c.Host), Private: c.Host.Spec.PrivateAddress, Known: c.Known,
		System: fmt.Sprintf("%s %s, %d CPUs, %d MiB", c.System.OS.ID, c.System.OS.VersionID, c.System.CPUs,
			c.System.MemoryMiB),
	}
	for _, k := range c.Contacts {
		out.Keys = append(out.Keys, k.Fingerprint)
	}
	return out
}

func hostAddress(h *kubeone.Host) string {
	return h.Spec.User + "@" + net.JoinHostPort(h.Spec.Address, strconv.Itoa(int(h.Spec.Port)))
}

// newAdder returns an adder with an API client, the SSH connections of the operator, and the cluster SSH key. If the
// cluster has no key yet, newAdder creates one. The caller must call the returned function to close the connections.
func (f *hostAddFlags) newAdder(ctx context.Context, stdio IO) (*pool.Adder, func(), error) {
	access, err := workspace.OpenKubeconfig(f.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	c, err := cluster.Connect(access)
	if err != nil {
		return nil, nil, err
	}
	a := &pool.Adder{SSH: sshpool.New(workspace.Login(askPassphrase(stdio), f.approve, func(message string) {
		_, _ = fmt.Fprintf(stdio.Err, "warning: %s\n", message)
	}))}
	done := func() {
		_ = a.SSH.Close()
		c.Close()
	}
	if err := c.DefineKinds(ctx); err != nil {
		done()
		return nil, nil, err
	}
	if a.Key, err = pool.Key(ctx, c.Kubernetes); err == nil {
		a.Client, err = newPoolClient(c)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return a, done, nil
}

func newPoolClient(c *cluster.Client) (client.Client, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(c.REST, client.Options{Scheme: scheme})
}

func newHostListCommand(stdio IO) *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the hosts in the pool",
		Long:    "List the hosts in the pool and the Machines that use them. kubectl get hosts lists the same objects.",
		Example: "  kubeone host list --kubeconfig prod-kubeconfig",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			access, err := workspace.OpenKubeconfig(kubeconfig)
			if err != nil {
				return err
			}
			c, err := cluster.Connect(access)
			if err != nil {
				return err
			}
			defer c.Close()
			api, err := newPoolClient(c)
			if err != nil {
				return err
			}
			hosts, err := pool.List(cmd.Context(), api)
			if err != nil {
				return asConfigError(err)
			}
			rows := []view.PoolHost{}
			for i := range hosts {
				h := &hosts[i]
				row := view.PoolHost{
					Name: h.Name, Address: hostAddress(h), State: string(cmp.Or(h.Status.State, kubeone.HostFree)),
					Domain: h.Spec.FailureDomain, Message: h.Status.Message,
				}
				if m := h.Status.Claim; m != nil {
					row.Machine = m.Namespace + "/" + m.Name
				}
				rows = append(rows, row)
			}
			doc := view.PoolDocument{Format: view.PoolFormat, Hosts: rows}
			return printResult(stdio.Out, output, jsonEncoder(doc), func(out io.Writer) error {
				view.Pool(out, view.StyleFor(out, stdio.Getenv), rows)
				return nil
			})
		},
	}
	kubeconfigFlag(cmd, &kubeconfig)
	outputFlag(cmd, &output)
	return cmd
}

func newHostRemoveCommand(stdio IO) *cobra.Command {
	f := &hostAddFlags{approve: true}
	var force bool
	cmd := &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove free hosts from the pool",
		Long: "Remove hosts from the pool. A host that a Machine uses cannot be removed. The command removes the\n" +
			"cluster SSH key from authorized_keys on the host and deletes the Host object. The key stays on\n" +
			"bastions, because other hosts may need it.",
		Example: "  kubeone host remove --kubeconfig prod-kubeconfig worker-7",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, done, err := f.newAdder(cmd.Context(), stdio)
			if err != nil {
				return err
			}
			defer done()
			for _, name := range args {
				unreachable, err := a.Remove(cmd.Context(), name, force)
				if err != nil {
					return asConfigError(err)
				}
				if unreachable != nil {
					_, _ = fmt.Fprintf(stdio.Err, "warning: the cluster SSH key is still on %s: %v\n", name, unreachable)
				}
				_, _ = fmt.Fprintf(stdio.Out, "Removed %s.\n", name)
			}
			return nil
		},
	}
	kubeconfigFlag(cmd, &f.kubeconfig)
	cmd.Flags().BoolVar(&force, "force", false,
		"also remove hosts that the cluster cannot log in to; the cluster SSH key stays on them")
	return cmd
}
