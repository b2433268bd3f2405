package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"kubeone/internal/addons"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/record"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"strings"
	"time"
)

// createMachines makes a MachineDeployment of the manifest.
func (r *Run) createMachines(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.CreateMachinesParams](s.Intent)
	for _, d := range r.Want.MachineDeployments {
		if d.Namespace != p.Namespace || d.Name != p.Name {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(d.Object)); err != nil {
			return fmt.Errorf("MachineDeployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		return client.Create(ctx, o)
	}
	return fmt.Errorf("MachineDeployment %s/%s is not known", p.Namespace, p.Name)
}

// upgradeMachines gives a MachineDeployment another version of the kubelet. Its controllers do the rest.
func (r *Run) upgradeMachines(ctx context.Context, client API, s plan.Step) error {
	p := step.ParamsOf[step.UpgradeMachinesParams](s.Intent)
	type object = map[string]any
	patch, err := json.Marshal(object{"spec": object{"template": object{"spec": object{
		"versions": object{"kubelet": p.Kubelet},
	}}}})
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cluster.k8s.io/v1alpha1")
	o.SetKind("MachineDeployment")
	o.SetNamespace(p.Namespace)
	o.SetName(p.Name)
	return client.Merge(ctx, o, patch)
}

// removeAddon deletes what an addon consists of.
func (r *Run) removeAddon(ctx context.Context, client API, s plan.Step) error {
	name := step.ParamsOf[step.RemoveAddonParams](s.Intent).Addon
	objects, err := addons.Removable(name)
	if err != nil {
		return err
	}
	if err := client.Delete(ctx, objects); err != nil {
		return err
	}
	return client.UpdateRecord(ctx, func(record *record.Record) error {
		delete(record.Addons, name)
		record.AddRun(r.history.entry())
		return nil
	})
}

// Bundles has whole bundles, by the names that desired.BundleFile has. Who has Blobs may have them too.
type Bundles interface {
	Bundle(name string) (content io.Reader, size int64, err error)
}

// uploadBundles gives a control-plane host the bundles that the step names and the host does not have whole. Each comes
// into its place in one move, so that the controllers never read half of one.
func (r *Run) uploadBundles(ctx context.Context, h host.Host, s plan.Step) error {
	bundles := step.ParamsOf[step.ControllerFilesParams](s.Intent).Bundles
	if len(bundles) == 0 {
		return nil
	}
	const list = `umask 022
mkdir -p "$1"
chmod 0755 "$1"
stat -c '%n %s' "$1"/*.tar 2>/dev/null || :`
	res, err := h.Run(ctx, host.Cmd{Name: "look for bundles", Script: list, Args: []string{desired.BundleDir}})
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(res.Stdout)) {
		has[strings.TrimSpace(line)] = true
	}
	from, ok := r.Blobs.(Bundles)
	if !ok {
		return errors.New("nobody has bundles to upload: give them with --bundle")
	}
	for _, b := range bundles {
		path := desired.BundleDir + "/" + b.Name
		if has[fmt.Sprintf("%s %d", path, b.Size)] {
			continue
		}
		content, size, err := from.Bundle(b.Name)
		if err != nil {
			return err
		}
		if err := h.Upload(ctx, host.File{Path: path, Mode: 0o644, Size: size, Content: content}); err != nil {
			return err
		}
	}
	return nil
}

// drain empties a node. One that cannot be emptied is opened again, so that nothing is lost by having tried.
func (r *Run) drain(ctx context.Context, client API, s plan.Step) error {
	d := step.ParamsOf[step.DrainNodeParams](s.Intent)
	opts := drain.Options{
		Mark:    r.RunID,
		Timeout: time.Duration(d.TimeoutSeconds) * time.Second, Grace: d.GraceSeconds,
		Force: d.OnTimeout == step.ForceOnTimeout, MaxUnavailable: d.MaxUnavailable,
		Full: func(e *drain.FullError) {
			r.emit(Event{Type: StepOutput, Step: s.ID, Host: r.name(s.Host), Line: "waiting for room: " + e.Error()})
		},
		Evicted: func(pod string) {
			r.emit(Event{Type: StepOutput, Step: s.ID, Host: r.name(s.Host), Line: "evicted " + pod})
		},
	}
	err := client.Drain(ctx, s.Intent.NodeName, opts)
	if err == nil || errors.Is(context.Cause(ctx), locks.ErrLost) {
		return err // and whoever has the lock now decides about the node
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), UncordonTimeout)
	defer cancel()
	if r.Lock.CheckDispensable(ctx, s.Host) != nil {
		return err
	}
	if again := client.Uncordon(ctx, s.Intent.NodeName); again != nil {
		return errors.Join(err, again)
	}
	if blocked := (*drain.BlockedError)(nil); !errors.As(err, &blocked) {
		return fmt.Errorf("%w; the node is uncordoned: run kubeone apply again", err)
	}
	return fmt.Errorf("%w; the node is uncordoned. Make room for its pods or change their budgets and apply again, or "+
		"see upgrade.drain in the manifest", err)
}

// uncordonLeft opens the nodes that were drained for what then never began.
func (r *Run) uncordonLeft(ctx context.Context, drained []plan.Step) error {
	if len(drained) == 0 {
		return nil
	}
	client, err := r.client() //nolint:contextcheck // it outlives the step
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), UncordonTimeout)
	defer cancel()
	var errs []error
	for _, s := range drained {
		if denied := r.Lock.CheckDispensable(ctx, s.Host); denied != nil {
			errs = append(errs, denied)
			continue
		}
		errs = append(errs, client.Uncordon(ctx, s.Intent.NodeName))
	}
	return errors.Join(errs...)
}

// uncordon waits until the node is Ready in the wanted version, and after the upgrade of a control-plane host until
// all voters of etcd are healthy and controllers lead, and lets pods onto it again. One that an earlier run left
// cordoned does not wait for other hosts' members.
func (r *Run) uncordon(ctx context.Context, client API, s plan.Step) error {
	params := step.ParamsOf[step.UncordonParams](s.Intent)
	if err := client.WaitNodeVersion(ctx, s.Intent.NodeName, s.Intent.Version, params.Containerd); err != nil {
		return err
	}
	if after := BeforeUncordon(s.Intent); after != nil {
		if err := r.checkEtcd(ctx, after); err != nil {
			return err
		}
		if err := client.WaitLeading(ctx); err != nil {
			return err
		}
	}
	return client.Uncordon(ctx, s.Intent.NodeName)
}

// checkGuard asks etcd, as it is now, whether the step may run.
func (r *Run) checkGuard(ctx context.Context, s plan.Step) error {
	return r.checkEtcd(ctx, BeforeStep(s, r.Want, r.World))
}

// checkEtcd asks etcd until it is as the check wants it; a nil one wants nothing.
func (r *Run) checkEtcd(ctx context.Context, c *EtcdCheck) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, EtcdTimeout)
	defer cancel()
	for {
		problem, err := r.askEtcd(ctx, etcdWithout(r.Etcd, c.Without), c.Wrong)
		if problem == "" && err == nil {
			return nil
		}
		if err != nil {
			return &EtcdError{err}
		}
		if !r.pause(ctx, RetryEvery) {
			return &EtcdError{fmt.Errorf(
				"gave up after %s waiting for %s: %s; kubeone status shows its members", EtcdTimeout, c.What, problem)}
		}
	}
}

// askEtcd asks once. That nobody answers is a problem, and no error.
func (r *Run) askEtcd(
	ctx context.Context, via *etcd.Access, wrong func(observed.Etcd) (string, error),
) (problem string, err error) {
	client, err := r.Connect.etcd(ctx, via)
	if err != nil {
		return err.Error(), nil
	}
	defer func() { _ = client.Close() }()
	seen, err := client.Observe(ctx)
	if err != nil {
		return err.Error(), nil
	}
	return wrong(seen)
}
