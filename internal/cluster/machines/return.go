package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/host"
	"kubeone/internal/retry"
	"kubeone/internal/text/phrase"
)

// Returner has the hosts of Machines returned.
type Returner struct {
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
}

const (
	// pollEvery is how often it is looked how far the controllers are: a host takes half a minute at least.
	pollEvery = 2 * time.Second
	// patience is how long the controllers may be silent, and how long a host may keep the claim of a Machine that is
	// gone: they take over from one another within 15 seconds, and try such a host every five.
	patience = time.Minute
	// longest is how much of a Host's message is repeated, in bytes: it may have words of the host in it.
	longest = 200
	// listed is how many objects one request asks for.
	listed = 500
)

// DeleteMachines deletes all MachineDeployments, MachineSets and Machines, and returns when none is left that nobody
// has deleted. They go as their hosts are returned, which the controllers do.
func (r Returner) DeleteMachines(ctx context.Context) error {
	return apicall.Retry(ctx, "delete the Machines", "", r.deleteAll)
}

// deleteAll goes from the owner to the owned, so that nobody makes again what is deleted, until it finds nothing more.
func (r Returner) deleteAll(ctx context.Context) error {
	for {
		deleted := 0
		for _, kind := range []schema.GroupVersionResource{Deployments(), Sets(), Machines()} {
			all, err := r.listObjects(ctx, kind)
			if err != nil {
				return err
			}
			for i := range all {
				if all[i].GetDeletionTimestamp() != nil {
					continue
				}
				if err := r.deleteObject(ctx, kind, &all[i]); err != nil {
					return err
				}
				deleted++
			}
		}
		if deleted == 0 {
			return nil
		}
	}
}

func (r Returner) deleteObject(ctx context.Context, kind schema.GroupVersionResource,
	o *unstructured.Unstructured) error {
	policy, uid := metav1.DeletePropagationBackground, o.GetUID()
	err := r.Dynamic.Resource(kind).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// listObjects are all objects of a kind; none where the API does not have it.
func (r Returner) listObjects(ctx context.Context, kind schema.GroupVersionResource) ([]unstructured.Unstructured,
	error) {
	var out []unstructured.Unstructured
	options := metav1.ListOptions{Limit: listed}
	for {
		page, err := r.Dynamic.Resource(kind).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

// pool is what is left of it.
type pool struct {
	names   []string // of Machines
	hosts   []string // that are not returned, each with what it waits for
	orphans bool     // no Machine is left, and hosts are
	renewed string   // when who has the controllers' Lease renewed it
}

// WaitHostsFree waits until no Machine is left, and no host has one. It gives up after that time, and sooner where
// nothing more will come of it: when the controllers are not heard of any more, or when the Machines are gone and hosts
// are left that do not answer. The error names who is left. Machines that somebody makes meanwhile are deleted too.
func (r Returner) WaitHostsFree(ctx context.Context, within time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	orphaned, heard := began, began
	var last pool
	for {
		now, err := r.deleteAndList(limit)
		switch {
		case err != nil && limit.Err() == nil && apicall.Classify(err) != apicall.Transient:
			return apicall.Wrap("wait for the hosts of Machines", "", err)
		case err != nil: // as long as the API is silent, nobody is to blame
			orphaned, heard = time.Now(), time.Now()
		case len(now.names) == 0 && len(now.hosts) == 0:
			return nil
		default:
			if !now.orphans {
				orphaned = time.Now()
			}
			if now.renewed != last.renewed {
				heard = time.Now()
			}
			last = now
		}
		switch {
		case time.Since(heard) > patience:
			return last.failedError("the controllers are not heard of any more: start kubeone controller again")
		case time.Since(orphaned) > patience:
			return last.failedError("their Machines are gone, and these hosts do not answer")
		case !retry.Pause(limit, pollEvery):
			if ctx.Err() != nil {
				return apicall.Ended(ctx, "wait for the hosts of Machines", "", strings.Join(last.remaining(), ", "))
			}
			return last.failedError(fmt.Sprintf("they were not returned within %s", within))
		}
	}
}

// deleteAndList deletes what nobody has deleted yet, and says what is left.
func (r Returner) deleteAndList(ctx context.Context) (pool, error) {
	if err := r.deleteAll(ctx); err != nil {
		return pool{}, err
	}
	var p pool
	hosts, err := r.listObjects(ctx, Hosts()) // before the Machines: one that goes in between has freed its host first
	if err != nil {
		return p, err
	}
	machines, err := r.listObjects(ctx, Machines())
	if err != nil {
		return p, err
	}
	for i := range machines {
		p.names = append(p.names, machines[i].GetNamespace()+"/"+machines[i].GetName())
	}
	for i := range hosts {
		claim, _, err := unstructured.NestedStringMap(hosts[i].Object, "status", "claim")
		if err != nil || len(claim) == 0 {
			continue
		}
		text := fmt.Sprintf("%s (Machine %s/%s", hosts[i].GetName(), claim["namespace"], claim["name"])
		if said, _, err := unstructured.NestedString(hosts[i].Object, "status", "message"); err == nil && said != "" {
			text += ": " + phrase.Shorten(said, longest)
		}
		p.hosts = append(p.hosts, strings.Join(strings.Fields(host.Printed(text)), " ")+")")
	}
	p.orphans = len(machines) == 0
	lease, err := r.Kubernetes.CoordinationV1().Leases(Namespace).Get(ctx, Lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return p, err
	case lease.Spec.RenewTime != nil && lease.Spec.HolderIdentity != nil:
		p.renewed = *lease.Spec.HolderIdentity + " " + lease.Spec.RenewTime.String()
	}
	return p, nil
}

// remaining are the hosts that are not returned; where there is none, the Machines that have not gone.
func (p pool) remaining() []string {
	if len(p.hosts) > 0 {
		return p.hosts
	}
	var out []string
	for _, name := range p.names {
		out = append(out, "Machine "+name)
	}
	return out
}

func (p pool) failedError(why string) error {
	who := "what is left of the Machines could not be read"
	if left := p.remaining(); len(left) > 0 {
		who = apicall.Names(left)
	}
	return &apicall.Error{
		Op: "wait for the hosts of Machines", Class: apicall.Operator,
		Err: errors.New(who + ": " + why + ". The Machines are deleted, and no host of the manifest has been " +
			"touched. kubeone status shows them; kubeone reset --abandon-machines goes on and leaves these hosts as " +
			"they are"),
	}
}
