package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/rollout"
)

// writer carries out one plan. Each write applies to the version of the object that the plan is based on. If the object
// has changed since then, the API server rejects the write, and the next plan takes the change into account.
type writer struct {
	*families
	family     types.UID // of the deployment, or of a set without one
	owner      client.Object
	deployment *v1alpha1.MachineDeployment // nil for a set without one
	sets       []v1alpha1.MachineSet
	machines   []v1alpha1.Machine
}

// maxErrors is the number of failed writes after which a plan ends, because the others would probably fail too.
const maxErrors = 10

// errOwnerDeleted reports that the owner was deleted or is being deleted.
var errOwnerDeleted = errors.New("the owner is being deleted or no longer exists")

// writeAll carries out the writes in order. Before the first object is created, it checks with the API server that the
// owner exists: the cache may show the deletion of sets and Machines before that of their owner. Until garbage
// collection, a new set would block the next deployment with that name, and a new Machine would take a host.
func (w *writer) writeAll(ctx context.Context, writes []rollout.Write) error {
	var failed []error
	for i, one := range writes {
		if len(failed) == maxErrors || ctx.Err() != nil {
			break
		}
		if isCreate(one) && !slices.ContainsFunc(writes[:i], isCreate) {
			if exists, err := w.ownerExists(ctx, w.owner); err != nil || !exists {
				return errors.Join(append(failed, cmp.Or(err, errOwnerDeleted))...)
			}
		}
		if err := w.applyWrite(ctx, one); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one, err))
			continue
		}
		if one.Kind != rollout.ScaleSet {
			w.Events.Eventf(w.owner, nil, corev1.EventTypeNormal, eventReason(one.Kind), "Reconcile", "%s", one)
		}
	}
	return errors.Join(failed...)
}

func isCreate(one rollout.Write) bool {
	return one.Kind == rollout.CreateSet || one.Kind == rollout.CreateMachine
}

// eventReason returns the kind as an Event reason: "create machine" becomes CreateMachine.
func eventReason(k rollout.Kind) string {
	var out strings.Builder
	for word := range strings.FieldsSeq(string(k)) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

func (w *writer) applyWrite(ctx context.Context, one rollout.Write) error {
	switch one.Kind {
	case rollout.CreateSet:
		return w.createSet(ctx, one)
	case rollout.CreateMachine:
		return w.createMachine(ctx, w.setByName(one.Name))
	case rollout.RollBack, rollout.ForgetRollback:
		return w.rollBack(ctx, one)
	case rollout.MoveMachine, rollout.LabelMachine, rollout.DeleteMachine:
		return w.writeMachine(ctx, one)
	default:
		return w.writeSet(ctx, one)
	}
}

// setByName returns the set with that name, or nil.
func (w *writer) setByName(name string) *v1alpha1.MachineSet {
	for i := range w.sets {
		if w.sets[i].Name == name {
			return &w.sets[i]
		}
	}
	return nil
}

func (w *writer) machineByName(name string) *v1alpha1.Machine {
	for i := range w.machines {
		if w.machines[i].Name == name {
			return &w.machines[i]
		}
	}
	return nil
}

// errNotPlanned reports that the object to write is not among those that the plan is based on.
var errNotPlanned = errors.New("the object was not found")

// createSet creates a set from the template of the deployment. The name contains the hash of the template, so that a
// retry finds the set of the first attempt.
func (w *writer) createSet(ctx context.Context, one rollout.Write) error {
	md := w.deployment
	hash := one.Name[len(md.Name)+1:]
	template := *md.Spec.Template.DeepCopy()
	template.ObjectMeta.Labels = withEntry(template.ObjectMeta.Labels, v1alpha1.TemplateHashLabel, hash)
	selector := *md.Spec.Selector.DeepCopy()
	selector.MatchLabels = withEntry(selector.MatchLabels, v1alpha1.TemplateHashLabel, hash)
	replicas := int32(0)
	ms := &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: md.Namespace, Name: one.Name, Labels: template.ObjectMeta.Labels,
			Annotations:     map[string]string{v1alpha1.RevisionAnnotation: strconv.FormatInt(one.Revision, 10)},
			OwnerReferences: []metav1.OwnerReference{newOwnerReference(md, "MachineDeployment")},
		},
		Spec: v1alpha1.MachineSetSpec{
			Replicas: &replicas, MinReadySeconds: md.Spec.MinReadySeconds, Selector: selector, Template: template,
		},
	}
	if err := w.Client.Create(ctx, ms); err != nil {
		return err
	}
	w.expected.expectObject(w.family, ms, w.Now())
	return nil
}

func withEntry(has map[string]string, key, value string) map[string]string {
	out := maps.Clone(has)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// createMachine creates one machine from the template of the set.
func (w *writer) createMachine(ctx context.Context, ms *v1alpha1.MachineSet) error {
	if ms == nil {
		return errNotPlanned
	}
	template := ms.Spec.Template.DeepCopy()
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ms.Namespace, Name: ms.Name + "-" + rand.String(5), Labels: template.ObjectMeta.Labels,
			Annotations: withEntry(template.ObjectMeta.Annotations, v1alpha1.AppliedMetadataAnnotation,
				machine.MetadataHash(*template)),
			OwnerReferences: []metav1.OwnerReference{newOwnerReference(ms, "MachineSet")},
		},
		Spec: template.Spec,
	}
	if err := w.Client.Create(ctx, m); err != nil {
		return err
	}
	w.expected.expectObject(w.family, m, w.Now())
	return nil
}

func (w *writer) writeSet(ctx context.Context, one rollout.Write) error {
	ms := w.setByName(one.Name)
	if ms == nil {
		return errNotPlanned
	}
	if one.Kind == rollout.DeleteSet {
		return w.deleteObject(ctx, ms)
	}
	before := ms.DeepCopy()
	switch one.Kind {
	case rollout.ReviseSet:
		ms.Annotations = withEntry(ms.Annotations, v1alpha1.RevisionAnnotation, strconv.FormatInt(one.Revision, 10))
	case rollout.ScaleSet:
		replicas := int32(one.Replicas) // #nosec G115 -- as many as there are objects
		ms.Spec.Replicas = &replicas
	case rollout.LabelSet:
		hash := ms.Spec.Template.ObjectMeta.Labels[v1alpha1.TemplateHashLabel]
		template := w.deployment.Spec.Template.DeepCopy()
		spec := ms.Spec.Template.Spec
		spec.ObjectMeta, spec.Taints = template.Spec.ObjectMeta, template.Spec.Taints
		ms.Spec.Template = v1alpha1.MachineTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: spec}
		ms.Spec.Template.ObjectMeta.Labels = withEntry(template.ObjectMeta.Labels, v1alpha1.TemplateHashLabel, hash)
	default:
		return fmt.Errorf("unknown kind of write %q", one.Kind)
	}
	return w.patchAndExpect(ctx, ms, before)
}

func (w *writer) writeMachine(ctx context.Context, one rollout.Write) error {
	m := w.machineByName(one.Machine)
	if m == nil {
		return errNotPlanned
	}
	if one.Kind == rollout.DeleteMachine {
		return w.deleteObject(ctx, m)
	}
	from := w.setOf(m)
	to := from
	if one.Kind == rollout.MoveMachine {
		to = w.setByName(one.Name)
	}
	if to == nil {
		return errNotPlanned
	}
	before := m.DeepCopy()
	template := to.Spec.Template.DeepCopy()
	if one.Kind == rollout.MoveMachine {
		m.OwnerReferences = append(slices.DeleteFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Controller != nil && *r.Controller
		}), newOwnerReference(to, "MachineSet"))
		m.Spec.ProviderSpec, m.Spec.Versions, m.Spec.Roles = template.Spec.ProviderSpec, template.Spec.Versions,
			template.Spec.Roles
	}
	var was v1alpha1.MachineTemplateSpec
	if from != nil {
		was = from.Spec.Template
	}
	m.Labels = mergeMap(m.Labels, template.ObjectMeta.Labels, slices.Collect(maps.Keys(was.ObjectMeta.Labels)))
	m.Annotations = mergeMap(m.Annotations, template.ObjectMeta.Annotations,
		slices.Collect(maps.Keys(was.ObjectMeta.Annotations)))
	m.Annotations[v1alpha1.AppliedMetadataAnnotation] = machine.MetadataHash(*template)
	m.Spec.ObjectMeta, m.Spec.Taints = template.Spec.ObjectMeta, template.Spec.Taints
	return w.patchAndExpect(ctx, m, before)
}

func (w *writer) setOf(m *v1alpha1.Machine) *v1alpha1.MachineSet {
	for i := range w.sets {
		if metav1.IsControlledBy(m, &w.sets[i]) {
			return &w.sets[i]
		}
	}
	return nil
}

// rollBack removes the rollback annotation. For rollout.RollBack, it also restores the template of the set, in the same
// write.
func (w *writer) rollBack(ctx context.Context, one rollout.Write) error {
	before := w.deployment.DeepCopy()
	delete(w.deployment.Annotations, v1alpha1.RollbackAnnotation)
	if one.Kind == rollout.RollBack {
		ms := w.setByName(one.Name)
		if ms == nil {
			return errNotPlanned
		}
		template := ms.Spec.Template.DeepCopy()
		delete(template.ObjectMeta.Labels, v1alpha1.TemplateHashLabel)
		w.deployment.Spec.Template = *template
	}
	return w.patchObject(ctx, w.deployment, before)
}

func (w *writer) patchAndExpect(ctx context.Context, o, before client.Object) error {
	if err := w.patchObject(ctx, o, before); err != nil {
		return err
	}
	w.expected.expectObject(w.family, o, w.Now())
	return nil
}

// deleteObject deletes the object if it still has the version that the plan is based on.
func (w *writer) deleteObject(ctx context.Context, o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := w.Client.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	w.expected.expectDeletion(w.family, o, w.Now())
	return nil
}
