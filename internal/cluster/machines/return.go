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

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/host"
	"kubeone/internal/retry"
	"kubeone/internal/text/phrase"
)

// Returner deletes Machines and waits until their hosts are returned to the pool.
type Returner struct {
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
}

const (
	// pollEvery is the interval between checks. Returning a host takes at least half a minute.
	pollEvery = 2 * time.Second
	// maxSilence is how long the controllers may fail to renew their Lease, and how long a host may stay claimed after
	// its Machine is deleted. Another controller process takes over within 15 seconds, and retries such a host every
	// five seconds.
	maxSilence = time.Minute
	// maxMessageLength limits the quoted part of the message of a Host, in bytes. The message may contain text from the
	// host.
	maxMessageLength = 200
	// pageSize is the page size of lists.
	pageSize = 500
)

// DeleteMachines deletes all MachineDeployments, MachineSets and Machines of the pool. It does not wait for their
// finalizers: the controllers remove these when they have returned the hosts.
func (r Returner) DeleteMachines(ctx context.Context) error {
	return apicall.Retry(ctx, "delete the Machines", "", r.deleteAll)
}

// deleteAll deletes owners before the objects that they own, so that no controller recreates them. It repeats this
// until there is nothing left to delete.
func (r Returner) deleteAll(ctx context.Context) error {
	for {
		deleted := 0
		for _, kind := range []schema.GroupVersionResource{Deployments(), Sets(), Machines()} {
			all, err := r.listObjects(ctx, kind)
			if err != nil {
				return err
			}
			for i := range all {
				if all[i].GetDeletionTimestamp() != nil || isStatic(&all[i]) {
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

// isStatic reports whether a Machine is a host of the cluster's own description, which does not return to a pool.
func isStatic(o *unstructured.Unstructured) bool {
	provider, _, _ := unstructured.NestedString(o.Object, "spec", "providerSpec", "value", "cloudProvider")
	return provider == v1alpha1.ProviderStatic
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

// listObjects returns all objects of a kind. It returns none if the API does not serve the kind.
func (r Returner) listObjects(ctx context.Context, kind schema.GroupVersionResource) ([]unstructured.Unstructured,
	error) {
	var out []unstructured.Unstructured
	options := metav1.ListOptions{Limit: pageSize}
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

// leftovers contains the Machines that still exist and the hosts that are still claimed.
type leftovers struct {
	names   []string // remaining Machines
	hosts   []string // claimed hosts, each with its Machine and message
	orphans bool     // no Machine remains, but some hosts may
	renewed string   // when the controllers' Lease was last renewed
}

// WaitHostsFree waits until no Machine exists and no host is claimed. It also deletes Machines that are created
// meanwhile. It gives up after the timeout, or earlier if the controllers stop renewing their Lease, or if only
// unresponsive hosts of deleted Machines remain. The error names the remaining hosts or Machines.
func (r Returner) WaitHostsFree(ctx context.Context, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	lastMachineSeen, renewedAt := started, started
	var last leftovers
	for {
		now, err := r.deleteAndList(limited)
		switch {
		case err != nil && limited.Err() == nil && apicall.Classify(err) != apicall.Transient:
			return apicall.Wrap("wait for Machine hosts", "", err)
		case err != nil: // without the API, the state of controllers and hosts is unknown
			lastMachineSeen, renewedAt = time.Now(), time.Now()
		case len(now.names) == 0 && len(now.hosts) == 0:
			return nil
		default:
			if !now.orphans {
				lastMachineSeen = time.Now()
			}
			if now.renewed != last.renewed {
				renewedAt = time.Now()
			}
			last = now
		}
		switch {
		case time.Since(renewedAt) > maxSilence:
			return last.failedError("the controllers do not respond: restart kubeone controller")
		case time.Since(lastMachineSeen) > maxSilence:
			return last.failedError("their Machines are deleted, but these hosts do not respond")
		case !retry.Pause(limited, pollEvery):
			if ctx.Err() != nil {
				return apicall.EndedError(ctx, "wait for Machine hosts", "", strings.Join(last.remaining(), ", "))
			}
			return last.failedError(fmt.Sprintf("they were not returned within %s", timeout))
		}
	}
}

// deleteAndList deletes everything that is not being deleted yet, and returns what remains.
func (r Returner) deleteAndList(ctx context.Context) (leftovers, error) {
	if err := r.deleteAll(ctx); err != nil {
		return leftovers{}, err
	}
	var p leftovers
	hosts, err := r.listObjects(ctx, Hosts()) // list Hosts first: a Machine releases its host before it is deleted
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
		if message, _, err := unstructured.NestedString(hosts[i].Object, "status", "message"); err == nil &&
			message != "" {
			text += ": " + phrase.Shorten(message, maxMessageLength)
		}
		p.hosts = append(p.hosts, strings.Join(strings.Fields(host.Printable(text)), " ")+")")
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

// remaining returns the hosts that are still claimed. If there are none, it returns the Machines that still exist.
func (p leftovers) remaining() []string {
	if len(p.hosts) > 0 {
		return p.hosts
	}
	var out []string
	for _, name := range p.names {
		out = append(out, "Machine "+name)
	}
	return out
}

func (p leftovers) failedError(why string) error {
	who := "the remaining Machines could not be read"
	if left := p.remaining(); len(left) > 0 {
		who = apicall.JoinNames(left)
	}
	return &apicall.Error{
		Op: "wait for Machine hosts", Class: apicall.Operator,
		Err: errors.New(who + ": " + why + ". The Machines are deleted, and no host in the manifest has been " +
			"changed. kubeone status shows them; kubeone reset --abandon-machines continues and leaves these hosts as " +
			"they are"),
	}
}
