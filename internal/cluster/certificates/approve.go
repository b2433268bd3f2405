// Package certificates approves the serving certificates that kubelets ask for.
package certificates

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/retry"
)

// Approver approves requests for serving certificates.
type Approver struct {
	Kubernetes kubernetes.Interface
}

// Decision is what was done about one request for a kubelet's serving certificate.
type Decision struct {
	Request  string // the CertificateSigningRequest's name
	Node     string // who asked; "" when no node did
	Approved bool
	Reason   string // why it was left alone; "" when approved
}

// servingRequests selects the requests that we look at.
func servingRequests() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName}
}

// ServeApprovals approves the requests for serving certificates that CheckServing allows, those that there are and
// those that come, within milliseconds of its appearing, until the context ends, which is its only end. It may
// begin before the API answers and outlives the API's restarts. Each decision is told once; tell is called from
// one goroutine.
func (c Approver) ServeApprovals(ctx context.Context, expected Expected, tell func(Decision)) {
	told := map[string]Decision{}
	requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
	for ctx.Err() == nil {
		// A failure only means to look again: nobody waits for this, but for the node's readiness.
		_, err := apicall.Follow(ctx, requests, servingRequests(), func(csr *certificatesv1.CertificateSigningRequest,
			deleted bool) (bool, error) {
			if deleted {
				return false, nil
			}
			one, cancel := context.WithTimeout(ctx, apicall.OpTimeout)
			defer cancel()
			decision, open, err := c.decide(one, csr, expected)
			if err == nil && open && told[csr.Name] != decision {
				told[csr.Name] = decision
				tell(decision)
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

// decide approves one request if it may be; open is false for one that is not our subject.
func (c Approver) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	expected Expected) (d Decision, open bool, err error) {
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(csr.Status.Conditions) > 0 {
		return Decision{}, false, nil
	}
	node, refusal := CheckServing(csr, expected)
	d = Decision{Request: csr.Name, Node: node, Approved: refusal == nil}
	if refusal != nil {
		d.Reason = refusal.Error()
		return d, true, nil //nolint:nilerr // the refusal is the decision
	}
	return d, true, c.approve(ctx, csr, node)
}

// approve adds the condition to the request as it was checked: its spec cannot change, and the update
// names its version.
func (c Approver) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, node string) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeOneNodeMatches",
		Message: "names and addresses are those of this node", LastUpdateTime: metav1.Now(),
	})
	return apicall.Retry(ctx, "approve the serving certificate of", node, func(ctx context.Context) error {
		requests := c.Kubernetes.CertificatesV1().CertificateSigningRequests()
		_, err := requests.UpdateApproval(ctx, csr.Name, approved,
			metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // somebody decided, or it is gone: if it still matters, the kubelet's next request is ours again
		}
		return err
	})
}
