// Package certificates approves kubelet certificate requests.
package certificates

import (
	"context"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/retry"
)

// Approver approves kubelet requests for serving certificates and for the first client certificate, which is the
// identity of a Node.
type Approver struct {
	Kubernetes kubernetes.Interface
}

// Decision is the result for one kubelet request.
type Decision struct {
	Request  string // name of the CertificateSigningRequest
	Node     string // node that the certificate is for; "" if unknown
	Approved bool
	Reason   string // why it was not approved; "" if it was
}

// approvedSigners returns the signers whose requests this package decides.
func approvedSigners() []string {
	return []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName}
}

func requestsTo(signer string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.signerName=" + signer}
}

// ServeApprovals approves existing and new requests that pass CheckServing or CheckBootstrap, within milliseconds. It
// returns only when the context ends. It may be called before the API is available, and continues after the API
// restarts. It calls tell once for each decision, never concurrently.
func (c Approver) ServeApprovals(ctx context.Context, expected Expected, tell func(Decision)) {
	r := &reporter{tell: tell, reported: map[string]Decision{}}
	var all sync.WaitGroup
	for _, signer := range approvedSigners() {
		all.Go(func() { c.serveSigner(ctx, signer, expected, r) })
	}
	all.Wait()
}

// ApprovePending decides the existing requests once, like ServeApprovals, and returns. Requests that are already
// decided are skipped.
func (c Approver) ApprovePending(ctx context.Context, expected Expected, tell func(Decision)) error {
	for _, signer := range approvedSigners() {
		list, err := c.Kubernetes.CertificatesV1().CertificateSigningRequests().List(ctx, requestsTo(signer))
		if err != nil {
			return apicall.Wrap("list certificate requests", "", err)
		}
		for i := range list.Items {
			decision, handled, err := c.Decide(ctx, &list.Items[i], expected)
			if err != nil {
				return err
			}
			if handled {
				tell(decision)
			}
		}
	}
	return nil
}

// reporter calls tell once for each decision. It is safe for concurrent use.
type reporter struct {
	mu       sync.Mutex
	tell     func(Decision)
	reported map[string]Decision
}

func (r *reporter) reportOnce(d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported[d.Request] != d {
		r.reported[d.Request] = d
		r.tell(d)
	}
}

func (c Approver) serveSigner(ctx context.Context, signer string, expected Expected, r *reporter) {
	requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
	for ctx.Err() == nil {
		// A failure is retried and not reported, because callers wait for the node to be ready.
		_, err := apicall.Follow(ctx, requests, requestsTo(signer), func(csr *certificatesv1.CertificateSigningRequest,
			deleted bool) (bool, error) {
			if deleted {
				return false, nil
			}
			one, cancel := context.WithTimeout(ctx, apicall.OpTimeout)
			defer cancel()
			decision, handled, err := c.Decide(one, csr, expected)
			if err == nil && handled {
				r.reportOnce(decision)
			}
			return false, err
		})
		delay := apicall.PollEvery
		if err != nil {
			delay = time.Second
		}
		retry.Pause(ctx, delay)
	}
}

// Decide approves the request if it is allowed. handled is false if the request is already decided, is not a kubelet
// request that this package decides, or an error prevented the decision. If handled is true and the request is not
// allowed, d.Reason says why, and the request stays undecided.
func (c Approver) Decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	expected Expected) (d Decision, handled bool, err error) {
	if len(csr.Status.Conditions) > 0 {
		return Decision{}, false, nil
	}
	d = Decision{Request: csr.Name}
	var refusal error
	switch csr.Spec.SignerName {
	case certificatesv1.KubeletServingSignerName:
		d.Node, refusal = CheckServing(csr, expected)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		if strings.HasPrefix(csr.Spec.Username, nodeUser) {
			return Decision{}, false, nil // the controller manager decides renewals
		}
		d.Node, refusal = jointoken.Issuer(c).NodeOf(ctx, csr.Spec.Username, time.Now())
		if refusal == nil {
			refusal = CheckBootstrap(csr, d.Node, expected)
		}
		if refusal == nil { // a Node with that name may have been created after the token
			refusal = jointoken.Issuer(c).CheckNode(ctx, expected[d.Node])
		}
		if apicall.Classify(refusal) == apicall.Transient {
			return Decision{}, false, refusal
		}
	default:
		return Decision{}, false, nil
	}
	if refusal != nil {
		d.Reason = refusal.Error()
		return d, true, nil //nolint:nilerr // the refusal is part of the decision
	}
	d.Approved = true
	return d, true, c.approveRequest(ctx, csr, d.Node)
}

// approveRequest approves the request that was checked. Another request cannot be approved by mistake: the spec is
// immutable, and the update contains the resource version.
func (c Approver) approveRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	node string) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeOneNodeMatches",
		Message: "the requested identity, names and addresses belong to this node", LastUpdateTime: metav1.Now(),
	})
	return apicall.Retry(ctx, "approve the certificate of", node, func(ctx context.Context) error {
		requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
		_, err := requests.UpdateApproval(ctx, csr.Name, approved,
			metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			// another approver decided it, or it was deleted; the kubelet creates a new request if it needs one
			return nil
		}
		return err
	})
}

// AutoApprovalBinding is a ClusterRoleBinding from kubeadm. With it, the controller manager approves a client
// certificate for any Node if the requester has a join token. `kubeadm init` and `kubeadm upgrade` create it.
const AutoApprovalBinding = "kubeadm:node-autoapprove-bootstrap"

// RemoveAutoApproval deletes AutoApprovalBinding. It returns nil if the binding does not exist.
func (c Approver) RemoveAutoApproval(ctx context.Context) error {
	return apicall.Retry(ctx, "delete ClusterRoleBinding", AutoApprovalBinding, func(ctx context.Context) error {
		err := c.Kubernetes.RbacV1().ClusterRoleBindings().Delete(ctx, AutoApprovalBinding, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
