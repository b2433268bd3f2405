package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/provider/fake"
)

// fakeControllers is the argument that makes this program run the controllers with the fake provider.
const fakeControllers = "fake-controllers"

// usageReport is the resource usage of the controllers. Leases do not count as writes: a live process renews them
// anyway.
type usageReport struct {
	Requests, Writes int64
	CPUSeconds       float64
	MemoryMB         int
}

// runFakeControllers runs the controllers until stdin ends. It answers each line of stdin with a report.
func runFakeControllers(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s KUBECONFIG", fakeControllers)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	nodes, err := client.New(rest.CopyConfig(config), client.Options{Scheme: scheme}) // requests are not counted
	if err != nil {
		return err
	}
	log.SetLogger(logr.Discard())
	counted := &counter{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, counted} })
	m, err := manager.New(config, manager.Options{Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := controllers.Add(ctx, m, provider.Set{fake.Name: fake.New(nodes, fake.Options{})},
		controllers.Options{}); err != nil {
		return err
	}
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(stdin); lines.Scan(); {
			_ = json.NewEncoder(stdout).Encode(counted.readUsage())
		}
	}()
	return m.Start(ctx)
}

// counter counts requests to the API.
type counter struct{ requests, writes atomic.Int64 }

func (c *counter) readUsage() usageReport {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // never fails
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return usageReport{
		Requests: c.requests.Load(), Writes: c.writes.Load(),
		CPUSeconds: seconds(used.Utime) + seconds(used.Stime), MemoryMB: int(used.Maxrss >> 10),
	}
}

type counting struct {
	http.RoundTripper
	*counter
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	if r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") {
		c.writes.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func writeKubeconfig(path string, c *rest.Config) error {
	out := clientcmdapi.NewConfig()
	out.CurrentContext = "bench"
	out.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench"}
	out.Clusters["bench"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	out.AuthInfos["bench"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	return clientcmd.WriteToFile(*out, path)
}

// startFakeControllers starts the controllers as a separate process.
func startFakeControllers(ctx context.Context, kubeconfig string) (report func() (usageReport, error), end func() error,
	err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, fakeControllers, kubeconfig)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	answers := json.NewDecoder(out)
	report = func() (r usageReport, err error) {
		if _, err = io.WriteString(in, "\n"); err == nil {
			err = answers.Decode(&r)
		}
		return r, err
	}
	end = func() error {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			return withLastLines(err, messages.String())
		}
		return nil
	}
	return report, end, nil
}
