// Package provider is where Machines come from. A provider that can create, find and delete gets everything else of the
// Machine API by that: sets, deployments, rolling updates by replacement, health, Node labels. One that can do more
// says so by implementing [Updater], [Validator] or [Defaulter].
//
// No method waits. Each does what can be done at once, and says with a [Waiting] error what it waits for; it is called
// again then, and goes on from whatever an earlier call has left, also one of another process. What a person has to put
// right is a [Refused] error. Any other error passes by itself: the call is repeated, later each time.
package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/model/desired"
)

// Provider makes and removes what Machines stand for. Its methods are called concurrently, but for one Machine at a
// time. They do not change the Machine that they are given.
type Provider interface {
	// Create makes the Machine's instance, or goes on with that. Without an error the instance is there, and its Node
	// comes by itself.
	Create(ctx context.Context, m *v1alpha1.Machine) (Instance, error)
	// Exists finds the Machine's instance, complete or not. It is false if there is nothing that Delete would remove.
	Exists(ctx context.Context, m *v1alpha1.Machine) (Instance, bool, error)
	// Delete removes the instance, and its Node if it outlives it. Of a Machine without one it is no error.
	Delete(ctx context.Context, m *v1alpha1.Machine) error
}

// Updater is a provider that changes instances that there are.
type Updater interface {
	// Change says what it takes to make an instance of one spec one of another. Both have the provider's defaults.
	Change(from, to v1alpha1.MachineSpec) rollout.Change
	// Update makes the instance what the Machine's spec says, or goes on with that. It is called of every complete
	// instance now and then: where nothing differs it does nothing, and asks little.
	Update(ctx context.Context, m *v1alpha1.Machine) error
}

// Validator is a provider that knows specs which nobody can carry out.
type Validator interface {
	// Validate is an error in words for whoever wrote the spec. It asks nobody.
	Validate(spec v1alpha1.MachineSpec) error
}

// Defaulter is a provider that fills in what a spec leaves open.
type Defaulter interface {
	// Default returns the spec complete. It asks nobody.
	Default(spec v1alpha1.MachineSpec) v1alpha1.MachineSpec
}

// Instance is what a provider has for a Machine.
type Instance struct {
	// Node is the name of its Node; "" while that is not known.
	Node string
	// Addresses are its addresses and names.
	Addresses []corev1.NodeAddress
	// Complete says that Create has nothing left to do: once Exists says so, Create is not called again.
	Complete bool
}

// Owns reports whether the Node is the Machine's, by its label. One of its name that is not is left alone.
func Owns(m *v1alpha1.Machine, n *corev1.Node) bool {
	return n.Labels[desired.OwnerLabel] == string(m.UID)
}

// Waiting says that there is more to do, and nothing that can be done now.
type Waiting struct {
	// Reason is one word for a condition, such as PoolEmpty; Message says the same to people.
	Reason, Message string
	// After is when to ask again; 0 leaves it to whoever asks.
	After time.Duration
}

// Error is the message.
func (w *Waiting) Error() string { return w.Message }

// Refused says that nothing will come of it as long as the spec stays as it is.
type Refused struct {
	Reason  v1alpha1.MachineStatusError
	Message string
}

// Error is the message.
func (r *Refused) Error() string { return r.Message }

// Set is the providers that there are, by the name that a Machine's cloudProvider has.
type Set map[string]Provider

// Unknown says that a Set does not have the provider of a spec. Another program may have it, and look after the object.
type Unknown struct {
	Name string
	Has  []string // the providers of the Set, sorted
}

// Error names the provider, and those that there are.
func (u *Unknown) Error() string {
	return fmt.Sprintf("the provider %q is not built into this program, which has %s", u.Name,
		strings.Join(u.Has, ", "))
}

// Of returns the provider of a spec. Its error is an *Unknown.
func (s Set) Of(spec v1alpha1.MachineSpec) (Provider, error) {
	name := spec.ProviderSpec.Value.CloudProvider
	if p, ok := s[name]; ok {
		return p, nil
	}
	return nil, &Unknown{Name: name, Has: slices.Sorted(maps.Keys(s))}
}

// Change says what it takes to make an instance of one spec one of another. A provider that says nothing of it
// replaces.
func (s Set) Change(from, to v1alpha1.MachineSpec) rollout.Change {
	p, err := s.Of(to)
	if err != nil {
		return rollout.Unsupported // new ones would not come either
	}
	u, updates := p.(Updater)
	if !updates || from.ProviderSpec.Value.CloudProvider != to.ProviderSpec.Value.CloudProvider {
		return rollout.Replace
	}
	return u.Change(Defaulted(p, from), Defaulted(p, to))
}

// Defaulted is the spec with what its provider fills in.
func Defaulted(p Provider, spec v1alpha1.MachineSpec) v1alpha1.MachineSpec {
	if d, ok := p.(Defaulter); ok {
		return d.Default(*spec.DeepCopy())
	}
	return spec
}
