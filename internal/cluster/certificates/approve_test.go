package certificates

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/model/desired"
	"kubeone/internal/retry"
	"kubeone/internal/testutil/clustertest"
)

// notIts is why a request of cp-1 for the API's name is not approved.
const notIts = `it requests the name "api", which the manifest does not assign to node "cp-1"`

func named(csr *certificatesv1.CertificateSigningRequest, name string) *certificatesv1.CertificateSigningRequest {
	csr.Name = name
	return csr
}

func approvals(t *testing.T, c Approver) map[string]bool {
	t.Helper()
	list, err := c.Kubernetes.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, csr := range list.Items {
		out[csr.Name] = len(csr.Status.Conditions) == 1 &&
			csr.Status.Conditions[0].Type == certificatesv1.CertificateApproved
	}
	return out
}

// Another host's Node with the token's name may have been created after the token.
func TestNoTokenGivesTheIdentityOfAnotherHostsNode(t *testing.T) {
	t.Parallel()
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "bootstrap-token-aaaaaa", Namespace: "kube-system",
			Annotations: map[string]string{jointoken.NodeAnnotation: "cp-1"},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{"expiration": []byte(time.Now().Add(time.Minute).Format(time.RFC3339))},
	}
	for name, c := range map[string]struct {
		address, owner, reason string
	}{
		"its own":         {address: "10.0.0.1"},
		"another host's":  {"10.0.0.9", "", "the addresses of the Node cp-1 differ from those of the host: 10.0.0.9"},
		"that of Machine": {"10.0.0.1", "uid-7", "the Node cp-1 belongs to Machine uid-7"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Labels: map[string]string{}}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.address}}
		if c.owner != "" {
			node.Labels[desired.OwnerLabel] = c.owner
		}
		claimed := expectedHosts()
		claim := claimed["cp-1"]
		claim.Known = false
		claimed["cp-1"] = claim
		a, _ := faked(t, token, node, request(t, bootstrap))
		var got Decision
		if err := a.ApprovePending(t.Context(), claimed, func(d Decision) { got = d }); err != nil {
			t.Fatal(err)
		}
		want := Decision{Request: "csr-1", Node: "cp-1", Approved: c.reason == "", Reason: c.reason}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestServeApprovalsLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	foreign := named(request(t, func(s *serving) { s.spec.SignerName = certificatesv1.KubeAPIServerClientSignerName }),
		"client")
	denied := named(request(t, nil), "denied")
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied},
	}
	bad := named(request(t, func(s *serving) { s.template.DNSNames = []string{"api"} }), "bad")
	c, _ := faked(t, named(request(t, nil), "good"), foreign, denied, bad)

	var got []Decision
	ctx, cancel := context.WithTimeout(t.Context(), apicall.OpTimeout)
	defer cancel()
	c.ServeApprovals(ctx, expectedHosts(), func(d Decision) {
		if got = append(got, d); len(got) == 2 {
			cancel()
		}
	})
	want := []Decision{
		{Request: "bad", Node: "cp-1", Reason: notIts},
		{Request: "good", Node: "cp-1", Approved: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"good": true, "client": false, "denied": false, "bad": false},
		approvals(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestServeApprovalsDecidesAsRequestsComeAndSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	early, late, bad := request(t, nil), request(t, nil),
		request(t, func(s *serving) { s.template.DNSNames = []string{"api"} })
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, named(early, "early"))
		clustertest.FailOnce(api, "list", "certificatesigningrequests", errors.New("connection refused"))
		clustertest.FailOnce(api, "update", "certificatesigningrequests", apierrors.NewServiceUnavailable("restarting"))
		ctx, cancel := context.WithCancel(t.Context())
		var told []Decision
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.ServeApprovals(ctx, expectedHosts(), func(d Decision) { told = append(told, d) })
		}()
		synctest.Wait()
		for _, csr := range []*certificatesv1.CertificateSigningRequest{named(bad, "bad"), named(late, "late")} {
			retry.Pause(ctx, apicall.OpTimeout/10)
			if _, err := c.Kubernetes.CertificatesV1().CertificateSigningRequests().Create(ctx, csr,
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // no time passes: the decision follows the event at once
			if last := told[len(told)-1]; last.Request != csr.Name {
				t.Errorf("last decided: %v, want %s", last, csr.Name)
			}
		}
		cancel()
		<-ended
		want := []Decision{
			{Request: "early", Node: "cp-1", Approved: true},
			{Request: "bad", Node: "cp-1", Reason: notIts},
			{Request: "late", Node: "cp-1", Approved: true},
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]bool{"early": true, "late": true, "bad": false}, approvals(t, c)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFirstCertificatesAreApprovedForTheTokensNodeOnly(t *testing.T) {
	t.Parallel()
	token := func(id, node string, ttl time.Duration) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "bootstrap-token-" + id, Namespace: "kube-system",
				Annotations: map[string]string{jointoken.NodeAnnotation: node},
			},
			Type: corev1.SecretTypeBootstrapToken,
			Data: map[string][]byte{"expiration": []byte(time.Now().Add(ttl).Format(time.RFC3339))},
		}
	}
	asked := func(name, token string) *certificatesv1.CertificateSigningRequest {
		return named(request(t, func(s *serving) {
			bootstrap(s)
			s.spec.Username = "system:bootstrap:" + token
		}), name)
	}
	renewal := named(request(t, func(s *serving) {
		bootstrap(s)
		s.spec.Username, s.spec.Groups = "system:node:cp-1", []string{"system:nodes"}
	}), "renewal")
	c, _ := faked(t, token("aaaaaa", "cp-1", time.Minute), token("bbbbbb", "cp-2", time.Minute),
		token("cccccc", "cp-1", -time.Minute), asked("own", "aaaaaa"), asked("others", "bbbbbb"),
		asked("late", "cccccc"), asked("unknown", "dddddd"), renewal)
	reasons := map[string]string{}
	for range 2 {
		if err := c.ApprovePending(t.Context(), expectedHosts(), func(d Decision) {
			reasons[d.Request] = d.Reason
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"own": "", "others": `its common name is "system:node:cp-1", want "system:node:cp-2"`,
		"late": "its join token cccccc has expired", "unknown": "its join token dddddd was revoked",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
	approved := map[string]bool{"own": true, "others": false, "late": false, "unknown": false, "renewal": false}
	if diff := cmp.Diff(approved, approvals(t, c)); diff != "" {
		t.Error(diff)
	}
}
