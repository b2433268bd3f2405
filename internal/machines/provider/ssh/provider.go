// Package ssh is the provider of Machines on hosts that exist: it claims a Host, makes it a worker over SSH by the same
// engine, scripts and locks as the commands, changes it in place, up and down, and returns it bare.
//
// Who has a host is said twice: by the Host object, and by the host's own note, which has the Machine's UID. A host
// whose note names another Machine is refused, also where the objects have forgotten that Machine.
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
	// poll is when a run is asked about again that is under way.
	poll = 2 * time.Second
	// retryFailed is after how long a host is tried again that could not be made a Node.
	retryFailed = 5 * time.Minute
	// most is how many runs may fail in a row until a Machine that has not joined gives its host up.
	most = 3
	// defaultGivenUp is for how long a host is silent until its Machine is let go.
	defaultGivenUp = 10 * time.Minute
	// leastAsked is for how long a host is asked at least after its Machine was deleted.
	leastAsked = 30 * time.Second
)

// Provider is the pool of Hosts.
type Provider struct {
	client client.Client // reads from a cache
	live   client.Reader // asks the API server
	site   *Site
	runs   *runs
	looks  *looks

	settings *settings
	work     work // Site.carryOut
}

var (
	_ provider.Provider  = (*Provider)(nil)
	_ provider.Updater   = (*Provider)(nil)
	_ provider.Validator = (*Provider)(nil)

	_ manager.LeaderElectionRunnable = (*Provider)(nil)
)

// New is the provider of a cluster's pool. It is a Runnable of the manager, which AddTo adds.
func New(c client.Client, live client.Reader, site *Site) *Provider {
	return &Provider{
		client: c, live: live, site: site, runs: newRuns(), looks: newLooks(),
		settings: newSettings(site.workerSettings),
		work:     site.carryOut,
	}
}

// Start implements manager.Runnable: it follows the cluster's record, and returns when the context has ended, and no
// run is under way any more. A provider is started once.
func (p *Provider) Start(ctx context.Context) error {
	p.followSettings(ctx)
	p.runs.stopAll()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: runs end before another process leads.
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
		return instanceOf(h), p.leaveHost(ctx, h, m)
	}
	switch done, err := p.ensureAim(ctx, m, h, aim{what: "install"}); {
	case done:
		return instanceOf(h), p.setState(ctx, h, kubeone.HostJoined, "")
	case p.runs.failureCount(m.UID) >= most:
		return instanceOf(h), errors.Join(err, p.setState(ctx, h, kubeone.HostReturning, err.Error()))
	default:
		return instanceOf(h), err
	}
}

// leaveHost returns a host on which a Machine has failed, so that the Machine gets another one.
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
	return instanceOf(h), true, nil
}

// Change implements provider.Updater. Versions change in place, up and down; another host does not.
func (p *Provider) Change(from, to v1alpha1.MachineSpec) rollout.Change {
	a, _, err := configOf(from)
	b, _, wrong := configOf(to)
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
	if err := p.setState(ctx, h, kubeone.HostReturning, "its Machine is deleted"); err != nil {
		return err
	}
	switch done, err := p.ensureAim(ctx, m, h, aim{gone: true, what: "return"}); {
	case errors.Is(err, errSilent):
		return nil // the Host stays claimed, and the controller of Hosts returns it once it answers
	case !done:
		return err
	}
	p.runs.forgetRun(m.UID)
	return p.releaseHost(ctx, h, kubeone.HostFree, "")
}

// hostOf is the Host that the Machine has claimed; nil where it has none.
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
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// claimHost gives the Machine a host that is free: one that it selects, in the failure domain that has fewest Machines.
// The write is refused if somebody else has claimed the host since; the next call takes another one.
func (p *Provider) claimHost(ctx context.Context, m *v1alpha1.Machine) (*kubeone.Host, error) {
	config, selector, err := configOf(m.Spec)
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
			Reserved(loaded.Cluster, r, h) == nil:
			switch {
			case p.looks.isUnowned(h.UID):
				free = append(free, h)
			case p.looks.isSilent(h.UID):
				silent = append(silent, h)
			default:
				unasked++
			}
		}
	}
	if len(free) == 0 && unasked > 0 {
		return nil, &provider.Waiting{
			Reason: reasonPoolBusy, After: poll,
			Message: fmt.Sprintf("%d Hosts are free, and have not said yet whose they are", unasked),
		}
	}
	if len(free) == 0 {
		free = silent // one that answers goes first
	}
	if len(free) == 0 {
		return nil, whyNoHost(all.Items, config)
	}
	h := leastUsedHost(free, domains)
	h.Status = kubeone.HostStatus{
		State: kubeone.HostClaimed, Claim: &kubeone.HostClaim{Namespace: m.Namespace, Name: m.Name, UID: m.UID},
	}
	if err := p.client.Status().Update(ctx, h); err != nil {
		if apierrors.IsConflict(err) {
			return nil, &provider.Waiting{
				Reason: reasonPoolBusy, Message: "another Machine was faster", After: time.Second,
			}
		}
		return nil, err
	}
	return h, nil
}

// whyNoHost says why a Machine gets no host. Of the only one that it may have, it says who has that.
func whyNoHost(all []kubeone.Host, config Config) *provider.Waiting {
	w := &provider.Waiting{
		Reason:  reasonPoolEmpty,
		Message: fmt.Sprintf("none of the %d Hosts is free and is selected by this Machine", len(all)),
	}
	if config.Host == "" {
		return w
	}
	named := slices.IndexFunc(all, func(h kubeone.Host) bool { return h.Name == config.Host })
	if named < 0 {
		w.Message = "there is no Host " + config.Host + ", the only one that this Machine may have"
		return w
	}
	if c := all[named].Status.Claim; c != nil {
		w.Reason = reasonHostTaken
		w.Message = "the Host " + config.Host + ", the only one that this Machine may have, is Machine " +
			c.Namespace + "/" + c.Name + "'s"
	}
	return w
}

// leastUsedHost is the host in the failure domain with the fewest Machines.
func leastUsedHost(of []*kubeone.Host, machines map[string]int) *kubeone.Host {
	return slices.MinFunc(of, func(a, b *kubeone.Host) int {
		return cmp.Or(cmp.Compare(machines[a.Spec.FailureDomain], machines[b.Spec.FailureDomain]),
			strings.Compare(a.Name, b.Name))
	})
}

// isFree reports whether a Machine may have the host. One without our finalizer is not looked after yet: it could
// vanish under its Machine.
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

// retryDelay is for how long a host that has failed is not tried again. One that was to rest for longer than any does
// was noted by a clock that was ahead, and has rested.
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

// setState notes the state of a host that a Machine has, in one write, or none where it is so.
func (p *Provider) setState(ctx context.Context, h *kubeone.Host, state kubeone.HostState, message string) error {
	if h.Status.State == state {
		return nil
	}
	h.Status.State, h.Status.Message = state, phrase.Shorten(message, longest)
	return p.client.Status().Update(ctx, h)
}

// releaseHost ends a claim.
func (p *Provider) releaseHost(ctx context.Context, h *kubeone.Host, state kubeone.HostState, message string) error {
	h.Status = kubeone.HostStatus{State: state, Message: phrase.Shorten(message, longest)}
	p.looks.noteOwner(h.UID, kubeone.HostClaim{}) // it is bare
	if state == kubeone.HostFailed {
		p.looks.forgetHost(h.UID)
		later := metav1.NewTime(p.site.Now().Add(retryFailed))
		h.Status.RetryAfter = &later
	}
	return p.client.Status().Update(ctx, h)
}

// longest is how much of a message a Host has, in bytes.
const longest = 1024

func instanceOf(h *kubeone.Host) provider.Instance {
	return provider.Instance{
		Node: h.Name, Complete: h.Status.State == kubeone.HostJoined,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: h.Name}, {Type: corev1.NodeInternalIP, Address: NodeAddress(h)},
		},
	}
}

// NodeAddress is the address at which other Nodes reach a Host's.
func NodeAddress(h *kubeone.Host) string { return cmp.Or(h.Spec.PrivateAddress, h.Spec.Address) }

// SameAddress reports whether two Hosts' Nodes would have one address.
func SameAddress(a, b *kubeone.Host) bool {
	return nodename.Canonical(NodeAddress(a)) == nodename.Canonical(NodeAddress(b))
}
