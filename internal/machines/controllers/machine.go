package controllers

import (
	"context"
	"errors"
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

// defaultRequeue is the requeue delay for a Waiting error without a delay.
const defaultRequeue = 10 * time.Second

// Machines reconciles Machines. Its fields must not be changed after the first use.
type Machines struct {
	Client    client.Client // reads from a cache
	Providers provider.Set
	Events    events.EventRecorder
	Now       func() time.Time
}

// Reconcile takes the next step to make one Machine match its spec. It does not block; it requeues the Machine instead.
func (r *Machines) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.Machine{}
	if err := r.Client.Get(ctx, request.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := m.Annotations[v1alpha1.PausedAnnotation]; paused {
		return reconcile.Result{}, nil
	}
	if m.Spec.ProviderSpec.Value.CloudProvider == v1alpha1.ProviderStatic {
		return reconcile.Result{}, nil // it is a host of the Cluster
	}
	p, err := r.Providers.Of(m.Spec)
	if err != nil {
		reportIgnored(r.Events, m, err)
		return reconcile.Result{}, nil
	}
	before := m.DeepCopy()
	wait, err := r.reconcileMachine(ctx, m, p)
	if errors.Is(err, errDeleted) {
		return reconcile.Result{}, nil
	}
	if written := r.writeStatus(ctx, before, m); written != nil && !apierrors.IsNotFound(written) {
		err = errors.Join(err, written)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil // another write came first; the cache will show it
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// errDeleted reports that the Machine was deleted, so that there is no status to write.
var errDeleted = errors.New("the Machine no longer exists")

// reconcileMachine does what is possible now and updates m.Status in memory. It returns the requeue delay; 0 means that
// the next change of the Machine or its Node triggers the next call.
func (r *Machines) reconcileMachine(ctx context.Context, m *v1alpha1.Machine, p provider.Provider,
) (time.Duration, error) {
	m.Status.ObservedGeneration = m.Generation
	if m.DeletionTimestamp != nil {
		return r.deleteInstance(ctx, m, p)
	}
	complete := m.DeepCopy()
	complete.Spec = provider.Defaulted(p, m.Spec)
	invalid := complete.Spec.ValidateNodeMetadata()
	if v, ok := p.(provider.Validator); ok {
		invalid = errors.Join(invalid, v.Validate(complete.Spec))
	}
	if invalid != nil {
		err := errors.Join(&provider.Refused{Reason: v1alpha1.InvalidConfiguration, Message: invalid.Error()},
			r.observeNode(ctx, p, complete, m))
		return r.recordResult(m, err)
	}
	if err := r.setFinalizer(ctx, m, controllerutil.AddFinalizer); err != nil {
		return 0, err
	}
	return r.recordResult(m, r.ensureInstance(ctx, p, complete, m))
}

// observeNode records the state of the Node that belongs to the Machine, if there is one. It changes neither the Node
// nor the instance.
func (r *Machines) observeNode(ctx context.Context, p provider.Provider, complete, m *v1alpha1.Machine) error {
	instance, found, err := p.Exists(ctx, complete)
	if err != nil || !found || instance.Node == "" {
		return err
	}
	_, err = r.recordNode(ctx, m, instance)
	return err
}

// setFinalizer adds or removes the finalizer, depending on change. It keeps m.Status, which is not written yet.
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

// ensureInstance creates or updates the instance and syncs its Node. An error about the Node does not stop work on the
// instance; both errors are returned.
func (r *Machines) ensureInstance(ctx context.Context, p provider.Provider, complete, m *v1alpha1.Machine) error {
	instance, found, err := p.Exists(ctx, complete)
	missing := err == nil && !found
	if err == nil && (!found || !instance.Complete) {
		instance, err = p.Create(ctx, complete)
		found = err == nil || instance.Node != ""
	}
	r.setAllocatedCondition(m, found, err)
	if missing && !found {
		m.Status.Addresses = nil
		if m.Status.NodeRef != nil { // this Node belongs to a previous host
			clearNode(m)
			setCondition(m, machine.ConditionReady, metav1.ConditionFalse, reasonNoNode, "the Machine has no host")
		}
	}
	var nodeErr error
	if instance.Node != "" {
		m.Status.Addresses = instance.Addresses
		nodeErr = r.syncNode(ctx, m, instance)
	}
	if err != nil && found {
		explainNotReady(m, err)
	}
	if err == nil && instance.Complete {
		err = r.updateInstance(ctx, p, complete, m)
	}
	return errors.Join(err, nodeErr)
}

// updateInstance updates the instance if its provider implements provider.Updater. Otherwise it refuses a new kubelet
// version, and the owner of the Machine replaces it.
func (r *Machines) updateInstance(ctx context.Context, p provider.Provider, complete, m *v1alpha1.Machine) error {
	var err error
	if u, ok := p.(provider.Updater); ok {
		err = u.Update(ctx, complete)
	} else if v := m.Status.Versions; v != nil && trimVersion(v.Kubelet) != trimVersion(m.Spec.Versions.Kubelet) {
		err = &provider.Refused{Reason: v1alpha1.UnsupportedChange, Message: "the provider " +
			m.Spec.ProviderSpec.Value.CloudProvider + " cannot change existing machines: delete this Machine and " +
			"create another"}
	}
	status, reason, message := metav1.ConditionFalse, reasonAsWanted, ""
	if err != nil {
		reason, message = reasonOf(err), err.Error()
		if nodeDiffers(m) || isFinishingUpdate(m, err) || isReconfiguring(err) {
			status = metav1.ConditionTrue
		}
	}
	setCondition(m, machine.ConditionUpdating, status, reason, message)
	r.setSettingsCondition(m, err)
	return err
}

// setSettingsCondition records whether the host has the desired settings. The condition is first set when they differ.
// If the host reverted the settings, it also records an Event.
func (r *Machines) setSettingsCondition(m *v1alpha1.Machine, err error) {
	before := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionSettings)
	var waiting *provider.Waiting
	switch {
	case err == nil && before != nil:
		setCondition(m, machine.ConditionSettings, metav1.ConditionTrue, reasonAsRecorded, "")
	case !errors.As(err, &waiting):
	case waiting.Reason == provider.SettingsRefused:
		message := phrase.Shorten(waiting.Message, maxTextLength)
		if before == nil || before.Reason != provider.SettingsRefused || before.Message != message {
			r.Events.Eventf(m, nil, corev1.EventTypeWarning, provider.SettingsRefused, "Reconcile", "%s", message)
		}
		fallthrough
	case waiting.Reason == provider.SettingsAwaited, waiting.Reason == provider.Reconfiguring:
		setCondition(m, machine.ConditionSettings, metav1.ConditionFalse, waiting.Reason, waiting.Message)
	}
}

// isReconfiguring reports whether the host of the Machine is applying new settings.
func isReconfiguring(err error) bool {
	var waiting *provider.Waiting
	return errors.As(err, &waiting) && waiting.Reason == provider.Reconfiguring
}

// nodeDiffers reports whether the versions of the Node are unknown or differ from the spec, so that an update is in
// progress. Probing an unresponsive host does not count as an update, so its Machine may be replaced.
func nodeDiffers(m *v1alpha1.Machine) bool {
	current, want := m.Status.Versions, m.Spec.Versions
	if current == nil {
		return true
	}
	runtimeDiffers := want.ContainerRuntime != nil && want.ContainerRuntime.Version != "" &&
		current.ContainerRuntime != nil &&
		trimVersion(current.ContainerRuntime.Version) != trimVersion(want.ContainerRuntime.Version)
	return runtimeDiffers || trimVersion(current.Kubelet) != trimVersion(want.Kubelet)
}

// isFinishingUpdate reports whether an update is still in progress although the Node already has the new versions. For
// example, the Node may still be cordoned.
func isFinishingUpdate(m *v1alpha1.Machine, err error) bool {
	var waiting *provider.Waiting
	return errors.As(err, &waiting) && waiting.Reason == provider.Working &&
		meta.IsStatusConditionTrue(m.Status.Conditions, machine.ConditionUpdating)
}

// deleteInstance deletes the instance of a deleted Machine, then removes the finalizer.
func (r *Machines) deleteInstance(ctx context.Context, m *v1alpha1.Machine, p provider.Provider) (time.Duration,
	error) {
	if !controllerutil.ContainsFinalizer(m, v1alpha1.MachineFinalizer) {
		return 0, errDeleted // only other finalizers remain, or it no longer exists
	}
	err := p.Delete(ctx, m)
	if err == nil {
		if err = client.IgnoreNotFound(r.setFinalizer(ctx, m, controllerutil.RemoveFinalizer)); err == nil {
			err = errDeleted
		}
		return 0, err
	}
	m.Status.Phase = v1alpha1.Deleting
	setCondition(m, machine.ConditionReady, metav1.ConditionFalse, reasonOf(err), err.Error())
	wait, err := r.recordResult(m, err)
	m.Status.Phase = v1alpha1.Deleting
	return wait, err
}

// setAllocatedCondition records whether the provider has an instance for the Machine.
func (r *Machines) setAllocatedCondition(m *v1alpha1.Machine, found bool, err error) {
	switch {
	case found:
		setCondition(m, machine.ConditionAllocated, metav1.ConditionTrue, reasonAllocated, "")
	case err != nil:
		setCondition(m, machine.ConditionAllocated, metav1.ConditionFalse, reasonOf(err), err.Error())
	}
}

// explainNotReady copies the error of the instance to the Ready condition if the Machine is not ready.
func explainNotReady(m *v1alpha1.Machine, err error) {
	if c := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady); c != nil &&
		c.Status != metav1.ConditionTrue {
		setCondition(m, machine.ConditionReady, c.Status, reasonOf(err), err.Error())
	}
}

// reasonOf returns the condition reason of an error.
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

// recordResult records err in the status and returns the requeue delay. It returns only those errors that must be
// retried with backoff.
func (r *Machines) recordResult(m *v1alpha1.Machine, err error) (time.Duration, error) {
	m.Status.ErrorReason, m.Status.ErrorMessage = nil, nil
	m.Status.Phase = phaseOf(m)
	var refused *provider.Refused
	var waiting *provider.Waiting
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &refused):
		if m.Status.NodeRef != nil && m.DeletionTimestamp == nil { // the Node differs from the spec
			setCondition(m, machine.ConditionUpdating, metav1.ConditionTrue, string(refused.Reason), refused.Message)
		}
		message := phrase.Shorten(refused.Message, maxTextLength)
		m.Status.ErrorReason, m.Status.ErrorMessage, m.Status.Phase = &refused.Reason, &message, v1alpha1.Failed
		return 0, nil
	case errors.As(err, &waiting):
		if waiting.After > 0 {
			return waiting.After, nil
		}
		return defaultRequeue, nil
	}
	r.Events.Eventf(m, nil, corev1.EventTypeWarning, provider.Retrying, "Reconcile", "%s",
		phrase.Shorten(err.Error(), maxTextLength))
	return 0, err
}

// phaseOf returns the phase of the Machine, which depends on its conditions and its Node.
func phaseOf(m *v1alpha1.Machine) v1alpha1.MachinePhase {
	isTrue := func(condition string) bool { return meta.IsStatusConditionTrue(m.Status.Conditions, condition) }
	switch {
	case isTrue(machine.ConditionUpdating):
		return v1alpha1.Updating
	case m.Status.NodeRef != nil:
		return v1alpha1.Running
	case isTrue(machine.ConditionAllocated):
		return v1alpha1.Provisioning
	}
	return v1alpha1.Pending
}

// writeStatus writes the status if it changed. It also records Events when the phase or readiness changes.
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
	r.reportReadiness(before, m)
	return r.Client.Status().Patch(ctx, m, client.MergeFrom(was))
}

// reportReadiness records an Event when the Node becomes ready again or is no longer ready.
func (r *Machines) reportReadiness(before, m *v1alpha1.Machine) {
	current := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
	previous := meta.FindStatusCondition(before.Status.Conditions, machine.ConditionReady)
	if current == nil || previous == nil || m.DeletionTimestamp != nil || before.Status.NodeRef == nil {
		return
	}
	ready, wasReady := current.Status == metav1.ConditionTrue, previous.Status == metav1.ConditionTrue
	switch {
	case wasReady && !ready:
		r.Events.Eventf(m, nil, corev1.EventTypeWarning, current.Reason, "Reconcile", "%s", current.Message)
	case ready && !wasReady:
		r.Events.Eventf(m, nil, corev1.EventTypeNormal, current.Reason, "Reconcile", "%s", current.Message)
	}
}

// describeState describes the Machine's phase for an Event.
func describeState(m *v1alpha1.Machine) string {
	switch {
	case m.Status.ErrorMessage != nil:
		return *m.Status.ErrorMessage
	case m.Status.NodeRef != nil:
		return "the Machine's Node is " + m.Status.NodeRef.Name
	}
	for _, name := range []string{machine.ConditionUpdating, machine.ConditionAllocated} {
		if c := meta.FindStatusCondition(m.Status.Conditions, name); c != nil && c.Message != "" {
			return phrase.Shorten(c.Message, maxTextLength)
		}
	}
	return "the Machine is " + string(m.Status.Phase)
}

func setCondition(m *v1alpha1.Machine, name string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: phrase.Shorten(message, maxTextLength),
		ObservedGeneration: m.Generation,
	})
}

// maxTextLength limits the length of messages from providers and Nodes in a status or Event, in bytes.
const maxTextLength = 1024
