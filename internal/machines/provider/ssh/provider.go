// Package ssh provides Machines on existing hosts. It claims a Host and makes it a worker over SSH, with the same
// engine, scripts and locks as the commands. It upgrades and downgrades versions in place, and resets the hosts that it
// returns.
//
// The owner of a host is recorded in two places: in the Host object, and in the marker on the host, which contains the
// UID of the Machine. A host whose marker names another Machine is rejected, even if that Machine is not in the API.
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
	// retryFailed is how long a host is not used after it could not become a Node.
	retryFailed = 5 * time.Minute
	// maxFailures is the number of consecutive failed runs after which a Machine that has not joined returns its host.
	maxFailures = 3
	// defaultSilentTimeout is the default of Config.SilentHostTimeoutSeconds.
	defaultSilentTimeout = 10 * time.Minute
	// minDeleteWait is the minimum time for which the host is tried after its Machine was deleted.
	minDeleteWait = 30 * time.Second
)

// Provider provides Machines on the Hosts in the pool.
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

// New returns the provider for the host pool of a cluster. AddTo adds it to a manager as a Runnable.
func New(c client.Client, live client.Reader, site *Site) *Provider {
	return &Provider{
		client: c, live: live, site: site, runs: newRuns(), owners: newOwnerChecks(),
		settings: newSettings(site.workerSettings),
		work:     site.carryOut,
	}
}

// Start implements manager.Runnable. It follows changes of the cluster record, and returns after the context and all
// runs have ended. It must be called only once.
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

// leaveHost resets a host that could not become the Node of the Machine, and returns it to the pool. The Machine then
// gets another host.
func (p *Provider) leaveHost(ctx context.Context, h *kubeone.Host, m *v1alpha1.Machine) error {
	done, err := p.ensureAim(ctx, m, h, aim{reset: true, what: "return"})
	if !done {
		return err
	}
	if err := p.releaseHost(ctx, h, kubeone.HostFailed, h.Status.Message); err != nil {
		return err
	}
	return &provider.Waiting{
		Reason: reasonHostFailed, Message: "Host " + h.Name + " failed and was returned to the pool: " +
			h.Status.Message,
		After: poll,
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

// Change implements provider.Updater. Versions are changed in place. A different selection of hosts requires a
// replacement.
func (p *Provider) Change(from, to v1alpha1.MachineSpec) rollout.Change {
	a, _, err := parseConfig(from)
	b, _, otherErr := parseConfig(to)
	if err != nil || otherErr != nil || a.Host != b.Host ||
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
	switch done, err := p.ensureAim(ctx, m, h, aim{reset: true, what: "return"}); {
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

// claimHost claims a free host that matches the Machine, in the failure domain with the fewest Machines. If another
// Machine claims the host first, the write fails, and the next call tries another host.
func (p *Provider) claimHost(ctx context.Context, m *v1alpha1.Machine) (*kubeone.Host, error) {
	config, selector, err := parseConfig(m.Spec)
	if err != nil {
		return nil, &provider.Refused{Reason: v1alpha1.InvalidConfiguration, Message: err.Error()}
	}
	var all kubeone.HostList
	if err := p.live.List(ctx, &all); err != nil { // the cache may not show an earlier claim of this Machine yet
		return nil, err
	}
	loaded, r, err := p.site.Recorded(ctx)
	if err != nil {
		return nil, err
	}
	var free, unresponsive []*kubeone.Host
	unchecked := 0
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
				unresponsive = append(unresponsive, h)
			default:
				unchecked++
			}
		}
	}
	if len(free) == 0 && unchecked > 0 {
		return nil, &provider.Waiting{
			Reason: reasonPoolBusy, After: poll,
			Message: fmt.Sprintf("%d free Hosts have not been checked for an owner yet", unchecked),
		}
	}
	if len(free) == 0 {
		free = unresponsive // used only if no other host is free
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

// noHostError returns the error that explains why there is no host for the Machine.
func noHostError(all []kubeone.Host, config Config) *provider.Waiting {
	w := &provider.Waiting{
		Reason:  reasonPoolEmpty,
		Message: fmt.Sprintf("none of the %d Hosts is free and matches this Machine", len(all)),
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

// isFree reports whether a Machine may claim the host. A host without HostFinalizer is not free, because it could be
// deleted while a Machine uses it.
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

// retryDelay returns how long a failed host must not be used yet. If RetryAfter is more than retryFailed in the future,
// the clock was wrong when it was written, and the delay is 0.
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

// releaseHost releases the claim on a host that has been reset.
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

// maxMessageLength limits the message of a Host, in bytes.
const maxMessageLength = 1024

func newInstance(h *kubeone.Host) provider.Instance {
	return provider.Instance{
		Node: h.Name, Complete: h.Status.State == kubeone.HostJoined,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: h.Name}, {Type: corev1.NodeInternalIP, Address: NodeAddress(h)},
		},
	}
}

// NodeAddress returns the address at which other Nodes reach the Host.
func NodeAddress(h *kubeone.Host) string { return cmp.Or(h.Spec.PrivateAddress, h.Spec.Address) }

// SameAddress reports whether the Nodes of two Hosts would have the same address.
func SameAddress(a, b *kubeone.Host) bool {
	return nodename.Canonical(NodeAddress(a)) == nodename.Canonical(NodeAddress(b))
}
