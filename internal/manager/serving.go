package manager

import (
	"context"
	"log/slog"
	"strings"
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
	"kubeone/internal/provider/ssh"
)

// serving approves what kubelets ask for as servers, of Machines' hosts and of the manifest's, by the names and
// addresses that the Host or the recorded manifest gives them. Every other request is left alone, and reported.
type serving struct {
	client.Client
	approver certificates.Approver
	site     *ssh.Site
	events   events.EventRecorder
	log      *slog.Logger
}

// again is when a request is looked at again that was left alone: the manifest may give the node that name by then.
const again = time.Minute

// addServing adds the controller of serving certificates to a manager.
func addServing(m manager.Manager, kube kubernetes.Interface, o Options) error {
	s := &serving{
		Client: m.GetClient(), approver: certificates.Approver{Kubernetes: kube}, site: &o.Site,
		events: m.GetEventRecorder("kubeone"), log: o.Log,
	}
	return builder.ControllerManagedBy(m).Named("serving-certificate").
		For(&certificatesv1.CertificateSigningRequest{},
			builder.WithPredicates(predicate.NewPredicateFuncs(isServing))).
		WithOptions(controller.Options{SkipNameValidation: &o.SkipNameValidation}).
		Complete(s)
}

func isServing(o client.Object) bool {
	csr, ok := o.(*certificatesv1.CertificateSigningRequest)
	return ok && csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(csr.Status.Conditions) == 0
}

// Reconcile implements reconcile.Reconciler.
func (s *serving) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := s.Get(ctx, request.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isServing(csr) {
		return reconcile.Result{}, nil
	}
	expected, err := s.expected(ctx, strings.TrimPrefix(csr.Spec.Username, "system:node:"))
	if err != nil {
		return reconcile.Result{}, err
	}
	d, open, err := s.approver.Decide(ctx, csr, expected)
	switch {
	case err != nil || !open:
		return reconcile.Result{}, err
	case d.Approved:
		s.log.Info("serving certificate approved", "node", d.Node, "request", d.Request)
		return reconcile.Result{}, nil
	}
	s.log.Warn("serving certificate left alone", "node", d.Node, "request", d.Request, "reason", d.Reason)
	s.events.Eventf(csr, nil, corev1.EventTypeWarning, "LeftAlone", "Approve", "left alone: %s", d.Reason)
	return reconcile.Result{RequeueAfter: again}, nil
}

// expected are the names of the one node: its Host's, or the manifest's. None is there for another node.
func (s *serving) expected(ctx context.Context, node string) (certificates.Expected, error) {
	out := certificates.Expected{}
	h := &kubeone.Host{}
	switch err := s.Get(ctx, client.ObjectKey{Name: node}, h); {
	case err == nil && h.Status.Claim != nil:
		out[node] = []string{h.Spec.Address}
		if h.Spec.PrivateAddress != "" {
			out[node] = append(out[node], h.Spec.PrivateAddress)
		}
		return out, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	}
	loaded, record, err := s.site.Recorded(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range loaded.Cluster.Hosts() {
		name := record.Nodes[w.ID]
		if name == "" {
			name = w.Hostname
		}
		if name == node {
			out[node] = w.Names()
		}
	}
	return out, nil
}
