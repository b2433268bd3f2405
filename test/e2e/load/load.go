// Package load is what goes on in a cluster while something is done to it: a client that writes and reads through the
// load balancer without a pause, one that asks whether the API is there, and a Deployment with a disruption budget that
// answers requests. It counts what they notice, and afterwards looks for every write that was acknowledged.
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

// Options say what load to put on a cluster.
type Options struct {
	// Kubeconfig is a file; the server that it names is the load balancer.
	Kubeconfig string
	// Nodes are the addresses at which the Deployment is asked, in turn; without any there is no Deployment.
	Nodes []string
	// Image is the Deployment's: agnhost, present on every node.
	Image string
	// Every is the pause between two requests of each kind, 100 ms when it is zero.
	Every time.Duration
}

// Load is a running load. It ends with Stop.
type Load struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	all    sync.WaitGroup
	began  time.Time
	waited time.Duration // as processorWait says it, at the beginning

	writer *writer
	prober *prober
	guard  *guard // nil without a Deployment
	asker  *asker // likewise
}

// Start brings the Deployment up where there is one, waits until it answers, and starts all clients. They go on until
// Stop, or until ctx ends.
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
		if err := l.deploy(ctx, options.Image); err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
	}
	l.run(ctx)
	return l, nil
}

// deploy makes the Deployment and waits until it is as it shall stay, and answers at every node.
func (l *Load) deploy(ctx context.Context, image string) error {
	if err := deploy(ctx, l.client, image); err != nil {
		return err
	}
	l.guard = newGuard(l.client)
	return l.asker.everywhere(ctx)
}

// run starts the clients.
func (l *Load) run(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	l.began, l.waited = time.Now(), processorWait()
	l.all.Go(func() { l.writer.run(ctx) })
	l.all.Go(func() { l.prober.run(ctx) })
	if l.guard != nil {
		l.all.Go(func() { l.guard.watchPods(ctx) })
		l.all.Go(func() { l.guard.watchBudget(ctx) })
		l.all.Go(func() { l.asker.run(ctx) })
	}
}

// Stop ends the clients, reads back every write that was acknowledged, and says what was noticed. The Deployment stays.
func (l *Load) Stop(ctx context.Context) (Report, error) {
	l.cancel()
	l.all.Wait()
	r := Report{Seconds: time.Since(l.began).Seconds(), API: l.prober.outages.closed(time.Now())}
	r.Starved = (processorWait() - l.waited).Seconds() / r.Seconds
	var err error
	if r.Client, err = l.writer.report(ctx); err != nil {
		return r, fmt.Errorf("load: read the writes back: %w", err)
	}
	if l.guard != nil {
		pods := l.guard.report()
		requests, refused := l.asker.report()
		r.Pods, r.Requests, r.Refused = &pods, &requests, refused
	}
	return r, nil
}

// again waits until the next request is due; false when ctx has ended.
func again(ctx context.Context, every time.Duration) bool {
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
