package manager

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/record"
	"kubeone/internal/machines/provider/ssh"
	"kubeone/internal/manifest"
	"kubeone/internal/model/nodename"
)

// servingReconciler approves kubelet serving certificates. It accepts only names and addresses from the recorded
// manifest or the Host. It reports other requests and leaves them undecided.
type servingReconciler struct {
	client.Client
	approver certificates.Approver
	site     *ssh.Site
	events   events.EventRecorder
	log      *slog.Logger

	mu       sync.Mutex
	last     recorded
	reported map[string]string // last reported reason, by request
}

// maxReported limits how many undecided requests are reported, because a node can create any number of requests.
const maxReported = 500

// shouldReport returns true the first time that it is called with this reason for the request. It returns false for new
// requests while maxReported requests are undecided.
func (s *servingReconciler) shouldReport(request, reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.reported[request]
	if before == reason || !known && len(s.reported) == maxReported {
		return false
	}
	if s.reported == nil {
		s.reported = map[string]string{}
	}
	if s.reported[request] = reason; len(s.reported) == maxReported {
		s.log.Warn("too many undecided serving certificate requests; no more are reported", "requests", maxReported)
	}
	return true
}

// forgetRequest removes a request that was deleted or decided.
func (s *servingReconciler) forgetRequest(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reported, request)
}

// recheckDelay is the requeue delay of an undecided request. By then, the manifest may assign the name to the node.
const recheckDelay = time.Minute

func addServing(m manager.Manager, kube kubernetes.Interface, o Options) error {
	s := &servingReconciler{
		Client: m.GetClient(), approver: certificates.Approver{Kubernetes: kube}, site: &o.Site,
		events: m.GetEventRecorder("kubeone"), log: o.Log,
	}
	return builder.ControllerManagedBy(m).Named("serving-certificate").
		For(&certificatesv1.CertificateSigningRequest{},
			builder.WithPredicates(predicate.NewPredicateFuncs(isPendingServing))).
		WithOptions(controller.Options{SkipNameValidation: &o.SkipNameValidation}).
		Complete(s)
}

func isPendingServing(o client.Object) bool {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	return ok && csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(csr.Status.Conditions) == 0
}

// Reconcile implements reconcile.Reconciler.
func (s *servingReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := s.Get(ctx, request.NamespacedName, csr); err != nil {
		if apierrors.IsNotFound(err) {
			s.forgetRequest(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isPendingServing(csr) {
		s.forgetRequest(request.Name)
		return reconcile.Result{}, nil
	}
	node, _, err := certificates.ServingNames(csr)
	valid := err == nil
	expected := certificates.Expected{node: {}} // an invalid request is refused without the record
	if valid {
		if expected, err = s.expectedNames(ctx, node); err != nil {
			return reconcile.Result{}, err
		}
	}
	d, handled, err := s.approver.Decide(ctx, csr, expected)
	switch {
	case err != nil || !handled:
		return reconcile.Result{}, err
	case d.Approved:
		s.log.Info("serving certificate approved", "node", d.Node, "request", d.Request)
		return reconcile.Result{}, nil
	}
	if s.shouldReport(request.Name, d.Reason) {
		s.log.Warn("serving certificate request not approved", "node", d.Node, "request", d.Request, "reason", d.Reason)
		s.events.Eventf(csr, nil, corev1.EventTypeWarning, "LeftAlone", "Approve", "not approved: %s", d.Reason)
	}
	if !valid {
		return reconcile.Result{}, nil // a retry cannot help
	}
	return reconcile.Result{RequeueAfter: recheckDelay}, nil
}

// expectedNames returns the names that the certificate of the node may contain: those in the manifest, or the addresses
// of its Host unless they are reserved. It is empty for an unknown node.
func (s *servingReconciler) expectedNames(ctx context.Context, node string) (certificates.Expected, error) {
	r, err := s.cachedRecord(ctx)
	if err != nil {
		return nil, err
	}
	out, names := certificates.Expected{}, ssh.NamesOf(r.loaded.Cluster, r.record)
	for _, w := range r.loaded.Cluster.Hosts() {
		if ssh.NodeName(w, r.record) == node {
			out[node] = names.Claim(w, node)
			return out, nil
		}
	}
	h := &kubeone.Host{}
	if err := s.Get(ctx, client.ObjectKey{Name: node}, h); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	if h.Status.Claim == nil {
		return out, nil
	}
	if err := ssh.CheckReserved(r.loaded.Cluster, r.record, h); err != nil {
		s.log.Warn("serving certificate of a Host refused", "reason", err.Error())
		return out, nil
	}
	claim := nodename.Claim{Node: node, Known: true}
	for _, address := range []string{h.Spec.Address, h.Spec.PrivateAddress} {
		if _, err := netip.ParseAddr(address); err == nil {
			claim.Names = append(claim.Names, address)
		}
	}
	out[node] = claim
	return out, nil
}

// cachedRecord returns the cluster record, which is at most maxRecordAge old. It is cached because many requests arrive
// at the same time.
func (s *servingReconciler) cachedRecord(ctx context.Context) (recorded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.last.at) < maxRecordAge {
		return s.last, nil
	}
	loaded, r, err := s.site.Recorded(ctx)
	if err != nil {
		return recorded{}, err
	}
	s.last = recorded{loaded, r, time.Now()}
	return s.last, nil
}

const maxRecordAge = 5 * time.Second

// recorded is the cluster record together with its manifest.
type recorded struct {
	loaded manifest.Loaded
	record record.Record
	at     time.Time
}
