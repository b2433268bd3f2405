package probe

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
)

// fakeHost answers the script with a text, or with the output of run.
type fakeHost struct {
	run      func(ctx context.Context, c host.Cmd) (host.Result, error)
	forward  map[string]string // real destinations of Dial by address
	contacts []host.FirstContact

	mu       sync.Mutex
	commands []host.Cmd
}

func (f *fakeHost) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	if c.Secret && len(f.contacts) > 0 {
		return host.Result{}, fmt.Errorf("probe: %w", host.ErrNotApproved)
	}
	f.mu.Lock()
	f.commands = append(f.commands, c)
	f.mu.Unlock()
	return f.run(ctx, c)
}

func (f *fakeHost) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, ok := f.forward[addr]
	if !ok {
		return nil, &host.Error{Class: host.Tunnel, What: "dial " + addr, Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func (f *fakeHost) FirstContacts() []host.FirstContact { return f.contacts }

// says is a host that answers with these lines, each a name and a value, and with its secrets if asked for them.
func says(facts []string, secrets ...string) *fakeHost {
	return &fakeHost{run: func(_ context.Context, c host.Cmd) (host.Result, error) {
		said := append([]string{"kubeone-probe 1", "uid 0"}, facts...)
		if c.Args[0] == argCredentials {
			said = append(said, secrets...)
		}
		return host.Result{}, answer(c, append(said, "end 1"))
	}}
}

// answer prints lines, each a name and a value, or a block.
func answer(c host.Cmd, said []string) error {
	var out strings.Builder
	for _, line := range said {
		if !strings.HasPrefix(line, "block\t") {
			line = strings.Replace(line, " ", "\t", 1)
		}
		out.WriteString(line + "\n")
	}
	_, err := io.WriteString(c.Stdout, out.String())
	return err
}

// fails is a host that cannot be asked.
func fails(err error) *fakeHost {
	return &fakeHost{
		run: func(context.Context, host.Cmd) (host.Result, error) { return host.Result{ExitCode: -1}, err },
	}
}

// hangs is a host that accepts the command and stays silent until the caller gives up or the channel is closed.
func hangs(until <-chan struct{}) *fakeHost {
	return &fakeHost{run: func(ctx context.Context, c host.Cmd) (host.Result, error) {
		select {
		case <-until:
			return says(nil).run(ctx, c)
		case <-ctx.Done():
			return host.Result{ExitCode: -1}, context.Cause(ctx)
		}
	}}
}

// fakeAPI is an API server with the objects that a probe reads.
type fakeAPI struct {
	*httptest.Server
	asked chan struct{} // closed at the first request

	mu    sync.Mutex
	paths []string
}

// newAPI starts an API server with a certificate shared with others, or with its own. Namespaces of network plugins
// without pods in objects are empty.
func newAPI(t *testing.T, objects map[string]string, own ...tls.Certificate) *fakeAPI {
	t.Helper()
	api := &fakeAPI{asked: make(chan struct{})}
	var once sync.Once
	api.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(api.asked) })
		api.mu.Lock()
		api.paths = append(api.paths, r.URL.Path)
		api.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch body, ok := objects[r.URL.Path]; {
		case r.Header.Get("Authorization") != "Bearer TOKEN":
			w.WriteHeader(http.StatusUnauthorized)
		case !ok && slices.Contains(pluginPods(), r.URL.Path):
			_, _ = fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1"}`)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case body == "500":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError",
				"message":"conversion webhook failed","code":500}`)
		default:
			_, _ = fmt.Fprint(w, body)
		}
	}))
	if len(own) > 0 {
		api.TLS = &tls.Config{Certificates: own, MinVersion: tls.VersionTLS12}
	}
	api.EnableHTTP2 = true
	api.StartTLS()
	t.Cleanup(api.Close)
	return api
}

// secret returns the line with an admin.conf for this API. Its server is the load balancer's name, which does not
// resolve here.
func (a *fakeAPI) secret() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://example.com:6443", certificate-authority-data: %s}}]
users: [{name: u, user: {token: TOKEN}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, base64.StdEncoding.EncodeToString(ca))
	return secretFile(adminConf, config)
}

func (a *fakeAPI) address() string { return a.Listener.Addr().String() }

// etcdFacts returns the lines with a host's etcd certificates, and the one with the key.
func etcdFacts(c etcd.Credentials) (facts []string, secret string) {
	for path, content := range map[string][]byte{etcdCA: c.CA, etcdCert: c.Cert} {
		facts = append(facts, "pem ==> "+path+" <==")
		for line := range strings.Lines(string(content)) {
			facts = append(facts, "pem "+strings.TrimSpace(line))
		}
	}
	return facts, secretFile(etcdKey, string(c.Key))
}

// secretFile returns the block with a credential file of a host.
func secretFile(path, content string) string {
	return "block\tsecret\n==> " + path + " <==\n" + content + "\nblock\t"
}

// pluginPods returns the paths of the pods of network plugins.
func pluginPods() []string {
	var out []string
	for _, namespace := range plugins.Namespaces() {
		out = append(out, "/api/v1/namespaces/"+namespace+"/pods")
	}
	return out
}
