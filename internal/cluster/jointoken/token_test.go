package jointoken

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/nodename"
	"kubeone/internal/testutil/clustertest"
)

func TestTokensHaveTheFormThatTheAPIWantsAndAreNotRepeated(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)
	seen, letters := map[string]bool{}, map[rune]int{}
	for range 2000 {
		token, id := New()
		parts := form.FindStringSubmatch(token)
		if parts == nil || parts[1] != id || seen[token] {
			t.Fatalf("token %q with ID %q is malformed or was there before", token, id)
		}
		seen[token] = true
		for _, letter := range id + parts[2] {
			letters[letter]++
		}
	}
	for letter, n := range letters { // 44000 draws of 36: 1222 each, standard deviation 34
		if n < 1000 || n > 1450 {
			t.Errorf("%q was drawn %d times, want about 1222", letter, n)
		}
	}
}

func TestCreatedTokenIsABootstrapSecretOfThisRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		clustertest.FailOnce(api, "create", "secrets", apierrors.NewServiceUnavailable("restarting"))
		token, id, err := c.CreateJoinToken(t.Context(), "run-7", nodename.Claim{Node: "worker-1"}, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := c.Kubernetes.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+id,
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{"type": string(secret.Type), "for": secret.Annotations[NodeAnnotation]}
		for key, value := range secret.Data {
			got[key] = string(value)
		}
		want := map[string]string{
			"type": "bootstrap.kubernetes.io/token", "token-id": id, "token-secret": strings.TrimPrefix(token, id+"."),
			"usage-bootstrap-authentication": "true", "for": "worker-1",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
			"description":       "kubeone: join token of run run-7",
			"expiration":        got["expiration"],
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		expires, err := time.Parse(time.RFC3339, got["expiration"])
		if left := time.Until(expires); err != nil || left > 10*time.Minute || left < 9*time.Minute {
			t.Errorf("it expires in %s (%v), want about 10m", left, err)
		}
	})
}

func TestTokensThatLiveTooLongAreRefused(t *testing.T) {
	t.Parallel()
	c, api := faked(t)
	for _, ttl := range []time.Duration{0, -time.Second, MaxTTL + time.Second} {
		_, _, err := c.CreateJoinToken(t.Context(), "run", nodename.Claim{Node: "worker-1"}, ttl)
		if apicall.Classify(err) != apicall.Terminal {
			t.Errorf("%s: got %v, want a terminal error", ttl, err)
		}
	}
	if got := clustertest.Writes(api); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestNoTokenIsMadeForTheNodeOfAnother(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	for name, c := range map[string]struct {
		claim  nodename.Claim
		reason string // "" means that a token is made
	}{
		"its own Node":     {nodename.Claim{Node: "worker-1", Names: []string{"10.0.0.1"}}, ""},
		"by the manifest":  {nodename.Claim{Node: "worker-1", Known: true}, ""},
		"no Node yet":      {nodename.Claim{Node: "worker-2", Names: []string{"10.0.0.2"}}, ""},
		"another's Node":   {nodename.Claim{Node: "worker-1", Names: []string{"10.0.0.2"}}, "addresses of the Node"},
		"the API's name":   {nodename.Claim{Node: "api", Holder: "the API endpoint"}, "the API endpoint"},
		"without any name": {nodename.Claim{}, "no name"},
	} {
		issuer, api := faked(t, node)
		_, _, err := issuer.CreateJoinToken(t.Context(), "run", c.claim, time.Minute)
		switch made := len(clustertest.Writes(api)) > 0; {
		case made != (c.reason == "") || made != (err == nil):
			t.Errorf("%s: made a token: %v, error %v", name, made, err)
		case err != nil && !strings.Contains(err.Error(), c.reason):
			t.Errorf("%s: %v; want it to name %q", name, err, c.reason)
		}
	}
}

func TestTokenNeverAppearsInAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		clustertest.FailOnce(api, "create", "secrets", errors.New("forbidden"))
		token, _, err := c.CreateJoinToken(t.Context(), "run", nodename.Claim{Node: "worker-1"}, time.Minute)
		if err == nil || token != "" {
			t.Errorf("got token %q, error %v; want only an error", token, err)
		}
	})
}

func TestARunRevokesItsOwnTokensOnly(t *testing.T) {
	t.Parallel()
	others := newTokenSecret("zzzzzz.0123456789abcdef", "", "", time.Now())
	others.Data[description] = []byte("made by kubeadm")
	plain := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "kube-system"}}
	c, _ := faked(t, others, plain, newTokenSecret("aaaaaa.0123456789abcdef", "1", "a", time.Now()),
		newTokenSecret("bbbbbb.0123456789abcdef", "2", "b", time.Now()))
	for range 2 { // the second time there is nothing to do
		if err := c.RevokeJoinTokens(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RevokeJoinToken(t.Context(), "aaaaaa"); err != nil {
		t.Errorf("a token that is gone: %v", err)
	}
	list, err := c.Kubernetes.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, s := range list.Items {
		left = append(left, s.Name)
	}
	if diff := cmp.Diff([]string{"bootstrap-token-bbbbbb", "bootstrap-token-zzzzzz", "plain"}, left); diff != "" {
		t.Error(diff)
	}
}

func TestATokenIsForItsNodeUntilItExpiresOrIsRevoked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	good := newTokenSecret("aaaaaa.0123456789abcdef", "1", "worker-1", now.Add(time.Second))
	old := newTokenSecret("bbbbbb.0123456789abcdef", "1", "worker-1", now)
	others := newTokenSecret("cccccc.0123456789abcdef", "1", "", now.Add(time.Minute))
	odd := newTokenSecret("dddddd.0123456789abcdef", "1", "worker-1", now.Add(time.Minute))
	odd.Type = corev1.SecretTypeOpaque
	endless := newTokenSecret("eeeeee.0123456789abcdef", "1", "worker-1", now.Add(time.Minute))
	delete(endless.Data, expiration)
	c, _ := faked(t, good, old, others, odd, endless)
	for user, want := range map[string]string{
		"system:bootstrap:aaaaaa":  "",
		"system:bootstrap:bbbbbb":  "expired",
		"system:bootstrap:cccccc":  "not bound to a Node",
		"system:bootstrap:dddddd":  "not bound to a Node",
		"system:bootstrap:eeeeee":  "expired",
		"system:bootstrap:ffffff":  "revoked",
		"system:bootstrap:../aaaa": "not a join token user",
		"system:bootstrap:aaaaaaa": "not a join token user",
		"system:node:worker-1":     "not a join token user",
		"":                         "not a join token user",
	} {
		node, err := c.NodeOf(t.Context(), user, now)
		if want == "" && (err != nil || node != "worker-1") || want != "" && (err == nil || node != "" ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want %q", user, node, err, want)
		}
	}
}
