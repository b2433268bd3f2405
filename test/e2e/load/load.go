// Package load puts load on a cluster during an operation. One client writes and reads through the load balancer
// without a pause, one checks that the API is available, and a Deployment with a disruption budget answers requests.
// The package counts what they notice, and finally reads back every acknowledged write.
package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options describe the load.
type Options struct {
	// Kubeconfig is a file whose server is the load balancer.
	Kubeconfig string
	// Nodes are the addresses at which the Deployment is requested, in turn. Without any there is no Deployment.
	Nodes []string
	// Image is the Deployment's: agnhost, present on every node.
	Image string
	// Every is the pause between two requests of each kind. Zero means 100 ms.
	Every time.Duration
}

// Load is a running load. Call Stop to end it.
type Load struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	all    sync.WaitGroup
	began  time.Time
	waited time.Duration // processorWait at the start

	writer *writer
	prober *prober
	guard  *guard // nil without a Deployment
	asker  *asker // nil without a Deployment
}

// Start deploys the workload, waits until it answers, and starts all clients. They run until Stop, or until ctx ends.
func Start(ctx context.Context, options Options) (*Load, error) {
	if options.Every == 0 {
		options.Every = 100 * time.Millisecond
	}
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	config.QPS = -1 // no pauses of its own
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	l := &Load{client: client}
	if l.prober, err = newProber(config, options.Every); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if err := makeNamespace(ctx, client); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	l.writer = newWriter(client.CoreV1().RESTClient(), options.Every)
	if len(options.Nodes) > 0 {
		l.asker = &asker{nodes: options.Nodes, every: options.Every}
		if err := l.deployWorkload(ctx, options.Image); err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
	}
	l.startClients(ctx)
	return l, nil
}

// deployWorkload creates the Deployment, and waits until it is complete and answers at every node.
func (l *Load) deployWorkload(ctx context.Context, image string) error {
	if err := createWorkload(ctx, l.client, image); err != nil {
		return err
	}
	l.guard = newGuard(l.client)
	return l.asker.awaitEverywhere(ctx)
}

func (l *Load) startClients(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	l.began, l.waited = time.Now(), processorWait()
	l.all.Go(func() { l.writer.writeNumbers(ctx) })
	l.all.Go(func() { l.prober.probeAPI(ctx) })
	if l.guard != nil {
		l.all.Go(func() { l.guard.watchPods(ctx) })
		l.all.Go(func() { l.guard.watchBudget(ctx) })
		l.all.Go(func() { l.asker.askNodes(ctx) })
	}
}

// Stop ends the clients, reads back every acknowledged write, and reports. The Deployment stays.
func (l *Load) Stop(ctx context.Context) (Report, error) {
	l.cancel()
	l.all.Wait()
	r := Report{Seconds: time.Since(l.began).Seconds(), API: l.prober.outages.closedAt(time.Now())}
	r.Starved = (processorWait() - l.waited).Seconds() / r.Seconds
	var err error
	if r.Client, err = l.writer.reportWrites(ctx); err != nil {
		return r, fmt.Errorf("load: read the writes back: %w", err)
	}
	if l.guard != nil {
		pods := l.guard.reportPods()
		requests, refused := l.asker.reportOutages()
		r.Pods, r.Requests, r.Refused = &pods, &requests, refused
	}
	return r, nil
}

// awaitNext waits until the next request is due. It returns false when ctx ends.
func awaitNext(ctx context.Context, every time.Duration) bool {
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
