// Package ssh provides Machines on existing hosts. It claims a Host and makes it a worker over SSH, with the engine,
// scripts and locks of the commands. It changes versions in place, up and down, and resets hosts that it returns.
//
// The owner of a host is recorded twice: in the Host object, and in the host's marker, which has the Machine's UID. A
// host whose marker names another Machine is refused, even if no object knows that Machine.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/model/nodename"
	"kubeone/internal/text/phrase"
)

// Name is the provider's name in a Machine's cloudProvider.
const Name = "ssh"

const (
	// poll is the requeue delay while a run is in progress.
	poll = 2 * time.Second
	// retryFailed is how long a host rests after it could not become a Node.
	retryFailed = 5 * time.Minute
	// maxFailures is the number of failed runs in a row after which a Machine that has not joined returns its host.
	maxFailures = 3
	// defaultSilentTimeout is the default of Config.SilentHostTimeoutSeconds.
	defaultSilentTimeout = 10 * time.Minute
	// minDeleteWait is the minimum time to try the host after its Machine was deleted.
	minDeleteWait = 30 * time.Second
)

// Provider is the pool of Hosts.
type Provider struct {
	client client.Client // reads from a cache
	live   client.Reader // reads from the API server
	site   *Site
	runs   *runs
	owners *ownerChecks

	settings *settings
	work     work // Site.carryOut
}

var (
	_ provider.Provider  = (*Provider)(nil)
	_ provider.Updater   = (*Provider)(nil)
	_ provider.Validator = (*Provider)(nil)

	_ manager.LeaderElectionRunnable = (*Provider)(nil)
)

// New returns the provider of a cluster's pool. AddTo adds it to a manager as a Runnable.
func New(c client.Client, live client.Reader, site *Site) *Provider {
	return &Provider{
		client: c, live: live, site: site, runs: newRuns(), owners: newOwnerChecks(),
		settings: newSettings(site.workerSettings),
		work:     site.carryOut,
	}
}

// Start implements manager.Runnable. It follows the cluster's record, and returns after the context and all runs have
// ended. It must be called once only.
func (p *Provider) Start(ctx context.Context) error {
	p.followSettings(ctx)
	p.runs.stopAll()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable, so that runs end before another process leads.
func (*Provider) NeedLeaderElection() bool { return true }

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, m *v1alpha1.Machine) (provider.Instance, error) {
	h, err := p.hostOf(ctx, p.client, m)
	if err == nil && h == nil {
		h, err = p.claimHost(ctx, m)
	}
	if err != nil {
		return provider.Instance{}, err
	}
	if h.Status.State == kubeone.HostReturning {
		return newInstance(h), p.leaveHost(ctx, h, m)
	}
	switch done, err := p.ensureAim(ctx, m, h, aim{what: "install"}); {
	case done:
		return newInstance(h), p.setState(ctx, h, kubeone.HostJoined, "")
	case p.runs.failureCount(m.UID) >= maxFailures:
		return newInstance(h), errors.Join(err, p.setState(ctx, h, kubeone.HostReturning, err.Error()))
	default:
		return newInstance(h), err
	}
}

// leaveHost returns a host that could not become the Machine's Node. The Machine then gets another host.
func (p *Provider) leaveHost(ctx context.Context, h *kubeone.Host, m *v1alpha1.Machine) error {
	done, err := p.ensureAim(ctx, m, h, aim{gone: true, what: "return"})
	if !done {
		return err
	}
	if err := p.releaseHost(ctx, h, kubeone.HostFailed, h.Status.Message); err != nil {
		return err
	}
	return &provider.Waiting{
		Reason: reasonHostFailed, Message: h.Name + " was returned: " + h.Status.Message, After: poll,
	}
}

// Exists implements provider.Provider.
func (p *Provider) Exists(ctx context.Context, m *v1alpha1.Machine) (provider.Instance, bool, error) {
	h, err := p.hostOf(ctx, p.client, m)
	if err != nil || h == nil {
		return provider.Instance{}, false, err
	}
	return newInstance(h), true, nil
}

// Change implements provider.Updater. Versions change in place, up and down. Another choice of hosts needs a
// replacement.
func (p *Provider) Change(from, to v1alpha1.MachineSpec) rollout.Change {
	a, _, err := parseConfig(from)
	b, _, wrong := parseConfig(to)
	if err != nil || wrong != nil || a.Host != b.Host ||
		metav1.FormatLabelSelector(a.HostSelector) != metav1.FormatLabelSelector(b.HostSelector) {
		return rollout.Replace
	}
	return rollout.InPlace
}

// Delete implements provider.Provider.
func (p *Provider) Delete(ctx context.Context, m *v1alpha1.Machine) error {
	h, err := p.hostOf(ctx, p.live, m)
	if err != nil {
		return err
	}
	p.settings.forgetMachine(m.UID)
	if h == nil {
		p.runs.forgetRun(m.UID)
		return nil
	}
	if err := p.setState(ctx, h, kubeone.HostReturning, "its Machine is being deleted"); err != nil {
		return err
	}
	switch done, err := p.ensureAim(ctx, m, h, aim{gone: true, what: "return"}); {
	case errors.Is(err, errUnresponsive):
		return nil // the Host stays claimed until the Host controller can return it
	case !done:
		return err
	}
	p.runs.forgetRun(m.UID)
	return p.releaseHost(ctx, h, kubeone.HostFree, "")
}

// hostOf returns the Host that the Machine has claimed; nil if there is none.
func (p *Provider) hostOf(ctx context.Context, from client.Reader, m *v1alpha1.Machine) (*kubeone.Host, error) {
	var all kubeone.HostList
	if err := from.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if c := all.Items[i].Status.Claim; c != nil && c.UID == m.UID {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // none exists, which is no error
}

// claimHost claims a free host that the Machine selects, in the failure domain with the fewest Machines. If another
// Machine claimed it first, the write fails, and the next call tries another host.
func (p *Provider) claimHost(ctx context.Context, m *v1alpha1.Machine) (*kubeone.Host, error) {
	config, selector, err := parseConfig(m.Spec)
	if err != nil {
		return nil, &provider.Refused{Reason: v1alpha1.InvalidConfiguration, Message: err.Error()}
	}
	var all kubeone.HostList
	if err := p.live.List(ctx, &all); err != nil { // a cache may not have this Machine's own claim yet
		return nil, err
	}
	loaded, r, err := p.site.Recorded(ctx)
	if err != nil {
		return nil, err
	}
	var free, silent []*kubeone.Host
	unasked := 0
	domains := map[string]int{}
	for i := range all.Items {
		h := &all.Items[i]
		switch c := h.Status.Claim; {
		case c != nil && c.UID == m.UID:
			return h, nil
		case c != nil:
			domains[h.Spec.FailureDomain]++
		case p.isFree(h) && (config.Host == "" || config.Host == h.Name) && selector.Matches(labelsOf(h)) &&
			CheckReserved(loaded.Cluster, r, h) == nil:
			switch {
			case p.owners.isUnowned(h.UID):
				free = append(free, h)
			case p.owners.isUnresponsive(h.UID):
				silent = append(silent, h)
			default:
				unasked++
			}
		}
	}
	if len(free) == 0 && unasked > 0 {
		return nil, &provider.Waiting{
			Reason: reasonPoolBusy, After: poll,
			Message: fmt.Sprintf("%d free Hosts have not been checked for an owner yet", unasked),
		}
	}
	if len(free) == 0 {
		free = silent // one that answers goes first
	}
	if len(free) == 0 {
		return nil, noHostError(all.Items, config)
	}
	h := leastUsedHost(free, domains)
	h.Status = kubeone.HostStatus{
		State: kubeone.HostClaimed, Claim: &kubeone.HostClaim{Namespace: m.Namespace, Name: m.Name, UID: m.UID},
	}
	if err := p.client.Status().Update(ctx, h); err != nil {
		if apierrors.IsConflict(err) {
			return nil, &provider.Waiting{
				Reason: reasonPoolBusy, Message: "another Machine claimed the host first", After: time.Second,
			}
		}
		return nil, err
	}
	return h, nil
}

// noHostError explains why a Machine gets no host.
func noHostError(all []kubeone.Host, config Config) *provider.Waiting {
	w := &provider.Waiting{
		Reason:  reasonPoolEmpty,
		Message: fmt.Sprintf("none of the %d Hosts is free and is selected by this Machine", len(all)),
	}
	if config.Host == "" {
		return w
	}
	named := slices.IndexFunc(all, func(h kubeone.Host) bool { return h.Name == config.Host })
	if named < 0 {
		w.Message = "the Machine requires Host " + config.Host + ", which does not exist"
		return w
	}
	if c := all[named].Status.Claim; c != nil {
		w.Reason = reasonHostTaken
		w.Message = "the Machine requires Host " + config.Host + ", which belongs to Machine " +
			c.Namespace + "/" + c.Name
	}
	return w
}

// leastUsedHost returns the host in the failure domain with the fewest Machines.
func leastUsedHost(of []*kubeone.Host, machines map[string]int) *kubeone.Host {
	return slices.MinFunc(of, func(a, b *kubeone.Host) int {
		return cmp.Or(cmp.Compare(machines[a.Spec.FailureDomain], machines[b.Spec.FailureDomain]),
			strings.Compare(a.Name, b.Name))
	})
}

// isFree reports whether a Machine may claim the host. A host without HostFinalizer could be deleted under its Machine.
func (p *Provider) isFree(h *kubeone.Host) bool {
	if h.DeletionTimestamp != nil || !controllerutil.ContainsFinalizer(h, HostFinalizer) ||
		controllerutil.ContainsFinalizer(h, RemovalFinalizer) {
		return false
	}
	switch h.Status.State {
	case kubeone.HostFree, "":
		return true
	case kubeone.HostFailed:
		return retryDelay(h, p.site.Now()) == 0
	}
	return false
}

// retryDelay returns how long a failed host still rests. RetryAfter more than retryFailed ahead was written by a wrong
// clock and counts as over.
func retryDelay(h *kubeone.Host, now time.Time) time.Duration {
	if h.Status.RetryAfter == nil {
		return 0
	}
	left := h.Status.RetryAfter.Sub(now)
	if left < 0 || left > retryFailed {
		return 0
	}
	return left
}

// setState writes the state of a claimed host if it changed.
func (p *Provider) setState(ctx context.Context, h *kubeone.Host, state kubeone.HostState, message string) error {
	if h.Status.State == state {
		return nil
	}
	h.Status.State, h.Status.Message = state, phrase.Shorten(message, maxMessageLength)
	return p.client.Status().Update(ctx, h)
}

// releaseHost ends the claim of a bare host.
func (p *Provider) releaseHost(ctx context.Context, h *kubeone.Host, state kubeone.HostState, message string) error {
	h.Status = kubeone.HostStatus{State: state, Message: phrase.Shorten(message, maxMessageLength)}
	p.owners.noteOwner(h.UID, kubeone.HostClaim{})
	if state == kubeone.HostFailed {
		p.owners.forgetHost(h.UID)
		later := metav1.NewTime(p.site.Now().Add(retryFailed))
		h.Status.RetryAfter = &later
	}
	return p.client.Status().Update(ctx, h)
}

// longest limits a Host's message, in bytes.
const maxMessageLength = 1024

func newInstance(h *kubeone.Host) provider.Instance {
	return provider.Instance{
		Node: h.Name, Complete: h.Status.State == kubeone.HostJoined,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: h.Name}, {Type: corev1.NodeInternalIP, Address: NodeAddress(h)},
		},
	}
}

// NodeAddress returns the address that other Nodes use for the Host.
func NodeAddress(h *kubeone.Host) string { return cmp.Or(h.Spec.PrivateAddress, h.Spec.Address) }

// SameAddress reports whether the Nodes of two Hosts would have the same address.
func SameAddress(a, b *kubeone.Host) bool {
	return nodename.Canonical(NodeAddress(a)) == nodename.Canonical(NodeAddress(b))
}
