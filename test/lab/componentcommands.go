package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

func buildComponents() *cobra.Command {
	var versions []string
	var cni string
	cmd := &cobra.Command{
		Use:   "components",
		Short: "Build all components of Kubernetes versions from Go modules",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sets, err := buildSets(cmd.Context(), versions, cni)
			for _, set := range sets {
				for _, file := range set.Files {
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n", file.URL)
				}
				for _, image := range set.Images {
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n", image.Ref())
				}
			}
			return err
		},
	}
	componentFlags(cmd, &versions, &cni)
	return cmd
}

func bundleCommand() *cobra.Command {
	var versions []string
	var cni string
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Make the bundles of Kubernetes versions and print where they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			for _, version := range versions {
				path, err := fleet.Bundle(cmd.Context(), cache, version, cni, nil, toStderr())
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return nil
		},
	}
	componentFlags(cmd, &versions, &cni)
	return cmd
}

func prepareCommand() *cobra.Command {
	var versions []string
	var cni string
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make everything that labs need for Kubernetes versions, so that they start without building anything",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fleet.Prepare(cmd.Context(), versions, cni, toStderr())
		},
	}
	componentFlags(cmd, &versions, &cni)
	return cmd
}

func mirrorCommand() *cobra.Command {
	var versions []string
	var cni string
	listen := "127.0.0.1:0"
	cmd := &cobra.Command{
		Use:   "mirror",
		Short: "Serve the components as a download mirror and an image registry until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sets, err := buildSets(cmd.Context(), versions, cni)
			if err != nil {
				return err
			}
			mirror, err := components.NewMirror(sets...)
			if err != nil {
				return err
			}
			address, stop, err := mirror.Listen(cmd.Context(), listen)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "http://%s\n", address)
			<-cmd.Context().Done()
			return stop()
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "address to serve on")
	componentFlags(cmd, &versions, &cni)
	return cmd
}

func componentFlags(cmd *cobra.Command, versions *[]string, cni *string) {
	cmd.Flags().StringSliceVar(versions, "kubernetes-version", []string{components.DefaultKubernetesVersion},
		"Kubernetes version; may be repeated")
	cmd.Flags().StringVar(cni, "cni", components.DefaultCNI, "network plugin")
}

func buildSets(ctx context.Context, versions []string, cni string) ([]*components.Set, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	builder := components.NewBuilder(cache, toStderr())
	builder.CNI = cni
	var sets []*components.Set
	for _, version := range versions {
		set, err := builder.Build(ctx, version)
		if err != nil {
			return sets, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}
