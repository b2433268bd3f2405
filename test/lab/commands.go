package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
	"kubeone/test/lab/progress"
)

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "lab",
		Short:         "Real hosts and real Kubernetes on one machine, for tests",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(upCommand(), downCommand(), listCommand(), wantCommand(), sshTo(), prepareCommand(),
		buildComponents(),
		bundleCommand(), mirrorCommand())
	cmd.AddCommand(hostCommands()...)
	return cmd
}

// toStderr prints lines to standard error with the seconds since the call.
func toStderr() progress.Logf {
	start := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

func upCommand() *cobra.Command {
	options := fleet.Options{Log: toStderr()}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring up a lab",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := fleet.Up(cmd.Context(), options)
			if err != nil {
				return err
			}
			options.Log("lab %s is up: %s", lab.Name, lab.Path("kubeone.yaml"))
			printHosts(cmd, lab)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Name, "name", "lab", "name of the lab")
	flags.IntVar(&options.ControlPlanes, "control-planes", 3, "number of control-plane hosts")
	flags.IntVar(&options.Workers, "workers", 1, "number of worker hosts")
	flags.IntVar(&options.SpareWorkers, "spare-workers", 0, "number of worker hosts that the manifest does not name")
	flags.StringVar(&options.KubernetesVersion, "kubernetes-version", components.DefaultKubernetesVersion,
		"Kubernetes version of the manifest and the bundle")
	flags.StringVar(&options.CNI, "cni", components.DefaultCNI, "network plugin of the manifest and the bundle")
	flags.BoolVar(&options.DualStack, "dual-stack", false, "give the hosts and the manifest IPv6 addresses too")
	flags.StringVar(&options.SSHUser, "ssh-user", "root", "user of the manifest: root, or ops with sudo")
	flags.StringVar(&options.Image, "image", "", "docker image of the hosts (default: the lab's own)")
	flags.StringVar(&options.Debian, "debian", "",
		"release of the hosts' Debian: bookworm or trixie (default: that of this machine)")
	flags.StringToStringVar(&options.DebianOf, "debian-of", nil,
		"release of single hosts, as worker-2=bookworm")
	flags.BoolVar(&options.NoPin, "no-pin", false, "leave the hosts' SSH keys out of the manifest")
	flags.BoolVar(&options.NoBundle, "no-bundle", false, "make no bundle")
	return cmd
}

// wantCommand changes a lab's manifest to another version, the first action of an upgrade.
func wantCommand() *cobra.Command {
	name := "lab"
	cmd := &cobra.Command{
		Use:   "want VERSION",
		Short: "Make a lab's manifest want another Kubernetes version, and add that version's bundle",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := fleet.Open(name)
			if err != nil {
				return err
			}
			if err := lab.Want(cmd.Context(), args[0], toStderr()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), lab.Bundle)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", name, "name of the lab")
	return cmd
}

func downCommand() *cobra.Command {
	name, all := "lab", false
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove a lab with its hosts' disks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all {
				return fleet.Remove(cmd.Context(), name)
			}
			labs, err := fleet.List()
			problems := []error{err}
			for _, lab := range labs {
				problems = append(problems, lab.Down(cmd.Context()))
			}
			return errors.Join(problems...)
		},
	}
	cmd.Flags().StringVar(&name, "name", name, "name of the lab")
	cmd.Flags().BoolVar(&all, "all", false, "remove every lab")
	cmd.MarkFlagsMutuallyExclusive("name", "all")
	return cmd
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List labs and their hosts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			labs, err := fleet.List()
			for _, lab := range labs {
				printHosts(cmd, lab)
			}
			return err
		},
	}
}

func printHosts(cmd *cobra.Command, lab *fleet.Lab) {
	for _, host := range lab.Hosts {
		spare := ""
		if host.Spare {
			spare = " (spare)"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%-24s %-15s %s%s\n", host.Name, host.Address, host.Role, spare)
	}
}

func sshTo() *cobra.Command {
	return &cobra.Command{
		Use:   "ssh HOST [-- COMMAND…]",
		Short: "Open a shell on a host, or run a command there",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, host, err := fleet.FindHost(args[0])
			if err != nil {
				return err
			}
			ssh := exec.CommandContext(cmd.Context(), "ssh",
				append(host.SSHArgs(lab.Path("known_hosts")), args[1:]...)...)
			ssh.Stdin, ssh.Stdout, ssh.Stderr = os.Stdin, os.Stdout, os.Stderr
			return ssh.Run()
		},
	}
}
