package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/cluster"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/provider/fake"
	"kubeone/test/lab/apiserver"
)

// machinesRatioLimit limits the cost of a Machine in the largest deployment, relative to the smallest.
const machinesRatioLimit = 1.3

// The controllers are idle once they have written only Leases for quietFor; they get at most quietWithin for that. Then
// they are watched for idleFor.
const (
	quietFor    = 3 * time.Second
	quietWithin = 5 * time.Minute
	idleFor     = 30 * time.Second
)

// machinesResult measures the controllers with the fake provider against a real API server and etcd on this machine.
type machinesResult struct {
	Sizes []machinesOfSize `json:"sizes"`
	// RequestsRatio and CPURatio compare the cost of one Machine in the largest deployment with one in the smallest.
	RequestsRatio float64 `json:"requestsRatio"`
	CPURatio      float64 `json:"cpuRatio"`
	Within        bool    `json:"within"`
}

// machinesOfSize measures the life of one MachineDeployment.
type machinesOfSize struct {
	Machines int           `json:"machines"`
	Create   machinesPhase `json:"create"` // until all are Running
	Roll     machinesPhase `json:"roll"`   // until all are replaced, maxSurge 10 %, maxUnavailable 0
	// IdleWrites counts requests other than GET, without those for Leases, after the last work has ended.
	IdleWrites int `json:"idleWrites"`
	MemoryMB   int `json:"memoryMB"` // the most that the controllers had resident
}

// machinesPhase is the cost of one phase.
type machinesPhase struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"` // of the controllers
	Requests   int64   `json:"requests"`   // of the controllers, without those of the provider
}

func (b *bench) measureMachines(ctx context.Context) (*machinesResult, error) {
	var r machinesResult
	for _, count := range b.machines {
		one, err := b.machinesOf(ctx, count)
		if err != nil {
			return nil, fmt.Errorf("%d Machines: %w", count, err)
		}
		r.Sizes = append(r.Sizes, one)
	}
	few, many := r.Sizes[0], r.Sizes[len(r.Sizes)-1]
	each := func(of machinesOfSize) (requests, cpu float64) {
		return float64(of.Create.Requests+of.Roll.Requests) / float64(of.Machines),
			(of.Create.CPUSeconds + of.Roll.CPUSeconds) / float64(of.Machines)
	}
	fewRequests, fewCPU := each(few)
	manyRequests, manyCPU := each(many)
	r.RequestsRatio, r.CPURatio = manyRequests/fewRequests, manyCPU/fewCPU
	r.Within = r.RequestsRatio <= machinesRatioLimit && r.CPURatio <= machinesRatioLimit
	for _, of := range r.Sizes {
		r.Within = r.Within && of.IdleWrites == 0
	}
	return &r, nil
}

// measured is a cluster whose controllers are measured.
type measured struct {
	client.WithWatch
	report func() (usageReport, error)
	log    func(string, ...any)
	count  int32
}

// machinesOf measures one MachineDeployment with count Machines, in an API server of its own.
func (b *bench) machinesOf(ctx context.Context, count int) (out machinesOfSize, err error) {
	config, stop, err := apiserver.Run(ctx, "1.36.3", b.log)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	kubeconfig := filepath.Join(b.dir, "machines.conf")
	if err := writeKubeconfig(kubeconfig, config); err != nil {
		return out, err
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return out, err
	}
	c, err := cluster.Connect(cluster.Access{Kubeconfig: text})
	if err != nil {
		return out, err
	}
	defer c.Close()
	if err := c.DefineKinds(ctx); err != nil {
		return out, err
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return out, err
	}
	m := measured{log: b.log, count: int32(count)}
	if m.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return out, err
	}
	report, end, err := startFakeControllers(ctx, kubeconfig)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, end()) }()
	m.report = report
	out.Machines = count
	return out, m.measureLife(ctx, &out)
}

// measureLife creates the deployment, watches it while idle, rolls it out, and measures each phase.
func (m measured) measureLife(ctx context.Context, out *machinesOfSize) error {
	labels := map[string]string{"bench": "machines"}
	surge, none := intstr.FromString("10%"), intstr.FromInt32(0)
	d := &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bench"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: &m.count, Selector: metav1.LabelSelector{MatchLabels: labels},
			Strategy: &v1alpha1.MachineDeploymentStrategy{
				RollingUpdate: &v1alpha1.MachineRollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &none},
			},
		},
	}
	d.Spec.Template.ObjectMeta.Labels = labels
	d.Spec.Template.Spec.ProviderSpec.Value.CloudProvider = fake.Name
	d.Spec.Template.Spec.Versions.Kubelet = "1.36.1"
	var err error
	if out.Create, err = m.measurePhase(ctx, "made", func() error { return m.Create(ctx, d) }); err != nil {
		return err
	}
	before, err := awaitIdle(ctx, m.report)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleFor):
	}
	after, err := m.report()
	if err != nil {
		return err
	}
	out.IdleWrites = int(after.Writes - before.Writes)
	out.Roll, err = m.measurePhase(ctx, "replaced", func() error {
		if err := m.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		changed := d.DeepCopy()
		changed.Spec.Template.Spec.Versions.Kubelet = "1.36.3"
		return m.Patch(ctx, changed, client.MergeFrom(d))
	})
	if err != nil {
		return err
	}
	last, err := m.report()
	out.MemoryMB = last.MemoryMB
	return err
}

// awaitIdle waits until the controllers have stopped writing, and returns their report. Work that is left from the last
// change is not idleness.
func awaitIdle(ctx context.Context, report func() (usageReport, error)) (usageReport, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, quietWithin,
		fmt.Errorf("the controllers go on writing after %s, although nothing is left to do", quietWithin))
	defer cancel()
	const every = 100 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last, err := report()
	for since := time.Now(); err == nil && time.Since(since) < quietFor; {
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-ticker.C:
		}
		before := last.Writes
		if last, err = report(); last.Writes != before {
			since = time.Now()
		}
	}
	return last, err
}

// measurePhase applies a change, waits until all Machines match the deployment, and returns the cost.
func (m measured) measurePhase(ctx context.Context, what string, change func() error) (out machinesPhase, err error) {
	before, err := m.report()
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := change(); err != nil {
		return out, err
	}
	if err := m.awaitSettled(ctx, what); err != nil {
		return out, err
	}
	after, err := m.report()
	return machinesPhase{
		Seconds: time.Since(began).Seconds(), CPUSeconds: after.CPUSeconds - before.CPUSeconds,
		Requests: after.Requests - before.Requests,
	}, err
}

// awaitSettled waits until the deployment reports that all Machines are new and ready and that there are no extra ones.
func (m measured) awaitSettled(ctx context.Context, what string) error {
	watch, err := m.Watch(ctx, &v1alpha1.MachineDeploymentList{}, &client.ListOptions{
		Namespace: metav1.NamespaceSystem, FieldSelector: fields.OneTermEqualSelector("metadata.name", "bench"),
	})
	if err != nil {
		return err
	}
	defer watch.Stop()
	told := time.Now()
	for event := range watch.ResultChan() {
		d, ok := event.Object.(*v1alpha1.MachineDeployment)
		if !ok {
			return fmt.Errorf("the watch ends with %v", event.Object)
		}
		s := d.Status
		if s.ObservedGeneration == d.Generation && s.Replicas == m.count && s.ReadyReplicas == m.count &&
			s.UpdatedReplicas == m.count {
			return nil
		}
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			m.log("%d of %d Machines %s", s.UpdatedReplicas, m.count, what)
		}
	}
	return errors.Join(errors.New("the watch has ended"), ctx.Err())
}

func (p *printer) printMachines(r machinesResult) {
	p.printLine("\nmachines: the controllers with the provider fake, in front of an API server and etcd")
	each := func(of machinesPhase, machines int) string {
		return fmt.Sprintf("%.1f s, %.1f requests and %.1f ms of processors each", of.Seconds,
			float64(of.Requests)/float64(machines), of.CPUSeconds*1000/float64(machines))
	}
	for _, of := range r.Sizes {
		p.printLine("  %d Machines, %d MB: made in %s; replaced in %s; %d writes in %v of nothing to do", of.Machines,
			of.MemoryMB, each(of.Create, of.Machines), each(of.Roll, of.Machines), of.IdleWrites, idleFor)
	}
	p.printLine("  a Machine of the most costs %.2f of the requests and %.2f of the processors of one of the fewest "+
		"(%s the limit of %.1f)", r.RequestsRatio, r.CPURatio, limitWord(r.Within), machinesRatioLimit)
}

// sizes is a flag value: ascending numbers, separated by commas.
type sizes []int

// String implements flag.Value.
func (s *sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*s)), " ", ","), "[]")
}

// Set implements flag.Value.
func (s *sizes) Set(text string) error {
	*s = nil
	last := 0
	for _, one := range strings.Split(text, ",") {
		n, err := strconv.Atoi(one)
		if err != nil || n <= last || n > 20000 {
			return errors.New("numbers from 1 to 20000, each larger than the one before it")
		}
		last, *s = n, append(*s, n)
	}
	return nil
}
