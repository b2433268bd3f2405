// Package provider defines the interface between Machines and the infrastructure that they run on. A provider only
// needs to create, find and delete instances. The controllers add sets, deployments, rolling replacement, health checks
// and Node labels. A provider that can do more implements [Updater], [Validator] or [Defaulter].
//
// No method blocks. Each does what is possible immediately, and returns a [Waiting] error if more remains to be done.
// The next call, possibly in another process, continues from there. After a [Refused] error, a person must change the
// spec. After any other error, the call is repeated with backoff.
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

// Provider creates and deletes the instances of Machines. Its methods may be called concurrently, but not for the same
// Machine. They do not change the Machine.
type Provider interface {
	// Create creates the instance of the Machine, or continues to do so. If it returns nil, the instance exists, and
	// its Node will appear without another call.
	Create(ctx context.Context, m *v1alpha1.Machine) (Instance, error)
	// Exists finds the instance of the Machine, even if it is not complete. It returns false if there is nothing to
	// delete.
	Exists(ctx context.Context, m *v1alpha1.Machine) (Instance, bool, error)
	// Delete deletes the instance, and also its Node if that would remain. It returns nil if there is no instance.
	Delete(ctx context.Context, m *v1alpha1.Machine) error
}

// Updater is a provider that can change existing instances.
type Updater interface {
	// Change returns how an instance with one spec is changed to another spec. Both specs contain the defaults of the
	// provider.
	Change(from, to v1alpha1.MachineSpec) rollout.Change
	// Update makes the instance match the spec of the Machine, or continues to do so. It is called regularly for every
	// complete instance, and must be cheap if nothing differs.
	Update(ctx context.Context, m *v1alpha1.Machine) error
}

// Validator is a provider that can validate specs.
type Validator interface {
	// Validate returns an error if the spec is invalid. The author of the spec sees it. It does no I/O.
	Validate(spec v1alpha1.MachineSpec) error
}

// Defaulter is a provider that fills in missing fields of a spec.
type Defaulter interface {
	// Default returns the completed spec. It does no I/O.
	Default(spec v1alpha1.MachineSpec) v1alpha1.MachineSpec
}

// Instance describes the instance of a Machine.
type Instance struct {
	// Node is the name of its Node; "" if unknown.
	Node string
	// Addresses are its addresses and names.
	Addresses []corev1.NodeAddress
	// Complete says that the instance is created completely. Create is not called again once Exists has returned this.
	Complete bool
}

// Owns reports whether the label of the Node says that it belongs to the Machine. Any other Node with the same name is
// ignored.
func Owns(m *v1alpha1.Machine, n *corev1.Node) bool {
	return n.Labels[desired.OwnerLabel] == string(m.UID)
}

// Waiting reports that the operation is not complete and must be continued later.
type Waiting struct {
	// Reason is a condition reason, such as PoolEmpty. Message is its description.
	Reason, Message string
	// After is the delay before the next call; 0 lets the caller choose.
	After time.Duration
}

// Error returns the message.
func (w *Waiting) Error() string { return w.Message }

// Refused reports a spec that is not possible. A person must change it.
type Refused struct {
	Reason  v1alpha1.MachineStatusError
	Message string
}

// Error returns the message.
func (r *Refused) Error() string { return r.Message }

// Set contains the available providers by their cloudProvider name.
type Set map[string]Provider

// Unknown reports that the provider in a spec is not in the Set. Another program may handle the object.
type Unknown struct {
	Name string
	Has  []string // the providers of the Set, sorted
}

// Error names the missing provider and the available ones.
func (u *Unknown) Error() string {
	return fmt.Sprintf("kubeone does not support the provider %q; it supports %s", u.Name,
		strings.Join(u.Has, ", "))
}

// Of returns the provider in a spec. If the Set does not contain it, the error is an *Unknown.
func (s Set) Of(spec v1alpha1.MachineSpec) (Provider, error) {
	name := spec.ProviderSpec.Value.CloudProvider
	if p, ok := s[name]; ok {
		return p, nil
	}
	return nil, &Unknown{Name: name, Has: slices.Sorted(maps.Keys(s))}
}

// Change returns how an instance with one spec is changed to another spec. It returns Replace if the provider is not an
// Updater or differs between the specs, and Unsupported if the new provider is unknown.
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

// Defaulted returns the spec with the defaults of its provider.
func Defaulted(p Provider, spec v1alpha1.MachineSpec) v1alpha1.MachineSpec {
	if d, ok := p.(Defaulter); ok {
		return d.Default(*spec.DeepCopy())
	}
	return spec
}
