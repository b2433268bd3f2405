package view

import (
	"bytes"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/problem"
)

func TestProblemsAsText(t *testing.T) {
	t.Parallel()
	ps := []problem.Problem{
		{Code: problem.CPUsTooFew, Host: "203.0.113.11", Parameters: problem.Parameters{"have": 1, "need": 2}},
		{Code: problem.HostLoginRefused, Host: "203.0.113.12", Parameters: problem.Parameters{
			"error": "cp-2: permission denied (publickey) for the keys ~/.ssh/id_ed25519, ~/.ssh/id_rsa and " +
				"two of the agent's",
		}},
		{Code: problem.EtcdMembersUnknown,
			Parameters: problem.Parameters{"error": "etcd has \x1b[31mlost\x1b[0m quorum"}},
		{Code: problem.HostNotAsked, Host: "203.0.113.99"},
	}
	names := map[string]string{"203.0.113.11": "cp-1", "203.0.113.12": "cp-2"}
	for name, s := range map[string]Style{"pipe": inPipe, "narrow": narrow} {
		got := render(func(b *bytes.Buffer) {
			Problems(b, s, ps, names)
			Warnings(b, s, ps[:1], names)
		})
		mustBePlain(t, s, got)
		pinned(t, "problems-"+name+".txt", got)
	}
}

func TestNoProblemsAreNoText(t *testing.T) {
	t.Parallel()
	if got := render(func(b *bytes.Buffer) { Problems(b, inColour, nil, nil) }); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestDecisionAsText(t *testing.T) {
	t.Parallel()
	ds := []decide.Decision{
		{Route: fsm.Instruct, Also: []fsm.Route{fsm.Repair, fsm.Resources}, Trace: []fsm.Visit{
			{State: fsm.AskHosts, Event: fsm.OnFit, To: fsm.AskProvisioned, Why: "every host that answered is fit"},
			{State: fsm.AskProvisioned, Event: fsm.OnYes, To: fsm.AskControlPlane, Why: "cp-1 and cp-2 are members"},
			{State: fsm.AskControlPlane, Event: fsm.OnUnhealthy, To: fsm.AskQuorum,
				Why: "cp-3 is unreachable: dial tcp 203.0.113.13:22: i/o timeout"},
			{State: fsm.AskQuorum, Event: fsm.OnSatisfied, To: fsm.AskRepairable,
				Why: "2 of 3 voters healthy, quorum 2"},
			{State: fsm.AskRepairable, Event: fsm.OnNotRepairable, To: fsm.State(fsm.Instruct),
				Why: "nothing to start again"},
		}},
		{Route: fsm.Nothing, Trace: []fsm.Visit{{State: fsm.AskHosts, Event: fsm.OnFit, To: fsm.AskProvisioned}}},
	}
	for name, s := range map[string]Style{"pipe": inPipe, "narrow": narrow} {
		got := render(func(b *bytes.Buffer) { Decision(b, s, ds...) })
		mustBePlain(t, s, got)
		pinned(t, "decision-"+name+".txt", got)
	}
}
