package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// onLab brings a lab up. It returns its operator and a function that removes both.
func onLab(ctx context.Context, options fleet.Options) (*operator.Operator, func(), error) {
	options.Name, options.Ephemeral, options.Log = "torture", true, printLine
	lab, err := fleet.Up(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "kubeone-torture-")
	end := func() {
		_ = os.RemoveAll(dir)
		_ = lab.Down(context.WithoutCancel(ctx)) // the next Up removes leftovers
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	o, err := operator.New(ctx, lab, dir)
	if err != nil {
		end()
		return nil, nil, err
	}
	return o, end, nil
}

// runSuccessfully runs a command that must exit with status 0.
func runSuccessfully(ctx context.Context, o *operator.Operator, args ...string) error {
	if r := o.Run(ctx, args...); r.Status != 0 {
		return fmt.Errorf("want exit status 0\n%s", r)
	}
	return ctx.Err()
}

// checkHealthy checks independently of kubeone that all members are Ready, schedulable nodes in the desired version,
// and that every control-plane host has a voting member of etcd.
func checkHealthy(ctx context.Context, o *operator.Operator) error {
	if err := o.FetchKubeconfig(ctx); err != nil {
		return err
	}
	if err := o.Runs(ctx, o.Lab.KubernetesVersion); err != nil {
		return err
	}
	members, err := o.Kube(ctx, "exec", "--namespace=kube-system", "etcd-cp-1", "--", "etcdctl",
		"--endpoints=127.0.0.1:2379",
		"--cacert=/etc/kubernetes/pki/etcd/ca.crt", "--cert=/etc/kubernetes/pki/etcd/server.crt",
		"--key=/etc/kubernetes/pki/etcd/server.key", "member", "list")
	if err != nil {
		return err
	}
	all := len(operator.Lines(members))
	voting := strings.Count(members, ", started, ") - strings.Count(members, ", true\n")
	if want := len(o.Lab.ControlPlanes()); voting != want || all != want {
		return fmt.Errorf("etcd has %d members, %d of them voting, want %d:\n%s", all, voting, want, members)
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := operator.Lines(text)
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
