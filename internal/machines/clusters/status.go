package clusters

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/model/problem"
)

// action is what the controller does next.
type action int

// The actions.
const (
	rest          action = iota // the cluster is in its desired state
	awaitPerson                 // a person must act
	awaitApproval               // a person must approve the plan
	carryOut
)

// Reasons of errors in the status.
const (
	reasonInvalid  = "InvalidConfiguration" // the objects are wrong
	reasonRefused  = "Refused"              // the desired state cannot be reached from the observed one
	reasonOperator = "OperatorNeeded"       // steps that only a person can carry out
)

// conditionReady is the condition that the cluster is in its desired state.
const conditionReady = "Ready"

// nextStep returns what to do about a proposal and its error.
func nextStep(is *v1alpha1.Cluster, p engine.Proposal, err error) action {
	switch {
	case err != nil || p.Refusal() != nil || p.Decision().Route == fsm.Error || p.Plan.Blocked != "":
		return awaitPerson
	case len(p.Plan.Steps) == 0 && len(p.Plan.Operator) > 0:
		return awaitPerson
	case len(p.Plan.Steps) == 0:
		return rest
	case is.Spec.Approval == v1alpha1.ManualApproval &&
		is.Annotations[v1alpha1.ApprovedPlanAnnotation] != p.Plan.Digest():
		return awaitApproval
	}
	return carryOut
}

// setStatus describes a proposal. text is the plan that waits for approval.
func setStatus(status *v1alpha1.ClusterStatus, generation int64, p engine.Proposal, err error, next action,
	text string) {
	status.ObservedGeneration, status.PendingPlan = generation, nil
	if len(p.Decisions) > 0 {
		setObserved(status, p)
	}
	switch next {
	case rest:
		clearError(status)
		status.Phase = v1alpha1.ClusterRunning
		if differs := p.Plan.Exceptions(); len(differs) > 0 {
			setReady(status, generation, false, "Differs", "there is nothing to do, but: "+strings.Join(differs, "; "))
		} else {
			setReady(status, generation, true, "Matches", "the cluster is in its desired state")
		}
	case awaitApproval:
		clearError(status)
		status.Phase = v1alpha1.ClusterAwaitingApproval
		status.PendingPlan = &v1alpha1.PendingPlan{Digest: p.Plan.Digest(), Text: text}
		setReady(status, generation, false, "AwaitingApproval", fmt.Sprintf(
			"a plan of %d steps waits for the annotation %s: %s", len(p.Plan.Steps), v1alpha1.ApprovedPlanAnnotation,
			p.Plan.Digest()))
	case carryOut:
		clearError(status)
		status.Phase = v1alpha1.ClusterUpdating
		setReady(status, generation, false, "Updating",
			fmt.Sprintf("a plan of %d steps is carried out", len(p.Plan.Steps)))
	case awaitPerson:
		reason, message := whyPerson(p, err)
		setFailed(status, reason, message)
	}
}

// whyPerson returns why a person must act.
func whyPerson(p engine.Proposal, err error) (reason, message string) {
	var refused *engine.ConfigError
	switch {
	case errors.As(err, &refused):
		return reasonRefused, err.Error()
	case err != nil:
		return "NotObserved", err.Error()
	case p.Decision().Route == fsm.Error:
		return reasonRefused, strings.Join(problem.Texts(p.Decision().Problems), "; ")
	case p.Plan.Blocked != "":
		return reasonRefused, p.Plan.Blocked
	case p.Refusal() != nil:
		return reasonRefused, p.Refusal().Error()
	}
	var out []string
	for _, i := range p.Plan.Operator {
		out = append(out, i.Reason()+": "+strings.Join(i.Texts(), "; "))
	}
	return reasonOperator, strings.Join(out, "\n")
}

func clearError(status *v1alpha1.ClusterStatus) { status.ErrorReason, status.ErrorMessage = nil, nil }

func setFailed(status *v1alpha1.ClusterStatus, reason, message string) {
	message = bound(message)
	status.ErrorReason, status.ErrorMessage, status.Phase = &reason, &message, v1alpha1.ClusterFailed
	setReady(status, status.ObservedGeneration, false, reason, message)
}

func setReady(status *v1alpha1.ClusterStatus, generation int64, holds bool, reason, message string) {
	c := metav1.Condition{
		Type: conditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: bound(message),
		ObservedGeneration: generation,
	}
	if holds {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, c)
}

// maxMessage is the maximum length of a message in a status, in bytes.
const maxMessage = 4000

// bound shortens a message, because hosts may have written parts of it.
func bound(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " …"
}

// setObserved describes what was observed of the cluster.
func setObserved(status *v1alpha1.ClusterStatus, p engine.Proposal) {
	if e := p.Want.Endpoint; e.Host != "" {
		status.APIEndpoints = []v1alpha1.APIEndpoint{{Host: e.Host, Port: int32(e.Port)}} //nolint:gosec // a port
	}
	count := v1alpha1.ControlPlaneCount{Wanted: int32(len(p.Want.ControlPlane))} //nolint:gosec // hosts
	found := map[string][]string{}
	note := func(component, version string) {
		if version != "" && !slices.Contains(found[component], version) {
			found[component] = append(found[component], version)
		}
	}
	for _, h := range p.Want.ControlPlane {
		if p.Decision().Hosts[h.ID].Condition == condition.Healthy {
			count.Ready++
		}
		seen := p.Observed.World.Hosts[h.ID]
		note("kube-apiserver", seen.APIServerVersion)
		note("kube-controller-manager", seen.ControllerManagerVersion)
		note("kube-scheduler", seen.SchedulerVersion)
	}
	for _, n := range p.Observed.World.API.Nodes {
		note("kubelet", n.KubeletVersion)
	}
	status.ControlPlane, status.Versions = &count, nil
	for component, versions := range found {
		slices.Sort(versions)
		status.Versions = append(status.Versions, v1alpha1.ComponentVersions{Component: component, Versions: versions})
	}
	slices.SortFunc(status.Versions, func(a, b v1alpha1.ComponentVersions) int {
		return cmp.Compare(a.Component, b.Component)
	})
}

// describe returns the status in one line, for Events.
func describe(s v1alpha1.ClusterStatus) string {
	if s.ErrorMessage != nil {
		return *s.ErrorMessage
	}
	if c := meta.FindStatusCondition(s.Conditions, conditionReady); c != nil {
		return c.Message
	}
	return string(s.Phase)
}
