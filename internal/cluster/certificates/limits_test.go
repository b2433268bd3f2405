package certificates

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// A Node's identity certificate has nothing but the identity, and every certificate has the usages a kubelet needs.
func TestARequestForMoreOrLessThanAKubeletNeedsIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*serving)
		serving bool
		reason  string
	}{
		"an identity with an e-mail address": {
			func(s *serving) { s.template.EmailAddresses = []string{"a@b"} }, false, "names or addresses",
		},
		"an identity with a URI": {
			func(s *serving) { s.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, false,
			"names or addresses",
		},
		"an identity that does not sign": {
			func(s *serving) { s.spec.Usages = s.spec.Usages[1:] }, false, "digital signature",
		},
		"a server that does not sign": {
			func(s *serving) { s.spec.Usages = s.spec.Usages[1:] }, true, "digital signature",
		},
	} {
		csr := request(t, func(s *serving) {
			if !c.serving {
				bootstrap(s)
			}
			c.change(s)
		})
		var err error
		if c.serving {
			_, err = CheckServing(csr, expectedHosts())
		} else {
			err = CheckBootstrap(csr, "cp-1", expectedHosts())
		}
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want a refusal about %q", name, err, c.reason)
		}
	}
}

// Another approver may decide first, or the request may be deleted. Neither fails a run.
func TestARequestThatAnotherApproverHasDecidedIsNoFailure(t *testing.T) {
	t.Parallel()
	requests := schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
	for name, err := range map[string]error{
		"decided": apierrors.NewConflict(requests, "csr-1", nil),
		"gone":    apierrors.NewNotFound(requests, "csr-1"),
	} {
		csr := request(t, nil)
		synctest.Test(t, func(t *testing.T) {
			c, api := faked(t, csr)
			api.PrependReactor("update", requests.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, err
			})
			if err := c.ApprovePending(t.Context(), expectedHosts(), func(Decision) {}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
