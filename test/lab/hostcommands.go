package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/test/lab/fleet"
)

// hostCommands returns the commands for a single host.
func hostCommands() []*cobra.Command {
	power := func(act func(*fleet.Host, context.Context) error) func(context.Context, *fleet.Lab, *fleet.Host) error {
		return func(ctx context.Context, _ *fleet.Lab, host *fleet.Host) error { return act(host, ctx) }
	}
	spare := func(spare bool) func(context.Context, *fleet.Lab, *fleet.Host) error {
		return func(ctx context.Context, lab *fleet.Lab, host *fleet.Host) error {
			return lab.SetSpare(ctx, host, spare)
		}
	}
	verbs := []struct {
		name, short string
		act         func(context.Context, *fleet.Lab, *fleet.Host) error
	}{
		{"pause", "Make a host hang: it accepts connections and answers nothing", power((*fleet.Host).Pause)},
		{"unpause", "End a pause", power((*fleet.Host).Unpause)},
		{"cut", "Cut a host off the network", power((*fleet.Host).Cut)},
		{"reconnect", "Connect a host again that was cut off", power((*fleet.Host).Reconnect)},
		{"kill", "Turn a host's power off", power((*fleet.Host).Kill)},
		{"start", "Turn a host's power on again and wait until it has booted", power((*fleet.Host).Start)},
		{"rebuild", "Replace a host by a new machine with the same name and address",
			func(ctx context.Context, lab *fleet.Lab, host *fleet.Host) error {
				return lab.Rebuild(ctx, host)
			}},
		{"spare", "Take a host out of the manifest", spare(true)},
		{"enlist", "Put a spare host into the manifest", spare(false)},
	}
	commands := []*cobra.Command{addCommand()}
	for _, verb := range verbs {
		commands = append(commands, &cobra.Command{
			Use:   verb.name + " HOST",
			Short: verb.short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				lab, host, err := fleet.FindHost(args[0])
				if err != nil {
					return err
				}
				return verb.act(cmd.Context(), lab, host)
			},
		})
	}
	return commands
}

func addCommand() *cobra.Command {
	name, role, spare := "lab", string(fleet.Worker), false
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Boot one more host",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if role != string(fleet.Worker) && role != string(fleet.ControlPlane) {
				return fmt.Errorf("role %q: want %s or %s", role, fleet.Worker, fleet.ControlPlane)
			}
			lab, err := fleet.Open(name)
			if err != nil {
				return err
			}
			host, err := lab.AddHost(cmd.Context(), fleet.Role(role), spare)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), host.Name, host.Address)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", name, "name of the lab")
	cmd.Flags().StringVar(&role, "role", role, "worker or control-plane")
	cmd.Flags().BoolVar(&spare, "spare", false, "leave it out of the manifest")
	return cmd
}
