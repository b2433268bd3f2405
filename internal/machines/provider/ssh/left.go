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

// A Host that is free in the API may still name a Machine in its marker, if etcd was restored from a time before that
// Machine claimed it. So each leading process checks a free host once before a Machine gets it, and again after a
// Machine has failed on it. Hosts that become free later have been found bare.

// ownerChecks has the owners that the markers of free hosts name, by Host UID. Its methods may be called concurrently.
type ownerChecks struct {
	mu           sync.Mutex
	owners       map[types.UID]kubeone.HostClaim // zero for a host without an owner
	unresponsive map[types.UID]bool              // hosts that have not answered yet
}

func newOwnerChecks() *ownerChecks {
	return &ownerChecks{owners: map[types.UID]kubeone.HostClaim{}, unresponsive: map[types.UID]bool{}}
}

func (l *ownerChecks) noteOwner(h types.UID, whose kubeone.HostClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[h] = whose
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

// ownerOf returns the host's owner; known is false until the host has answered.
func (l *ownerChecks) ownerOf(h types.UID) (whose kubeone.HostClaim, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whose, known = l.owners[h]
	return whose, known
}

// isUnowned reports whether the host has answered and has no owner.
func (l *ownerChecks) isUnowned(h types.UID) bool {
	whose, known := l.ownerOf(h)
	return known && whose.UID == ""
}

// ownerRunKey returns the key in runs of the owner check of a host.
func ownerRunKey(h *kubeone.Host) types.UID { return "look at " + h.UID }

// checkOwnerGoal is the goal of an owner check.
const checkOwnerGoal = "look"

// checkOwner reads the marker of a free host. If it names a Machine, the host is given back to it, or taken back.
func (r hosts) checkOwner(ctx context.Context, h *kubeone.Host) (reconcile.Result, error) {
	whose, known := r.owners.ownerOf(h.UID)
	if !known {
		h := h.DeepCopy()
		check := func(ctx context.Context) error {
			loaded, _, err := r.site.Recorded(ctx)
			if err != nil {
				return err // an error of the API, not of the host
			}
			whose, err := r.site.readMarkerClaim(ctx, h, loaded.Cluster.Name)
			if err == nil {
				r.owners.noteOwner(h.UID, whose)
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
		if whose, known = r.owners.ownerOf(h.UID); !known {
			return reconcile.Result{RequeueAfter: poll}, nil
		}
	}
	if whose.UID == "" {
		return reconcile.Result{}, nil
	}
	return r.claimForOwner(ctx, h, whose)
}

// claimForOwner gives a free host to the Machine in its marker. If that Machine no longer exists, the host is taken
// back. If it has another host by now, an operator must act: a Machine cannot return two.
func (r hosts) claimForOwner(ctx context.Context, h *kubeone.Host, whose kubeone.HostClaim) (reconcile.Result, error) {
	r.owners.forgetHost(h.UID) // check again when it is free
	status := kubeone.HostStatus{Claim: &whose, State: kubeone.HostReturning, Message: "its Machine no longer exists"}
	m, err := r.machineByUID(ctx, whose)
	if err != nil {
		return reconcile.Result{}, err
	}
	if m != nil {
		has, err := r.hostOf(ctx, r.live, m)
		if err != nil {
			return reconcile.Result{}, err
		}
		status.State, status.Message = kubeone.HostClaimed, ""
		if has != nil {
			return reconcile.Result{},
				r.releaseHost(ctx, h, kubeone.HostFailed, "its marker names Machine "+m.Namespace+"/"+m.Name+
					", which already has Host "+has.Name+": delete that Machine, or reset this host by hand")
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
func (r hosts) machineByUID(ctx context.Context, whose kubeone.HostClaim) (*v1alpha1.Machine, error) {
	var all v1alpha1.MachineList
	if err := r.live.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].UID == whose.UID {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // none exists, which is no error
}

// waitingAfter returns the requeue delay for a run's result.
func waitingAfter(err error) time.Duration {
	var waiting *provider.Waiting
	if errors.As(err, &waiting) && waiting.After > 0 {
		return waiting.After
	}
	return retryReturn
}

// readMarkerClaim reads a host's marker and returns the claim of its Machine in this cluster, or zero. A host of the
// manifest or of another cluster is refused to every Machine later.
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

// claimInMarker returns the claim in a host's marker. It is zero if the marker names no Machine of this cluster, or an
// invalid name, which the API server could not look up.
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
