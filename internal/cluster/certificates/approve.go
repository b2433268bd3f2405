// Package certificates approves certificate requests of kubelets.
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

// Approver approves kubelets' requests for serving certificates, and for the first client certificate, which is a
// Node's identity.
type Approver struct {
	Kubernetes kubernetes.Interface
}

// Decision is the result for one request of a kubelet.
type Decision struct {
	Request  string // the CertificateSigningRequest's name
	Node     string // the node of the certificate; "" if unknown
	Approved bool
	Reason   string // why it was not approved; "" if it was
}

// approvedSigners returns the signers whose requests are decided here.
func approvedSigners() []string {
	return []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName}
}

func requestsTo(signer string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.signerName=" + signer}
}

// ServeApprovals approves existing and new requests that CheckServing or CheckBootstrap allows, within milliseconds. It
// returns only when the context ends. It may start before the API answers, and survives restarts of the API. It calls
// tell once for each decision, never concurrently.
func (c Approver) ServeApprovals(ctx context.Context, expected Expected, tell func(Decision)) {
	r := &reporter{tell: tell, reported: map[string]Decision{}}
	var all sync.WaitGroup
	for _, signer := range approvedSigners() {
		all.Go(func() { c.serveSigner(ctx, signer, expected, r) })
	}
	all.Wait()
}

// ApprovePending does the same once, for existing requests.
func (c Approver) ApprovePending(ctx context.Context, expected Expected, tell func(Decision)) error {
	for _, signer := range approvedSigners() {
		list, err := c.Kubernetes.CertificatesV1().CertificateSigningRequests().List(ctx, requestsTo(signer))
		if err != nil {
			return apicall.Wrap("list certificate requests", "", err)
		}
		for i := range list.Items {
			decision, open, err := c.Decide(ctx, &list.Items[i], expected)
			if err != nil {
				return err
			}
			if open {
				tell(decision)
			}
		}
	}
	return nil
}

// reporter reports each decision once.
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
		// A failure is only retried: callers wait for the node to be ready, not for this.
		_, err := apicall.Follow(ctx, requests, requestsTo(signer), func(csr *certificatesv1.CertificateSigningRequest,
			deleted bool) (bool, error) {
			if deleted {
				return false, nil
			}
			one, cancel := context.WithTimeout(ctx, apicall.OpTimeout)
			defer cancel()
			decision, open, err := c.Decide(one, csr, expected)
			if err == nil && open {
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

// Decide approves one request if it is allowed. Open is false if it is already decided or of another kind.
func (c Approver) Decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	expected Expected) (d Decision, open bool, err error) {
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
			return Decision{}, false, nil // renewals are decided by the controller manager
		}
		d.Node, refusal = jointoken.Issuer(c).NodeOf(ctx, csr.Spec.Username, time.Now())
		if refusal == nil {
			refusal = CheckBootstrap(csr, d.Node, expected)
		}
		if refusal == nil { // a Node of that name may have been created after the token
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
		return d, true, nil //nolint:nilerr // the refusal is the decision
	}
	d.Approved = true
	return d, true, c.approveRequest(ctx, csr, d.Node)
}

// approveRequest approves the request that was checked: its spec is immutable, and the update names its version.
func (c Approver) approveRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	node string) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeOneNodeMatches",
		Message: "the requested identity, names and addresses are this node's", LastUpdateTime: metav1.Now(),
	})
	return apicall.Retry(ctx, "approve the certificate of", node, func(ctx context.Context) error {
		requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
		_, err := requests.UpdateApproval(ctx, csr.Name, approved,
			metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // decided by another approver, or deleted; the kubelet makes a new request if it needs one
		}
		return err
	})
}

// AutoApprovalBinding is kubeadm's ClusterRoleBinding that lets the controller manager approve the certificate of any
// Node for any bearer of a join token. `kubeadm init` and `kubeadm upgrade` create it.
const AutoApprovalBinding = "kubeadm:node-autoapprove-bootstrap"

// RemoveAutoApproval deletes AutoApprovalBinding. It returns nil if there is none.
func (c Approver) RemoveAutoApproval(ctx context.Context) error {
	return apicall.Retry(ctx, "delete ClusterRoleBinding", AutoApprovalBinding, func(ctx context.Context) error {
		err := c.Kubernetes.RbacV1().ClusterRoleBindings().Delete(ctx, AutoApprovalBinding, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
