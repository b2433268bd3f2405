package ssh

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// The marker on a host may name a Machine although the Host is free in the API. This happens if etcd was restored to a
// time before that Machine claimed the Host. Therefore each leading process checks a free host once before a Machine
// can claim it, and again after a Machine has failed on it. Hosts that become free later were reset and need no check.

// ownerChecks contains the owners in the markers of free hosts, by Host UID. Its methods may be called concurrently.
type ownerChecks struct {
	mu           sync.Mutex
	owners       map[types.UID]kubeone.HostClaim // zero for a host without an owner
	unresponsive map[types.UID]bool              // hosts that have not responded yet
}

func newOwnerChecks() *ownerChecks {
	return &ownerChecks{owners: map[types.UID]kubeone.HostClaim{}, unresponsive: map[types.UID]bool{}}
}

func (l *ownerChecks) noteOwner(h types.UID, owner kubeone.HostClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[h] = owner
	delete(l.unresponsive, h)
}

func (l *ownerChecks) noteFailure(h types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unresponsive[h] = true
}

func (l *ownerChecks) isUnresponsive(h types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unresponsive[h]
}

func (l *ownerChecks) forgetHost(h types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, h)
}

// ownerOf returns the owner in the marker of the host. Known is false until the host has responded.
func (l *ownerChecks) ownerOf(h types.UID) (owner kubeone.HostClaim, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	owner, known = l.owners[h]
	return owner, known
}

// isUnowned reports whether the host has responded and its marker names no owner.
func (l *ownerChecks) isUnowned(h types.UID) bool {
	owner, known := l.ownerOf(h)
	return known && owner.UID == ""
}

// ownerRunKey returns the key in runs for the owner check of a host.
func ownerRunKey(h *kubeone.Host) types.UID { return "look at " + h.UID }

// checkOwnerGoal is the goal of an owner check.
const checkOwnerGoal = "look"

// checkOwner reads the marker of a free host. If the marker names a Machine, the host is claimed for that Machine, or
// returned to the pool if the Machine no longer exists.
func (r hosts) checkOwner(ctx context.Context, h *kubeone.Host) (reconcile.Result, error) {
	owner, known := r.owners.ownerOf(h.UID)
	if !known {
		h := h.DeepCopy()
		check := func(ctx context.Context) error {
			loaded, _, err := r.site.Recorded(ctx)
			if err != nil {
				return err // the API failed, not the host
			}
			owner, err := r.site.readMarkerClaim(ctx, h, loaded.Cluster.Name)
			if err == nil {
				r.owners.noteOwner(h.UID, owner)
			} else {
				r.owners.noteFailure(h.UID)
			}
			return err
		}
		done, err := r.runs.ensureRun(ctx, ownerRunKey(h), checkOwnerGoal, "check its owner", check)
		if !done {
			return reconcile.Result{RequeueAfter: waitingAfter(err)}, nil
		}
		r.runs.forgetRun(ownerRunKey(h))
		if owner, known = r.owners.ownerOf(h.UID); !known {
			return reconcile.Result{RequeueAfter: poll}, nil
		}
	}
	if owner.UID == "" {
		return reconcile.Result{}, nil
	}
	return r.claimForOwner(ctx, h, owner)
}

// claimForOwner claims a free host for the Machine in its marker. If that Machine no longer exists, the host is
// returned to the pool. If the Machine has another host by now, an operator must act, because a Machine cannot return
// two hosts.
func (r hosts) claimForOwner(ctx context.Context, h *kubeone.Host, owner kubeone.HostClaim) (reconcile.Result, error) {
	r.owners.forgetHost(h.UID) // check the host again when it is free
	status := kubeone.HostStatus{Claim: &owner, State: kubeone.HostReturning, Message: "its Machine no longer exists"}
	m, err := r.machineByUID(ctx, owner)
	if err != nil {
		return reconcile.Result{}, err
	}
	if m != nil {
		other, err := r.hostOf(ctx, r.live, m)
		if err != nil {
			return reconcile.Result{}, err
		}
		status.State, status.Message = kubeone.HostClaimed, ""
		if other != nil {
			return reconcile.Result{},
				r.releaseHost(ctx, h, kubeone.HostFailed, "its marker names Machine "+m.Namespace+"/"+m.Name+
					", which already has Host "+other.Name+": delete that Machine, or reset this host manually")
		}
	}
	h.Status = status
	if err := r.client.Status().Update(ctx, h); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

// machineByUID returns the Machine with the claim's UID in any namespace; nil if there is none.
func (r hosts) machineByUID(ctx context.Context, owner kubeone.HostClaim) (*v1alpha1.Machine, error) {
	var all v1alpha1.MachineList
	if err := r.live.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].UID == owner.UID {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // none exists, which is no error
}

// waitingAfter returns the requeue delay for the result of a run: the delay in a Waiting error, otherwise retryReturn.
func waitingAfter(err error) time.Duration {
	var waiting *provider.Waiting
	if errors.As(err, &waiting) && waiting.After > 0 {
		return waiting.After
	}
	return retryReturn
}

// readMarkerClaim reads the marker of a host and returns the claim of its Machine in this cluster. The claim is zero if
// there is none. A marker of the manifest or of another cluster does not count here: such a host is rejected later,
// when a Machine claims it.
func (s *Site) readMarkerClaim(ctx context.Context, h *kubeone.Host, cluster string) (kubeone.HostClaim, error) {
	target, err := TargetOf(h)
	if err != nil {
		return kubeone.HostClaim{}, err
	}
	pool := OpenPool(s.Signer)
	defer func() { _ = pool.Close() }() // a failed close has no effect
	answer, err := probe.Run(ctx, probe.Request{
		Targets: []probe.Target{{ID: h.Name, Host: pool.Host(target)}}, CA: s.CA, Now: s.Now,
	})
	if err != nil {
		return kubeone.HostClaim{}, err
	}
	seen := answer.World.Hosts[h.Name]
	if seen.Reach != observed.Reached {
		return kubeone.HostClaim{}, errors.New(seen.Problem)
	}
	return claimInMarker(seen.Marker, cluster), nil
}

// claimInMarker returns the claim in the marker of a host. It is zero if the marker does not name a Machine in this
// cluster, or if the name is invalid and could not be looked up in the API.
func claimInMarker(m *observed.Marker, cluster string) kubeone.HostClaim {
	if m == nil || m.Cluster != cluster || m.Machine == "" || m.ID == "" {
		return kubeone.HostClaim{}
	}
	namespace, name, ok := strings.Cut(m.Machine, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return kubeone.HostClaim{}
	}
	return kubeone.HostClaim{Namespace: namespace, Name: name, UID: types.UID(m.ID)}
}
