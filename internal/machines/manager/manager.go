// Package manager runs the controllers of Machines, Hosts and serving certificates in a process: those of the process
// that leads work, others stand by.
package manager

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/machines"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/pool"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/provider/ssh"
	"kubeone/internal/probe"
)

// Lease is the name of the Lease in pool.Namespace that the process has which leads.
const Lease = machines.Lease

// Options say for which cluster the controllers run, and how.
type Options struct {
	// Site is the cluster and what is installed; Access, Releases and Holder are needed, the rest is filled in.
	Site    ssh.Site
	Metrics string // the address at which metrics are served, "0" is none
	Health  string // the address at which /healthz and /readyz answer, "0" is none
	Log     *slog.Logger
	// Registry is told the metrics; nil is the one that is served at Metrics.
	Registry prometheus.Registerer
	// SkipNameValidation lets several managers run in one process, as tests do.
	SkipNameValidation bool
}

// endWithin is how long what is under way has to come to its end.
const endWithin = time.Minute

// Run runs the controllers until the context ends, or another process leads. It defines the kinds that they read and
// makes the cluster's key, where those are not there.
func Run(ctx context.Context, o Options) error {
	c, err := cluster.Connect(o.Site.Access)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := pool.Define(ctx, c); err != nil {
		return err
	}
	measured := newRuns()
	if o.Site, err = completeSite(ctx, o, c.Kubernetes, measured); err != nil {
		return err
	}
	m, err := newManager(o)
	if err != nil {
		return err
	}
	if o.Registry == nil {
		o.Registry = metrics.Registry
	}
	for _, c := range []prometheus.Collector{newObjects(m.GetClient()), measured.steps, measured.ended} {
		if err := o.Registry.Register(c); err != nil {
			return err
		}
	}
	hosts := ssh.New(m.GetClient(), m.GetAPIReader(), &o.Site)
	if err := hosts.AddTo(m, o.SkipNameValidation); err != nil {
		return err
	}
	options := controllers.Options{SkipNameValidation: o.SkipNameValidation, Woken: hosts.Woken()}
	if err := controllers.Add(ctx, m, provider.Set{ssh.Name: hosts}, options); err != nil {
		return err
	}
	if err := addServing(m, c.Kubernetes, o); err != nil {
		return err
	}
	o.Log.Info("the controllers are ready, and work once this process leads", "holder", o.Site.Holder)
	return m.Start(ctx)
}

// completeSite is the site with what the cluster itself says.
func completeSite(ctx context.Context, o Options, kube kubernetes.Interface, measured *runs) (ssh.Site, error) {
	s, tell := o.Site, eventRecorder(o.Log)
	s.CA, s.Now = probe.CAHash(s.Access.CA()), time.Now
	s.Record = func(e apply.Event) {
		measured.recordEvent(e)
		tell(e)
	}
	var err error
	s.Signer, err = pool.Key(ctx, kube)
	return s, err
}

func newManager(o Options) (manager.Manager, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(o.Site.Access.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.UserAgent, config.WarningHandler = -1, "kubeone-controller", rest.NoWarnings{}
	// As cluster.Connect does: a proxy is for what hosts download.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	within := endWithin
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(o.Log.Handler()),
		LeaderElection: true, LeaderElectionID: Lease, LeaderElectionNamespace: pool.Namespace,
		// Whoever leads next may begin at once: nothing is under way when the Lease is given back.
		LeaderElectionReleaseOnCancel: true, GracefulShutdownTimeout: &within,
		Metrics: server.Options{BindAddress: o.Metrics}, HealthProbeBindAddress: o.Health,
	})
	if err != nil {
		return nil, err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return m, m.AddReadyzCheck("ping", healthz.Ping)
}

// eventRecorder logs what happens in runs on hosts.
func eventRecorder(log *slog.Logger) func(apply.Event) {
	return func(e apply.Event) {
		attributes := []any{"run", e.RunID, "host", e.Host}
		if e.Step != "" {
			attributes = append(attributes, "step", e.Step, "title", e.Title)
		}
		switch e.Type {
		case apply.RunStarted, apply.StepStarted:
			log.Info(string(e.Type), attributes...)
		case apply.StepDone, apply.RunFinished:
			log.Info(string(e.Type), append(attributes, "seconds", e.Seconds, "error", e.Error)...)
		case apply.StepFailed, apply.Warning:
			log.Warn(string(e.Type), append(attributes, "line", e.Line, "error", e.Error)...)
		}
	}
}
