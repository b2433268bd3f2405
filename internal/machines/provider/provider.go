// Package provider defines where Machines come from. A provider needs only to create, find and delete instances; the
// controllers add sets, deployments, rolling replacement, health checks and Node labels. A provider that can do more
// implements [Updater], [Validator] or [Defaulter].
//
// No method blocks. Each does what it can at once and returns a [Waiting] error if there is more to do. The next call,
// possibly in another process, resumes from there. A [Refused] error needs a person. After any other error the call is
// repeated with backoff.
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

// Provider creates and deletes the instances of Machines. Its methods are called concurrently, but never twice at a
// time for one Machine. They do not change the Machine.
type Provider interface {
	// Create creates the Machine's instance, or resumes that. If it returns nil, the instance exists, and its Node will
	// appear without another call.
	Create(ctx context.Context, m *v1alpha1.Machine) (Instance, error)
	// Exists finds the Machine's instance, complete or not. It returns false if Delete would have nothing to remove.
	Exists(ctx context.Context, m *v1alpha1.Machine) (Instance, bool, error)
	// Delete removes the instance, and its Node if that outlives it. It returns nil if there is no instance.
	Delete(ctx context.Context, m *v1alpha1.Machine) error
}

// Updater is a provider that can change existing instances.
type Updater interface {
	// Change returns how an instance of one spec becomes one of another. Both specs have the provider's defaults.
	Change(from, to v1alpha1.MachineSpec) rollout.Change
	// Update makes the instance match the Machine's spec, or resumes that. It is called regularly for every complete
	// instance, and must be cheap if nothing differs.
	Update(ctx context.Context, m *v1alpha1.Machine) error
}

// Validator is a provider that recognizes invalid specs.
type Validator interface {
	// Validate returns an error for the author of the spec. It does no I/O.
	Validate(spec v1alpha1.MachineSpec) error
}

// Defaulter is a provider that fills in missing fields of a spec.
type Defaulter interface {
	// Default returns the completed spec. It does no I/O.
	Default(spec v1alpha1.MachineSpec) v1alpha1.MachineSpec
}

// Instance is what a provider has for a Machine.
type Instance struct {
	// Node is the name of its Node; "" if unknown.
	Node string
	// Addresses are its addresses and names.
	Addresses []corev1.NodeAddress
	// Complete says that Create has nothing left to do. It is not called again once Exists returns this.
	Complete bool
}

// Owns reports whether the Node is labeled as the Machine's. Any other Node of that name is ignored.
func Owns(m *v1alpha1.Machine, n *corev1.Node) bool {
	return n.Labels[desired.OwnerLabel] == string(m.UID)
}

// Waiting reports that there is more to do, but not now.
type Waiting struct {
	// Reason is a condition reason, such as PoolEmpty. Message says the same for people.
	Reason, Message string
	// After is the delay before the next call; 0 leaves it to the caller.
	After time.Duration
}

// Error returns the message.
func (w *Waiting) Error() string { return w.Message }

// Refused reports a spec that cannot be carried out until a person changes it.
type Refused struct {
	Reason  v1alpha1.MachineStatusError
	Message string
}

// Error returns the message.
func (r *Refused) Error() string { return r.Message }

// Set has the available providers by their cloudProvider name.
type Set map[string]Provider

// Unknown reports that a Set lacks the provider of a spec. Another program may handle the object.
type Unknown struct {
	Name string
	Has  []string // the providers of the Set, sorted
}

// Error names the missing provider and the available ones.
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

// Change returns how an instance of one spec becomes one of another. Without an Updater that is Replace.
func (s Set) Change(from, to v1alpha1.MachineSpec) rollout.Change {
	p, err := s.Of(to)
	if err != nil {
		return rollout.Unsupported // a replacement could not be created either
	}
	u, updates := p.(Updater)
	if !updates || from.ProviderSpec.Value.CloudProvider != to.ProviderSpec.Value.CloudProvider {
		return rollout.Replace
	}
	return u.Change(Defaulted(p, from), Defaulted(p, to))
}

// Defaulted returns the spec with its provider's defaults.
func Defaulted(p Provider, spec v1alpha1.MachineSpec) v1alpha1.MachineSpec {
	if d, ok := p.(Defaulter); ok {
		return d.Default(*spec.DeepCopy())
	}
	return spec
}
