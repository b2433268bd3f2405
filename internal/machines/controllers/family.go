package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/text/phrase"
)

// OwnerField is the name of the cache index of objects by the UID of their controller. Objects without a controller are
// indexed under "".
const OwnerField = "metadata.controller"

// families is shared by the reconcilers of MachineDeployments and MachineSets.
type families struct {
	Client    client.Client // reads from a cache that indexes MachineSets and Machines by OwnerField
	Live      client.Reader // reads from the API server
	Providers provider.Set
	Events    events.EventRecorder
	Now       func() time.Time

	expected *expectations
}

// Deployments reconciles MachineDeployments with their MachineSets and Machines.
type Deployments struct{ families }

// Sets reconciles MachineSets that do not belong to a MachineDeployment.
type Sets struct{ families }

// NewDeployments returns a reconciler of MachineDeployments.
func NewDeployments(c client.Client, live client.Reader, providers provider.Set, recorder events.EventRecorder,
) *Deployments {
	return &Deployments{newFamilies(c, live, providers, recorder)}
}

// NewSets returns a reconciler of MachineSets that do not belong to a MachineDeployment.
func NewSets(c client.Client, live client.Reader, providers provider.Set, recorder events.EventRecorder) *Sets {
	return &Sets{newFamilies(c, live, providers, recorder)}
}

func newFamilies(c client.Client, live client.Reader, providers provider.Set, recorder events.EventRecorder) families {
	return families{
		Client: c, Live: live, Providers: providers, Events: recorder, Now: time.Now, expected: newExpectations(),
	}
}

// cacheRetryDelay is the requeue delay while the cache does not show the last writes.
const cacheRetryDelay = 200 * time.Millisecond

// Reconcile carries out the next writes for one deployment and updates the statuses.
func (r *Deployments) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	md := &v1alpha1.MachineDeployment{}
	if err := r.Client.Get(ctx, request.NamespacedName, md); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := md.Annotations[v1alpha1.PausedAnnotation]; paused {
		return reconcile.Result{}, nil
	}
	if _, err := r.Providers.Of(md.Spec.Template.Spec); err != nil {
		reportIgnored(r.Events, md, err)
		return reconcile.Result{}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(md.Spec.Template.ObjectMeta.Labels)) {
		return reconcile.Result{}, r.writeDeploymentStatus(ctx, md, rollout.Status{}, errSelector)
	}
	if invalid := md.Spec.Template.Validate(); invalid != nil {
		return reconcile.Result{}, r.writeDeploymentStatus(ctx, md, rollout.Status{}, invalid)
	}
	sets, machines, err := r.findOwned(ctx, md, selector)
	if err != nil {
		return reconcile.Result{}, r.ignoreFamily(md, err)
	}
	if !r.expected.areMet(md.UID, sets, machines, r.Now()) {
		return reconcile.Result{RequeueAfter: cacheRetryDelay}, nil
	}
	f, next, err := machine.NewDeploymentFamily(md, sets, machines, r.Providers.Change, r.Now())
	if err != nil {
		return reconcile.Result{}, r.writeDeploymentStatus(ctx, md, rollout.Status{}, err)
	}
	plan := rollout.PlanFamily(f)
	w := &writer{families: &r.families, family: md.UID, owner: md, deployment: md, sets: sets, machines: machines}
	failed := errors.Join(w.writeAll(ctx, plan.Writes), r.writeSetStatuses(ctx, sets, machines),
		r.writeDeploymentStatus(ctx, md, plan.Status, nil))
	return r.requeueResult(plan, next, failed)
}

// errSelector reports a selector that is invalid or does not match the labels of its own template.
var errSelector = errors.New("spec.selector is empty, invalid or does not match the labels of spec.template")

// Reconcile carries out the next writes for one set and updates its status.
func (r *Sets) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ms := &v1alpha1.MachineSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, ms); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	_, paused := ms.Annotations[v1alpha1.PausedAnnotation]
	if paused || metav1.GetControllerOf(ms) != nil {
		return reconcile.Result{}, nil // Deployments reconciles an owned set
	}
	if _, err := r.Providers.Of(ms.Spec.Template.Spec); err != nil {
		reportIgnored(r.Events, ms, err)
		return reconcile.Result{}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&ms.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(ms.Spec.Template.ObjectMeta.Labels)) {
		return reconcile.Result{}, r.writeSetStatus(ctx, ms, nil, errSelector)
	}
	if invalid := ms.Spec.Template.Validate(); invalid != nil {
		return reconcile.Result{}, r.writeSetStatus(ctx, ms, nil, invalid)
	}
	machines, err := r.findMachines(ctx, ms, selector)
	if err != nil {
		return reconcile.Result{}, r.ignoreFamily(ms, err)
	}
	if !r.expected.areMet(ms.UID, nil, machines, r.Now()) {
		return reconcile.Result{RequeueAfter: cacheRetryDelay}, nil
	}
	f, next, err := machine.NewSetFamily(ms, machines, r.Now())
	if err != nil {
		return reconcile.Result{}, r.writeSetStatus(ctx, ms, machines, err)
	}
	plan := rollout.PlanFamily(f)
	w := &writer{families: &r.families, family: ms.UID, owner: ms, sets: []v1alpha1.MachineSet{*ms}, machines: machines}
	failed := errors.Join(w.writeAll(ctx, plan.Writes), r.writeSetStatus(ctx, ms, machines, nil))
	return r.requeueResult(plan, next, failed)
}

// requeueResult returns err, or a requeue at the earlier of plan.Wake and healthCheck, at which a machine may become
// unhealthy. After a conflict, or if the owner was deleted, it requeues soon instead of returning err.
func (r *families) requeueResult(plan rollout.Plan, healthCheck time.Time, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || errors.Is(err, errOwnerDeleted) {
		return reconcile.Result{RequeueAfter: cacheRetryDelay}, nil
	}
	var next time.Time
	for _, at := range []time.Time{plan.Wake, healthCheck} {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() || err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(r.Now()), time.Millisecond)}, nil
}

// ignoreFamily handles the error that an object has an unknown provider (*provider.Unknown): it records an Event and
// returns nil, because the family belongs to another program. It returns any other error unchanged.
func (r *families) ignoreFamily(owner client.Object, err error) error {
	var unknown *provider.Unknown
	if !errors.As(err, &unknown) {
		return err
	}
	reportIgnored(r.Events, owner, err)
	return nil
}

// reportIgnored records an Event that kubeone ignores the object. It does not write the status, because that may belong
// to another program.
func reportIgnored(recorder events.EventRecorder, o client.Object, reason error) {
	recorder.Eventf(o, nil, corev1.EventTypeNormal, reasonOtherProvider, "Reconcile", "kubeone ignores this object: %s",
		phrase.Shorten(reason.Error(), maxTextLength))
}

// checkProvider returns a *provider.Unknown if the provider of a MachineSet or Machine is not available in this
// program.
func (r *families) checkProvider(o client.Object) error {
	var spec v1alpha1.MachineSpec
	switch o := o.(type) {
	case *v1alpha1.MachineSet:
		spec = o.Spec.Template.Spec
	case *v1alpha1.Machine:
		spec = o.Spec
	}
	_, err := r.Providers.Of(spec)
	return err
}

// hasProvider reports whether the provider of a MachineSet or Machine is available in this program.
func (r *families) hasProvider(o client.Object) bool { return r.checkProvider(o) == nil }

// findOwned returns the sets of the deployment and their machines. It adopts sets without an owner that the selector
// matches, and releases owned sets that the selector no longer matches. It never adopts objects with an unknown
// provider. If the deployment already owns such an object, the error is a *provider.Unknown.
func (r *families) findOwned(ctx context.Context, md *v1alpha1.MachineDeployment, selector labels.Selector,
) ([]v1alpha1.MachineSet, []v1alpha1.Machine, error) {
	var all v1alpha1.MachineSetList
	if err := r.Client.List(ctx, &all, client.InNamespace(md.Namespace)); err != nil {
		return nil, nil, err
	}
	for i := range all.Items {
		if s := &all.Items[i]; metav1.IsControlledBy(s, md) {
			if err := r.checkProvider(s); err != nil {
				return nil, nil, fmt.Errorf("its MachineSet %s: %w", s.Name, err)
			}
		}
	}
	var sets []v1alpha1.MachineSet
	var machines []v1alpha1.Machine
	for i := range all.Items {
		s := &all.Items[i]
		belongs, err := r.claimObject(ctx, md, "MachineDeployment", s, selector)
		if err != nil {
			return nil, nil, err
		}
		if !belongs {
			continue
		}
		sets = append(sets, *s)
		setSelector, err := metav1.LabelSelectorAsSelector(&s.Spec.Selector)
		if err != nil {
			return nil, nil, err
		}
		found, err := r.findMachines(ctx, s, setSelector)
		if err != nil {
			return nil, nil, err
		}
		machines = append(machines, found...)
	}
	return sets, machines, nil
}

// findMachines returns the machines of the set. It adopts and releases machines in the same way as findOwned does for
// sets.
func (r *families) findMachines(ctx context.Context, ms *v1alpha1.MachineSet, selector labels.Selector,
) ([]v1alpha1.Machine, error) {
	var owned, free v1alpha1.MachineList
	inside := client.InNamespace(ms.Namespace)
	if err := r.Client.List(ctx, &owned, inside, client.MatchingFields{OwnerField: string(ms.UID)}); err != nil {
		return nil, err
	}
	if err := r.Client.List(ctx, &free, inside, client.MatchingFields{OwnerField: ""}); err != nil {
		return nil, err
	}
	for i := range owned.Items {
		if err := r.checkProvider(&owned.Items[i]); err != nil {
			return nil, fmt.Errorf("its Machine %s: %w", owned.Items[i].Name, err)
		}
	}
	var out []v1alpha1.Machine
	for i := range owned.Items {
		belongs, err := r.claimObject(ctx, ms, "MachineSet", &owned.Items[i], selector)
		if err != nil {
			return nil, err
		}
		if belongs {
			out = append(out, owned.Items[i])
		}
	}
	for i := range free.Items {
		belongs, err := r.claimObject(ctx, ms, "MachineSet", &free.Items[i], selector)
		if err != nil {
			return nil, err
		}
		if belongs {
			out = append(out, free.Items[i])
		}
	}
	return out, nil
}

// claimObject adopts or releases the object according to its labels, and reports whether it belongs to the owner. It
// adopts nothing if the owner or the object is being deleted, or if the provider is unknown.
func (r *families) claimObject(ctx context.Context, owner client.Object, kind string, o client.Object,
	selector labels.Selector) (bool, error) {
	selects := selector.Matches(labels.Set(o.GetLabels()))
	switch controller := metav1.GetControllerOf(o); {
	case controller != nil && controller.UID != owner.GetUID():
		return false, nil
	case controller != nil && selects:
		return true, nil
	case controller != nil:
		before, _ := o.DeepCopyObject().(client.Object)
		o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == owner.GetUID()
		}))
		return false, client.IgnoreNotFound(r.patchObject(ctx, o, before))
	case !selects || owner.GetDeletionTimestamp() != nil || o.GetDeletionTimestamp() != nil || !r.hasProvider(o):
		return false, nil
	}
	if exists, err := r.ownerExists(ctx, owner); err != nil || !exists {
		return false, err
	}
	before, _ := o.DeepCopyObject().(client.Object)
	o.SetOwnerReferences(append(o.GetOwnerReferences(), newOwnerReference(owner, kind)))
	if err := r.patchObject(ctx, o, before); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}

// ownerExists checks with the API server whether the owner exists and is not being deleted. The cache is not enough: it
// may still show an owner that was deleted with kubectl delete --cascade=orphan, and the garbage collector would delete
// what that owner adopts.
func (r *families) ownerExists(ctx context.Context, owner client.Object) (bool, error) {
	now, _ := owner.DeepCopyObject().(client.Object)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(owner), now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return now.GetUID() == owner.GetUID() && now.GetDeletionTimestamp() == nil, nil
}

func newOwnerReference(owner client.Object, kind string) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, v1alpha1.GroupVersion().WithKind(kind))
}

func (r *families) patchObject(ctx context.Context, o, before client.Object) error {
	return r.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// writeDeploymentStatus writes the status of the deployment if it changed, and records an Event for each condition with
// a new reason. If invalid is not nil, only the conditions change, and report that error.
func (r *families) writeDeploymentStatus(ctx context.Context, md *v1alpha1.MachineDeployment, s rollout.Status,
	invalid error) error {
	before := md.DeepCopy()
	status := &md.Status
	status.ObservedGeneration, status.LabelSelector = md.Generation, metav1.FormatLabelSelector(&md.Spec.Selector)
	if invalid == nil {
		status.Replicas, status.UpdatedReplicas = int32(s.Replicas), int32(s.Updated)       // #nosec G115 -- objects
		status.ReadyReplicas, status.AvailableReplicas = int32(s.Ready), int32(s.Available) // #nosec G115 -- objects
		status.UnavailableReplicas = int32(s.Unavailable)                                   // #nosec G115 -- objects
	}
	for _, c := range newConditions(s, invalid) {
		c.ObservedGeneration = md.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if equality.Semantic.DeepEqual(before.Status, md.Status) {
		return nil
	}
	for _, c := range status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		if was == nil || was.Reason != c.Reason {
			r.Events.Eventf(md, nil, corev1.EventTypeNormal, c.Reason, "Reconcile", "%s", c.Message)
		}
	}
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, md, client.MergeFrom(before)))
}

// The conditions of a MachineDeployment.
const (
	// ConditionAvailable is true while all replicas are available.
	ConditionAvailable = "Available"
	// ConditionProgressing is true while the rollout is in progress or complete, and false when it cannot proceed.
	ConditionProgressing = "Progressing"
	// ConditionRemediationHeld is true while too many Machines are unhealthy to replace them.
	ConditionRemediationHeld = "RemediationHeld"
)

func newConditions(s rollout.Status, invalid error) []metav1.Condition {
	if invalid != nil {
		return []metav1.Condition{{
			Type: ConditionProgressing, Status: metav1.ConditionFalse, Reason: reasonInvalid,
			Message: phrase.Shorten(invalid.Error(), maxTextLength),
		}}
	}
	available := metav1.Condition{
		Type: ConditionAvailable, Status: metav1.ConditionTrue, Reason: reasonAllAvailable,
		Message: "all replicas are available",
	}
	if s.Unavailable > 0 {
		available.Status, available.Reason = metav1.ConditionFalse, reasonUnavailable
		available.Message = "some replicas are missing or not available; see status.unavailableReplicas"
	}
	progressing := metav1.Condition{
		Type: ConditionProgressing, Status: metav1.ConditionTrue, Reason: reasonRollingOut,
		Message: "the rollout is in progress",
	}
	switch {
	case s.Complete:
		progressing.Reason, progressing.Message = reasonComplete, "all Machines match the template"
	case s.Blocked > 0:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, reasonUnsupported
		progressing.Message = fmt.Sprintf("%d Machines cannot be changed to match the template", s.Blocked)
	case s.Stalled:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, reasonStalled
		progressing.Message = "no progress within progressDeadlineSeconds"
	}
	held := metav1.Condition{
		Type: ConditionRemediationHeld, Status: metav1.ConditionFalse, Reason: reasonNotHeld,
		Message: "the number of unhealthy Machines is within maxUnhealthy",
	}
	if s.Held > 0 {
		held.Status, held.Reason = metav1.ConditionTrue, reasonTooManyUnhealthy
		held.Message = fmt.Sprintf("%d Machines are unhealthy or no longer ready, which exceeds maxUnhealthy: "+
			"unhealthy Machines are not replaced", s.Held)
	}
	return []metav1.Condition{available, progressing, held}
}

func (r *families) writeSetStatuses(ctx context.Context, sets []v1alpha1.MachineSet,
	machines []v1alpha1.Machine) error {
	var failed []error
	for i := range sets {
		failed = append(failed, r.writeSetStatus(ctx, &sets[i], machines, nil))
	}
	return errors.Join(failed...)
}

// writeSetStatus counts the machines of one set and writes its status if it changed. If invalid is not nil, the status
// contains that error, and the counts stay.
func (r *families) writeSetStatus(ctx context.Context, ms *v1alpha1.MachineSet, machines []v1alpha1.Machine,
	invalid error) error {
	before := ms.DeepCopy()
	s := &ms.Status
	s.ObservedGeneration, s.LabelSelector = ms.Generation, metav1.FormatLabelSelector(&ms.Spec.Selector)
	s.ErrorReason, s.ErrorMessage = nil, nil
	if invalid != nil {
		reason, message := v1alpha1.InvalidConfiguration, phrase.Shorten(invalid.Error(), maxTextLength)
		s.ErrorReason, s.ErrorMessage = &reason, &message
	} else {
		updateCounts(ms, machines, r.Now())
	}
	if equality.Semantic.DeepEqual(before.Status, ms.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, ms, client.MergeFrom(before)))
}

func updateCounts(ms *v1alpha1.MachineSet, machines []v1alpha1.Machine, now time.Time) {
	s := &ms.Status
	s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0, 0
	minReady := time.Duration(0)
	if ms.Spec.MinReadySeconds != nil {
		minReady = time.Duration(*ms.Spec.MinReadySeconds) * time.Second
	}
	template := labels.SelectorFromSet(ms.Spec.Template.ObjectMeta.Labels)
	for i := range machines {
		m := &machines[i]
		if !metav1.IsControlledBy(m, ms) || m.DeletionTimestamp != nil {
			continue
		}
		s.Replicas++
		if template.Matches(labels.Set(m.Labels)) {
			s.FullyLabeledReplicas++
		}
		ready := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			continue
		}
		s.ReadyReplicas++
		if !now.Before(ready.LastTransitionTime.Add(minReady)) {
			s.AvailableReplicas++
		}
	}
}
