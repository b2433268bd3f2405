package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubeone/internal/cluster/apicall"
)

const secretToken = "very-secret-token"

// kubeconfigFor returns a kubeconfig for the URL that trusts the test server's certificate.
func kubeconfigFor(t *testing.T, server *httptest.Server, url string, change func(*clientcmdapi.Config)) []byte {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: secretToken}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if change != nil {
		change(config)
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func apiServer(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// dials is a dialer that counts, and connects to its target; "" refuses connections.
type dials struct {
	to    string
	count atomic.Int32
	asked atomic.Value // the address
}

func (d *dials) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	d.count.Add(1)
	d.asked.Store(addr)
	if d.to == "" {
		return nil, errors.New("refused by the test")
	}
	return (&net.Dialer{}).DialContext(ctx, network, d.to)
}

func quick() limits {
	return limits{
		dial:    2 * time.Second,
		dead:    time.Minute,
		request: 5 * time.Second,
		ping:    5 * time.Second,
	}
}

func connected(t *testing.T, kubeconfig []byte, via ...Endpoint) *Client {
	t.Helper()
	c, err := connectClient(Access{Kubeconfig: kubeconfig, Via: via}, quick())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func through(id string, d *dials) Endpoint {
	return Endpoint{ID: id, Address: "127.0.0.1:6443", Dial: d.dialTLS}
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func readyz(ctx context.Context, c *Client) error {
	return c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func TestDialsTheEndpointAndChecksTheKubeconfigsServer(t *testing.T) {
	t.Parallel()
	var proto, auth, host atomic.Value
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		auth.Store(r.Header.Get("Authorization"))
		host.Store(r.Host)
		ok(w, r)
	})
	tunnel := &dials{to: server.Listener.Addr().String()}
	c := connected(t, kubeconfigFor(t, server, "https://example.com:6443", nil), through("cp-1", tunnel))
	if err := readyz(soon(t), c); err != nil {
		t.Fatal(err)
	}
	got := []any{tunnel.asked.Load(), proto.Load(), auth.Load(), host.Load()}
	want := []any{"127.0.0.1:6443", "HTTP/2.0", "Bearer " + secretToken, "example.com:6443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAServerOfAnotherNameIsATerminalError(t *testing.T) {
	t.Parallel()
	server := apiServer(t, ok)
	tunnel := &dials{to: server.Listener.Addr().String()}
	c := connected(t, kubeconfigFor(t, server, "https://elsewhere.invalid:6443", nil), through("cp-1", tunnel))
	err := readyz(soon(t), c)
	if got := apicall.Classify(err); got != apicall.Terminal {
		t.Errorf("class of %v is %q, want %q", err, got, apicall.Terminal)
	}
	if !strings.Contains(fmt.Sprint(err), "elsewhere.invalid") {
		t.Errorf("the error does not name the server that was meant: %v", err)
	}
}

func TestAnEndpointThatIsDeadIsSkippedAndTheOneThatWorksIsRemembered(t *testing.T) {
	t.Parallel()
	server := apiServer(t, ok)
	refusing, working, spare := &dials{}, &dials{to: server.Listener.Addr().String()},
		&dials{to: server.Listener.Addr().String()}
	c := connected(t, kubeconfigFor(t, server, server.URL, nil), through("cp-1", refusing), through("cp-2", working),
		through("cp-3", spare))
	for range 3 {
		if err := readyz(soon(t), c); err != nil {
			t.Fatal(err)
		}
		c.http.CloseIdleConnections()
		c.dial.closeAll() // each request needs a new connection
	}
	// A request on a connection that is closing is repeated on a new one.
	if refused, worked, spared := refusing.count.Load(), working.count.Load(), spare.count.Load(); refused != 1 ||
		worked < 3 || spared != 0 {
		t.Errorf("the dead one was dialled %d times, the one that works %d times, the spare one %d times", refused,
			worked, spared)
	}
}

func TestAnEndpointThatAcceptsAndSaysNothingIsSkipped(t *testing.T) {
	t.Parallel()
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Close() })
	server := apiServer(t, ok)
	c := connected(t, kubeconfigFor(t, server, server.URL, nil),
		through("frozen", &dials{to: frozen.Addr().String()}),
		through("alive", &dials{to: server.Listener.Addr().String()}))
	if err := readyz(soon(t), c); err != nil {
		t.Error(err)
	}
}

func TestAServerThatStopsAnsweringIsLeftForTheNext(t *testing.T) {
	t.Parallel()
	hung := apiServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	alive := apiServer(t, ok)
	c := connected(t, kubeconfigFor(t, hung, "https://example.com", nil),
		through("hung", &dials{to: hung.Listener.Addr().String()}),
		through("alive", &dials{to: alive.Listener.Addr().String()}))
	err := readyz(soon(t), c)
	if !errors.Is(err, errNoAnswer) || apicall.Classify(err) != apicall.Transient ||
		!strings.Contains(err.Error(), "hung") {
		t.Errorf("first answer: got %v (%s), want that hung gave none", err, apicall.Classify(err))
	}
	if err := readyz(soon(t), c); err != nil {
		t.Errorf("second answer: %v", err)
	}
}

func TestAllEndpointsAreNamedWhenNoneAnswers(t *testing.T) {
	t.Parallel()
	server := apiServer(t, ok)
	c := connected(t, kubeconfigFor(t, server, server.URL, nil), through("cp-1", &dials{}), through("cp-2", &dials{}))
	err := readyz(soon(t), c)
	var unreachable *apicall.UnreachableError
	if !errors.As(err, &unreachable) || apicall.Classify(err) != apicall.Transient {
		t.Fatalf("got %v (%s), want an UnreachableError that is transient", err, apicall.Classify(err))
	}
	if diff := cmp.Diff([]string{"cp-1", "cp-2"}, unreachable.Endpoints); diff != "" {
		t.Error(diff)
	}
}

func TestAWatchOutlivesTheRequestTimeout(t *testing.T) {
	t.Parallel()
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(3 * quick().request):
			_, _ = io.WriteString(w,
				`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"late"}}}`+"\n")
		}
	})
	c := connected(t, kubeconfigFor(t, server, server.URL, nil))
	events, err := c.Kubernetes.CoreV1().Nodes().Watch(soon(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	event, open := <-events.ResultChan()
	if !open || event.Object == nil {
		t.Fatalf("the watch ended before its event: %v", event)
	}
}

func TestARetryOutlivesAServerThatIsStarting(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "etcd not ready", http.StatusInternalServerError)
			return
		}
		ok(w, r)
	})
	c := connected(t, kubeconfigFor(t, server, server.URL, nil))
	ask := func(ctx context.Context) error { return readyz(ctx, c) }
	if err := apicall.Retry(soon(t), "ask the API server", "", ask); err != nil {
		t.Error(err)
	}
}

func TestKubeconfigsThatReachIntoThisMachineAreRefused(t *testing.T) {
	t.Parallel()
	server := apiServer(t, ok)
	for name, change := range map[string]func(*clientcmdapi.Config){
		"program": func(c *clientcmdapi.Config) {
			c.AuthInfos["u"].Exec = &clientcmdapi.ExecConfig{Command: "touch"}
		},
		"token file":  func(c *clientcmdapi.Config) { c.AuthInfos["u"].TokenFile = "/etc/hostname" },
		"key file":    func(c *clientcmdapi.Config) { c.AuthInfos["u"].ClientKey = "/etc/hostname" },
		"CA file":     func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthority = "/etc/hostname" },
		"no checking": func(c *clientcmdapi.Config) { c.Clusters["c"].InsecureSkipTLSVerify = true },
		"no TLS":      func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "http://example.com" },
		"no CA":       func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthorityData = nil },
		"another user's program": func(c *clientcmdapi.Config) {
			c.AuthInfos["other"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "touch"}}
		},
	} {
		access := Access{Kubeconfig: kubeconfigFor(t, server, server.URL, change)}
		_, err := Connect(access)
		if apicall.Classify(err) != apicall.Terminal {
			t.Errorf("%s: got %v (%q), want a terminal error", name, err, apicall.Classify(err))
		}
		if text, err := access.AdminKubeconfig("alpha"); err == nil {
			t.Errorf("%s: a person gets\n%s", name, text)
		}
	}
	_, err := Connect(Access{Kubeconfig: []byte("token: " + secretToken + "\n\t- broken")})
	if err == nil || strings.Contains(err.Error(), secretToken) {
		t.Errorf("broken kubeconfig: got %v, want an error without its content", err)
	}
}

// A kubeconfig may have more than is needed to reach a cluster; AdminKubeconfig copies none of that.
func TestAPersonGetsNoMoreThanTheCredentials(t *testing.T) {
	t.Parallel()
	server := apiServer(t, ok)
	text, err := Access{Kubeconfig: kubeconfigFor(t, server, server.URL, func(c *clientcmdapi.Config) {
		c.Clusters["c"].ProxyURL, c.Clusters["c"].TLSServerName = "http://192.0.2.66", "192.0.2.66"
		c.AuthInfos["u"].Impersonate = "system:admin"
		c.Contexts["\x1b[2Jother"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "kube-system"}
	})}.AdminKubeconfig("alpha")
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	want := clientcmdapi.NewConfig()
	want.CurrentContext = "kubernetes-admin@alpha"
	want.Contexts[want.CurrentContext] = &clientcmdapi.Context{
		Cluster: "alpha", AuthInfo: "kubernetes-admin", Extensions: map[string]runtime.Object{},
	}
	want.Clusters["alpha"] = &clientcmdapi.Cluster{
		Server: server.URL, Extensions: map[string]runtime.Object{},
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	want.AuthInfos["kubernetes-admin"] = &clientcmdapi.AuthInfo{
		Token: secretToken, Extensions: map[string]runtime.Object{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAccessShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	access := Access{Kubeconfig: []byte(secretToken)}
	var out bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q"} {
		_, _ = fmt.Fprintf(&out, format, access)
		_, _ = fmt.Fprintf(&out, format, &access)
	}
	if err := json.NewEncoder(&out).Encode(map[string]any{"access": access, "pointer": &access}); err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{
		secretToken, fmt.Sprintf("%x", secretToken), "dmVyeS1zZWNyZXQtdG9rZW4", fmt.Sprint([]byte(secretToken)),
	} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("shown: %q in %s", leak, out.String())
		}
	}
}

func TestSilenceIsTransient(t *testing.T) {
	t.Parallel()
	if got := apicall.Classify(fmt.Errorf("get: %w", errNoAnswer)); got != apicall.Transient {
		t.Errorf("got %q", got)
	}
}
