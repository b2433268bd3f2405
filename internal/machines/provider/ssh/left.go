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

// A Host that the API calls free may have a Machine by its own note: where etcd was restored from before that Machine
// took it, nobody else knows. So each is looked at before a Machine gets it: once by each process that leads, as what
// is free later has been found bare, and again where a Machine has failed on it.

// looks are what free hosts have said of whose they are, by the UIDs of their Hosts.
type looks struct {
	mu     sync.Mutex
	at     map[types.UID]kubeone.HostClaim // zero where it is nobody's
	silent map[types.UID]bool              // those that were asked, and have not answered yet
}

func newLooks() *looks {
	return &looks{at: map[types.UID]kubeone.HostClaim{}, silent: map[types.UID]bool{}}
}

func (l *looks) noteOwner(h types.UID, whose kubeone.HostClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[h] = whose
	delete(l.silent, h)
}

func (l *looks) noteFailure(h types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent[h] = true
}

func (l *looks) isSilent(h types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent[h]
}

func (l *looks) forgetHost(h types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, h)
}

// ownerOf is whose the host is; known is false where it has not been asked.
func (l *looks) ownerOf(h types.UID) (whose kubeone.HostClaim, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whose, known = l.at[h]
	return whose, known
}

// isUnowned reports whether the host has been asked, and is nobody's.
func (l *looks) isUnowned(h types.UID) bool {
	whose, known := l.ownerOf(h)
	return known && whose.UID == ""
}

// lookOf is whose run a look at a host is.
func lookOf(h *kubeone.Host) types.UID { return "look at " + h.UID }

// look is what such a run is to bring about.
const look = "look"

// askOwner finds out whose a free host is by its own note, and gives it to the Machine that has left it, or takes it
// back.
func (r hosts) askOwner(ctx context.Context, h *kubeone.Host) (reconcile.Result, error) {
	whose, known := r.looks.ownerOf(h.UID)
	if !known {
		h := h.DeepCopy()
		done, err := r.runs.ensureRun(ctx, lookOf(h), look, "whose it is", func(ctx context.Context) error {
			loaded, _, err := r.site.Recorded(ctx)
			if err != nil {
				return err // of the API, and not of the host
			}
			whose, err := r.site.readNote(ctx, h, loaded.Cluster.Name)
			if err == nil {
				r.looks.noteOwner(h.UID, whose)
			} else {
				r.looks.noteFailure(h.UID)
			}
			return err
		})
		if !done {
			return reconcile.Result{RequeueAfter: waitingAfter(err)}, nil
		}
		r.runs.forgetRun(lookOf(h))
		if whose, known = r.looks.ownerOf(h.UID); !known {
			return reconcile.Result{RequeueAfter: poll}, nil
		}
	}
	if whose.UID == "" {
		return reconcile.Result{}, nil
	}
	return r.adoptByNote(ctx, h, whose)
}

// adoptByNote gives a host that the API calls free to the Machine that it has by its own note. A Machine that is no
// more has left it, and it is taken back. One that has another host meanwhile cannot return two: that is left to a
// person.
func (r hosts) adoptByNote(ctx context.Context, h *kubeone.Host, whose kubeone.HostClaim) (reconcile.Result, error) {
	r.looks.forgetHost(h.UID) // it is asked anew when it is free again
	status := kubeone.HostStatus{Claim: &whose, State: kubeone.HostReturning, Message: "its Machine is gone"}
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
				r.releaseHost(ctx, h, kubeone.HostFailed, "it is Machine "+m.Namespace+"/"+m.Name+
					"'s by its own note, which has the Host "+has.Name+
					": delete that Machine, or reset this host by hand")
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

// machineByUID is the Machine with that UID, wherever it is; nil where there is none.
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
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// waitingAfter is when to ask again about a run.
func waitingAfter(err error) time.Duration {
	var waiting *provider.Waiting
	if errors.As(err, &waiting) && waiting.After > 0 {
		return waiting.After
	}
	return retryReturn
}

// readNote asks a host whose it is by its own note: a Machine of this cluster, or nobody, as far as that matters here.
// What the manifest or another cluster has is refused to every Machine anyway.
func (s *Site) readNote(ctx context.Context, h *kubeone.Host, cluster string) (kubeone.HostClaim, error) {
	target, err := TargetOf(h)
	if err != nil {
		return kubeone.HostClaim{}, err
	}
	pool := OpenPool(s.Signer)
	defer func() { _ = pool.Close() }() // nothing depends on how a connection ends
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
	return claimBy(seen.Marker, cluster), nil
}

// claimBy is the claim of which a host's note tells; zero where it tells of none in this cluster, or of what no Machine
// can be called: nobody could ask the API for that one.
func claimBy(m *observed.Marker, cluster string) kubeone.HostClaim {
	if m == nil || m.Cluster != cluster || m.Machine == "" || m.ID == "" {
		return kubeone.HostClaim{}
	}
	namespace, name, ok := strings.Cut(m.Machine, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return kubeone.HostClaim{}
	}
	return kubeone.HostClaim{Namespace: namespace, Name: name, UID: types.UID(m.ID)}
}
