package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/text/phrase"
)

// again is when a Machine is looked after again for which something waits that says not when.
const again = 10 * time.Second

// Machines looks after Machines. Its fields must not be changed once it is used.
type Machines struct {
	Client    client.Client // reads from a cache
	Providers provider.Set
	Events    events.EventRecorder
	Now       func() time.Time
}

// Reconcile makes one Machine what its spec says, as far as that goes without waiting.
func (r *Machines) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.Machine{}
	if err := r.Client.Get(ctx, request.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := m.Annotations[v1alpha1.PausedAnnotation]; paused {
		return reconcile.Result{}, nil
	}
	p, err := r.Providers.Of(m.Spec)
	if err != nil {
		leaveAlone(r.Events, m, err)
		return reconcile.Result{}, nil
	}
	before := m.DeepCopy()
	wait, err := r.lookAfter(ctx, m, p)
	if errors.Is(err, errGone) {
		return reconcile.Result{}, nil
	}
	if written := r.writeStatus(ctx, before, m); written != nil && !apierrors.IsNotFound(written) {
		err = errors.Join(err, written)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil // somebody was faster; the cache will say how
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// errGone says that the Machine is no more: it has no status to write.
var errGone = errors.New("the Machine is gone")

// lookAfter does what can be done now, and notes in the status what is so. It returns when to look again; 0 for when
// something changes.
func (r *Machines) lookAfter(ctx context.Context, m *v1alpha1.Machine, p provider.Provider) (time.Duration, error) {
	m.Status.ObservedGeneration = m.Generation
	if m.DeletionTimestamp != nil {
		return r.deleteInstance(ctx, m, p)
	}
	complete := m.DeepCopy()
	complete.Spec = provider.Defaulted(p, m.Spec)
	wrong := complete.Spec.ValidateNodeMetadata()
	if v, ok := p.(provider.Validator); ok {
		wrong = errors.Join(wrong, v.Validate(complete.Spec))
	}
	if wrong != nil {
		err := errors.Join(&provider.Refused{Reason: v1alpha1.InvalidConfiguration, Message: wrong.Error()},
			r.observeNode(ctx, p, complete, m))
		return r.resultOf(m, err)
	}
	if err := r.setFinalizer(ctx, m, controllerutil.AddFinalizer); err != nil {
		return 0, err
	}
	return r.resultOf(m, r.ensureInstance(ctx, p, complete, m))
}

// observeNode notes what a Machine's Node says, if it has an instance, and changes neither.
func (r *Machines) observeNode(ctx context.Context, p provider.Provider, complete, m *v1alpha1.Machine) error {
	instance, found, err := p.Exists(ctx, complete)
	if err != nil || !found || instance.Node == "" {
		return err
	}
	_, err = r.noteNode(ctx, m, instance)
	return err
}

// setFinalizer adds or removes the finalizer, and leaves the status as it is here.
func (r *Machines) setFinalizer(ctx context.Context, m *v1alpha1.Machine,
	change func(client.Object, string) bool) error {
	before := m.DeepCopy()
	if !change(m, v1alpha1.MachineFinalizer) {
		return nil
	}
	err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	m.Status = before.Status
	return err
}

// ensureInstance sees to it that the instance is there, and its Node as it is wanted.
func (r *Machines) ensureInstance(ctx context.Context, p provider.Provider, complete, m *v1alpha1.Machine) error {
	instance, found, err := p.Exists(ctx, complete)
	without := err == nil && !found
	if err == nil && (!found || !instance.Complete) {
		instance, err = p.Create(ctx, complete)
		found = err == nil || instance.Node != ""
	}
	r.setAllocatedCondition(m, found, err)
	if without && !found {
		m.Status.Addresses = nil
		if m.Status.NodeRef != nil { // of a host that it has no more
			forgetNode(m)
			setCondition(m, machine.ConditionReady, metav1.ConditionFalse, reasonNoNode, "it has no host")
		}
	}
	var failed error // of the Node, which the instance does not wait for
	if instance.Node != "" {
		m.Status.Addresses = instance.Addresses
		failed = r.syncNode(ctx, m, instance)
	}
	if err != nil && found {
		notReady(m, err)
	}
	if err == nil && instance.Complete {
		err = r.updateInstance(ctx, p, complete, m)
	}
	return errors.Join(err, failed)
}

// updateInstance has a provider that can do so change the instance. Of one that cannot, another kubelet than the
// Machine was made with is refused: whoever owns the Machine replaces it.
func (r *Machines) updateInstance(ctx context.Context, p provider.Provider, complete, m *v1alpha1.Machine) error {
	var err error
	if u, ok := p.(provider.Updater); ok {
		err = u.Update(ctx, complete)
	} else if v := m.Status.Versions; v != nil && trimVersion(v.Kubelet) != trimVersion(m.Spec.Versions.Kubelet) {
		err = &provider.Refused{Reason: v1alpha1.UnsupportedChange, Message: "the provider " +
			m.Spec.ProviderSpec.Value.CloudProvider + " does not change machines that there are: delete this one, " +
			"and create another"}
	}
	status, reason, message := metav1.ConditionFalse, reasonAsWanted, ""
	if err != nil {
		reason, message = reasonOf(err), err.Error()
		if nodeDiffers(m) || underWay(m, err) || isReconfiguring(err) {
			status = metav1.ConditionTrue
		}
	}
	setCondition(m, machine.ConditionUpdating, status, reason, message)
	r.setSettingsCondition(m, err)
	return err
}

// setSettingsCondition notes whether the Machine's host has the settings that are wanted, once it had not: where nobody
// has ever waited for any, nothing is written. An Event says which are refused.
func (r *Machines) setSettingsCondition(m *v1alpha1.Machine, err error) {
	before := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionSettings)
	var waiting *provider.Waiting
	switch {
	case err == nil && before != nil:
		setCondition(m, machine.ConditionSettings, metav1.ConditionTrue, reasonAsRecorded, "")
	case !errors.As(err, &waiting):
	case waiting.Reason == provider.SettingsRefused:
		message := phrase.Shorten(waiting.Message, longest)
		if before == nil || before.Reason != provider.SettingsRefused || before.Message != message {
			r.Events.Eventf(m, nil, corev1.EventTypeWarning, provider.SettingsRefused, "Reconcile", "%s", message)
		}
		fallthrough
	case waiting.Reason == provider.SettingsAwaited, waiting.Reason == provider.Reconfiguring:
		setCondition(m, machine.ConditionSettings, metav1.ConditionFalse, waiting.Reason, waiting.Message)
	}
}

// isReconfiguring reports whether the Machine's host is being given other settings.
func isReconfiguring(err error) bool {
	var waiting *provider.Waiting
	return errors.As(err, &waiting) && waiting.Reason == provider.Reconfiguring
}

// nodeDiffers reports whether the Machine's Node is known not to run what the spec names: until it does, a change of it
// is under way. A look at a host that is as it was, or that is silent, is none, and its Machine may be replaced.
func nodeDiffers(m *v1alpha1.Machine) bool {
	is, want := m.Status.Versions, m.Spec.Versions
	if is == nil {
		return true
	}
	runtime := want.ContainerRuntime != nil && want.ContainerRuntime.Version != "" && is.ContainerRuntime != nil &&
		trimVersion(is.ContainerRuntime.Version) != trimVersion(want.ContainerRuntime.Version)
	return runtime || trimVersion(is.Kubelet) != trimVersion(want.Kubelet)
}

// underWay reports whether a change has not ended although the Node runs what the spec names: it may still be closed.
func underWay(m *v1alpha1.Machine, err error) bool {
	var waiting *provider.Waiting
	return errors.As(err, &waiting) && waiting.Reason == provider.Working &&
		meta.IsStatusConditionTrue(m.Status.Conditions, machine.ConditionUpdating)
}

// deleteInstance returns the instance of a Machine that is deleted, and lets the object go.
func (r *Machines) deleteInstance(ctx context.Context, m *v1alpha1.Machine, p provider.Provider) (time.Duration,
	error) {
	if !controllerutil.ContainsFinalizer(m, v1alpha1.MachineFinalizer) {
		return 0, errGone // it waits for somebody else's finalizer, or is no more
	}
	err := p.Delete(ctx, m)
	if err == nil {
		if err = client.IgnoreNotFound(r.setFinalizer(ctx, m, controllerutil.RemoveFinalizer)); err == nil {
			err = errGone
		}
		return 0, err
	}
	m.Status.Phase = v1alpha1.Deleting
	setCondition(m, machine.ConditionReady, metav1.ConditionFalse, reasonOf(err), err.Error())
	wait, err := r.resultOf(m, err)
	m.Status.Phase = v1alpha1.Deleting
	return wait, err
}

// setAllocatedCondition notes whether the provider has something for the Machine.
func (r *Machines) setAllocatedCondition(m *v1alpha1.Machine, found bool, err error) {
	switch {
	case found:
		setCondition(m, machine.ConditionAllocated, metav1.ConditionTrue, reasonAllocated, "")
	case err != nil:
		setCondition(m, machine.ConditionAllocated, metav1.ConditionFalse, reasonOf(err), err.Error())
	}
}

// notReady notes why the instance is not complete: as long as its Node is not ready, that is why.
func notReady(m *v1alpha1.Machine, err error) {
	if c := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady); c != nil &&
		c.Status != metav1.ConditionTrue {
		setCondition(m, machine.ConditionReady, c.Status, reasonOf(err), err.Error())
	}
}

// reasonOf is an error in one word.
func reasonOf(err error) string {
	var refused *provider.Refused
	var waiting *provider.Waiting
	switch {
	case errors.As(err, &refused):
		return string(refused.Reason)
	case errors.As(err, &waiting):
		return waiting.Reason
	}
	return provider.Retrying
}

// resultOf notes what came of it, and says when to look again.
func (r *Machines) resultOf(m *v1alpha1.Machine, err error) (time.Duration, error) {
	m.Status.ErrorReason, m.Status.ErrorMessage = nil, nil
	m.Status.Phase = phaseOf(m)
	var refused *provider.Refused
	var waiting *provider.Waiting
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &refused):
		if m.Status.NodeRef != nil && m.DeletionTimestamp == nil { // it is not what its template says
			setCondition(m, machine.ConditionUpdating, metav1.ConditionTrue, string(refused.Reason), refused.Message)
		}
		message := phrase.Shorten(refused.Message, longest)
		m.Status.ErrorReason, m.Status.ErrorMessage, m.Status.Phase = &refused.Reason, &message, v1alpha1.Failed
		return 0, nil
	case errors.As(err, &waiting):
		if waiting.After > 0 {
			return waiting.After, nil
		}
		return again, nil
	}
	r.Events.Eventf(m, nil, corev1.EventTypeWarning, provider.Retrying, "Reconcile", "%s",
		phrase.Shorten(err.Error(), longest))
	return 0, err
}

// phaseOf is one word for what the conditions say.
func phaseOf(m *v1alpha1.Machine) v1alpha1.MachinePhase {
	is := func(c string) bool { return meta.IsStatusConditionTrue(m.Status.Conditions, c) }
	switch {
	case is(machine.ConditionUpdating):
		return v1alpha1.Updating
	case m.Status.NodeRef != nil:
		return v1alpha1.Running
	case is(machine.ConditionAllocated):
		return v1alpha1.Provisioning
	}
	return v1alpha1.Pending
}

// writeStatus writes the status if it is another one.
func (r *Machines) writeStatus(ctx context.Context, before, m *v1alpha1.Machine) error {
	m.Status.LastUpdated = before.Status.LastUpdated
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	now := metav1.NewTime(r.Now())
	m.Status.LastUpdated = &now
	was := m.DeepCopy()
	was.Status = before.Status
	if from, to := before.Status.Phase, m.Status.Phase; from != to {
		r.Events.Eventf(m, nil, corev1.EventTypeNormal, string(to), "Reconcile", "%s", describeState(m))
	}
	r.tellReadiness(before, m)
	return r.Client.Status().Patch(ctx, m, client.MergeFrom(was))
}

// tellReadiness tells of a Node that is not ready any more, and of one that is again.
func (r *Machines) tellReadiness(before, m *v1alpha1.Machine) {
	is := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
	had := meta.FindStatusCondition(before.Status.Conditions, machine.ConditionReady)
	if is == nil || had == nil || m.DeletionTimestamp != nil || before.Status.NodeRef == nil {
		return
	}
	ready, wasReady := is.Status == metav1.ConditionTrue, had.Status == metav1.ConditionTrue
	switch {
	case wasReady && !ready:
		r.Events.Eventf(m, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", is.Message)
	case ready && !wasReady:
		r.Events.Eventf(m, nil, corev1.EventTypeNormal, is.Reason, "Reconcile", "%s", is.Message)
	}
}

// describeState says in a sentence where the Machine is.
func describeState(m *v1alpha1.Machine) string {
	switch {
	case m.Status.ErrorMessage != nil:
		return *m.Status.ErrorMessage
	case m.Status.NodeRef != nil:
		return fmt.Sprintf("its Node is %s", m.Status.NodeRef.Name)
	}
	for _, name := range []string{machine.ConditionUpdating, machine.ConditionAllocated} {
		if c := meta.FindStatusCondition(m.Status.Conditions, name); c != nil && c.Message != "" {
			return phrase.Shorten(c.Message, longest)
		}
	}
	return "it is " + string(m.Status.Phase)
}

func setCondition(m *v1alpha1.Machine, name string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: phrase.Shorten(message, longest),
		ObservedGeneration: m.Generation,
	})
}

// longest is how much of a text from elsewhere a status or an Event has, in bytes.
const longest = 1024
