// Package fake is a provider that keeps machines in memory, for tests and benchmarks of the controllers. It can only
// create, find and delete machines. Its Nodes are objects in the API server without a kubelet.
package fake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/desired"
)

// Name is the provider's name in a Machine's cloudProvider.
const Name = "fake"

// Operation is a method of a provider that can fail.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Delete Operation = "delete"
)

// Options set delays and faults.
type Options struct {
	// CreateDelay and DeleteDelay are how long it takes to create or delete a machine; 0 means no delay.
	CreateDelay, DeleteDelay time.Duration
	// Fault is called before each operation, possibly concurrently. If it returns an error, the operation fails with
	// this error. Nil disables faults.
	Fault func(op Operation, m *v1alpha1.Machine) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Provider keeps machines in memory.
type Provider struct {
	nodes   client.Client
	options Options

	mu       sync.Mutex
	machines map[types.UID]*state
}

var _ provider.Provider = (*Provider)(nil)

// state is one machine.
type state struct {
	due     time.Time // when it is created
	leaving time.Time // when it is deleted; zero unless Delete was called
	node    string
}

// New returns a provider without machines that creates Nodes with the client.
func New(nodes client.Client, o Options) *Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fault == nil {
		o.Fault = func(Operation, *v1alpha1.Machine) error { return nil }
	}
	return &Provider{nodes: nodes, options: o, machines: map[types.UID]*state{}}
}

// Count returns the number of machines.
func (p *Provider) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.machines)
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, m *v1alpha1.Machine) (provider.Instance, error) {
	if err := p.options.Fault(Create, m); err != nil {
		return provider.Instance{}, err
	}
	p.mu.Lock()
	s := p.machines[m.UID]
	if s == nil {
		s = &state{due: p.options.Now().Add(p.options.CreateDelay), node: m.Name}
		p.machines[m.UID] = s
	}
	left := s.due.Sub(p.options.Now())
	p.mu.Unlock()
	if left > 0 {
		return s.asInstance(false), &provider.Waiting{
			Reason: "Creating", Message: "the machine is being created", After: left,
		}
	}
	if err := p.createNode(ctx, m); err != nil {
		return s.asInstance(false), err
	}
	return s.asInstance(true), nil
}

// Exists implements provider.Provider.
func (p *Provider) Exists(_ context.Context, m *v1alpha1.Machine) (provider.Instance, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.machines[m.UID]
	if s == nil {
		return provider.Instance{}, false, nil
	}
	return s.asInstance(m.Status.NodeRef != nil), true, nil
}

// Delete implements provider.Provider.
func (p *Provider) Delete(ctx context.Context, m *v1alpha1.Machine) error {
	if err := p.options.Fault(Delete, m); err != nil {
		return err
	}
	p.mu.Lock()
	s := p.machines[m.UID]
	if s == nil {
		p.mu.Unlock()
		return nil
	}
	if s.leaving.IsZero() {
		s.leaving = p.options.Now().Add(p.options.DeleteDelay)
	}
	left := s.leaving.Sub(p.options.Now())
	p.mu.Unlock()
	if left > 0 {
		return &provider.Waiting{Reason: "Deleting", Message: "the machine is being deleted", After: left}
	}
	if err := client.IgnoreNotFound(p.deleteNode(ctx, m, s.node)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.machines, m.UID)
	return nil
}

// deleteNode deletes the Node of the machine, but not a Node with that name that belongs to another machine.
func (p *Provider) deleteNode(ctx context.Context, m *v1alpha1.Machine, name string) error {
	node := &corev1.Node{}
	if err := p.nodes.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	if !provider.Owns(m, node) {
		return nil
	}
	return p.nodes.Delete(ctx, node, client.Preconditions{UID: &node.UID})
}

func (s *state) asInstance(complete bool) provider.Instance {
	return provider.Instance{Node: s.node, Complete: complete}
}

var errNode = errors.New("a Node of this name belongs to another machine")

// createNode creates the Node of the machine and reports it as ready.
func (p *Provider) createNode(ctx context.Context, m *v1alpha1.Machine) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, Labels: map[string]string{desired.OwnerLabel: string(m.UID)},
	}}
	switch err := p.nodes.Create(ctx, node); {
	case apierrors.IsAlreadyExists(err):
		if err := p.nodes.Get(ctx, client.ObjectKey{Name: m.Name}, node); err != nil {
			return err
		}
		if !provider.Owns(m, node) {
			return fmt.Errorf("%s: %w", m.Name, errNode)
		}
	case err != nil:
		return err
	}
	return p.reportNode(ctx, node, corev1.ConditionTrue, m.Spec.Versions.Kubelet)
}

// Break sets the Ready condition of the Node to Unknown, as if the machine had stopped.
func (p *Provider) Break(ctx context.Context, m *v1alpha1.Machine) error {
	node := &corev1.Node{}
	if err := p.nodes.Get(ctx, client.ObjectKey{Name: m.Name}, node); err != nil {
		return err
	}
	return p.reportNode(ctx, node, corev1.ConditionUnknown, m.Spec.Versions.Kubelet)
}

func (p *Provider) reportNode(ctx context.Context, node *corev1.Node, ready corev1.ConditionStatus,
	kubelet string) error {
	before := node.DeepCopy()
	now := metav1.NewTime(p.options.Now())
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	node.Status.NodeInfo.KubeletVersion = "v" + kubelet
	return p.nodes.Status().Patch(ctx, node, client.MergeFrom(before))
}
