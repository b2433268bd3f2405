// Package certificates approves the certificates that kubelets ask for.
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

// Approver approves requests of kubelets: for serving certificates, and for the first client certificate, by which a
// Node is known.
type Approver struct {
	Kubernetes kubernetes.Interface
}

// Decision is what was done about one request of a kubelet's.
type Decision struct {
	Request  string // the CertificateSigningRequest's name
	Node     string // whose certificate it is to be, as far as that is known; "" when it is not
	Approved bool
	Reason   string // why it was left alone; "" when approved
}

// approvedSigners are those whose requests we look at.
func approvedSigners() []string {
	return []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName}
}

func requestsTo(signer string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.signerName=" + signer}
}

// ServeApprovals approves the requests that CheckServing and CheckBootstrap allow, those that there are and those that
// come, within milliseconds of their appearing, until the context ends, which is its only end. It may begin before the
// API answers and outlives the API's restarts. Each decision is told once; tell is not called concurrently.
func (c Approver) ServeApprovals(ctx context.Context, expected Expected, tell func(Decision)) {
	r := &reporter{tell: tell, told: map[string]Decision{}}
	var all sync.WaitGroup
	for _, signer := range approvedSigners() {
		all.Go(func() { c.serveSigner(ctx, signer, expected, r) })
	}
	all.Wait()
}

// ApprovePending does the same once, for the requests that there are.
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

// reporter tells of each decision once.
type reporter struct {
	mu   sync.Mutex
	tell func(Decision)
	told map[string]Decision
}

func (r *reporter) reportOnce(d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[d.Request] != d {
		r.told[d.Request] = d
		r.tell(d)
	}
}

func (c Approver) serveSigner(ctx context.Context, signer string, expected Expected, r *reporter) {
	requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
	for ctx.Err() == nil {
		// A failure only means to look again: nobody waits for this, but for the node's readiness.
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

// Decide approves one request if it may be; open is false for one that is decided already, or is not our subject.
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
			return Decision{}, false, nil // a Node renews its own, which the cluster's own approver decides
		}
		d.Node, refusal = jointoken.Issuer(c).NodeOf(ctx, csr.Spec.Username, time.Now())
		if refusal == nil {
			refusal = CheckBootstrap(csr, d.Node, expected)
		}
		if refusal == nil { // a Node of that name may have come since the token was made
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

// approveRequest adds the condition to the request as it was checked: its spec cannot change, and the update
// names its version.
func (c Approver) approveRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	node string) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeOneNodeMatches",
		Message: "what it asks for is this node's", LastUpdateTime: metav1.Now(),
	})
	return apicall.Retry(ctx, "approve the certificate of", node, func(ctx context.Context) error {
		requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
		_, err := requests.UpdateApproval(ctx, csr.Name, approved,
			metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // somebody decided, or it is gone: if it still matters, the kubelet's next request is ours again
		}
		return err
	})
}

// AutoApprovalBinding is kubeadm's rule by which the controller manager approves the certificate of any Node for
// whoever has a join token. `kubeadm init` and `kubeadm upgrade` make it.
const AutoApprovalBinding = "kubeadm:node-autoapprove-bootstrap"

// RemoveAutoApproval deletes it. One that is gone already is no error.
func (c Approver) RemoveAutoApproval(ctx context.Context) error {
	return apicall.Retry(ctx, "delete ClusterRoleBinding", AutoApprovalBinding, func(ctx context.Context) error {
		err := c.Kubernetes.RbacV1().ClusterRoleBindings().Delete(ctx, AutoApprovalBinding, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
