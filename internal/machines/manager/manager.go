// Package manager runs the controllers for Machines, Hosts and serving certificates, with leader election.
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
	"kubeone/internal/machines/clusters"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/pool"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/provider/ssh"
	"kubeone/internal/probe"
)

// Lease is the name of the leader election Lease in pool.Namespace.
const Lease = machines.Lease

// Options configure the controllers of one cluster.
type Options struct {
	// Site must contain Access, Releases and Holder; Run sets the other fields.
	Site ssh.Site
	// Clusters opens clusters for the controller of Clusters; nil runs none.
	Clusters clusters.Opener
	Metrics  string // address that serves metrics; "0" disables it
	Health   string // address that serves /healthz and /readyz; "0" disables it
	Log      *slog.Logger
	// Registry receives the metrics. Nil uses the registry that is served at Metrics.
	Registry prometheus.Registerer
	// SkipNameValidation lets several managers run in one process, for tests.
	SkipNameValidation bool
}

// shutdownTimeout limits how long a stopping manager waits for reconciliations in progress.
const shutdownTimeout = time.Minute

// Run runs the controllers until the context ends or the process loses its Lease. Before that, it creates the CRDs and
// the SSH key of the cluster if they do not exist.
func Run(ctx context.Context, o Options) error {
	c, err := cluster.Connect(o.Site.Access)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.DefineKinds(ctx); err != nil {
		return err
	}
	measured := newRunMetrics()
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
	for _, c := range []prometheus.Collector{newObjectCollector(m.GetClient()), measured.steps, measured.ended} {
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
	if o.Clusters != nil {
		if err := clusters.Add(m, o.Clusters, o.Site.Record, o.SkipNameValidation); err != nil {
			return err
		}
	}
	if err := addServing(m, c.Kubernetes, o); err != nil {
		return err
	}
	o.Log.Info("the controllers are ready and start once this process leads", "holder", o.Site.Holder)
	return m.Start(ctx)
}

// completeSite returns the site with the CA hash, the clock, the event recorder and the SSH key.
func completeSite(ctx context.Context, o Options, kube kubernetes.Interface, measured *runMetrics) (ssh.Site, error) {
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
	// As in cluster.Connect, proxies are only used for downloads on hosts.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	within := shutdownTimeout
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(o.Log.Handler()),
		LeaderElection: true, LeaderElectionID: Lease, LeaderElectionNamespace: pool.Namespace,
		// The Lease is released only after all work has ended, so the next leader can start immediately.
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

// eventRecorder returns a function that logs the events of runs.
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
