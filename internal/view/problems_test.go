package view

import (
	"bytes"
	"testing"

	"kubeone/internal/decide"
)

func TestProblemsAsText(t *testing.T) {
	t.Parallel()
	ps := []decide.Problem{
		{Class: decide.ClassRuntime, Host: "203.0.113.11", What: "has 1 CPU, at least 2 are needed", Do: "give it more CPUs"},
		{Class: decide.ClassSSH, Host: "203.0.113.12", What: "cp-2: permission denied (publickey)", Do: "say which key with sshPrivateKeyFile, or load it into the agent, and make sure that the host has its public half in authorized_keys of the user named"},
		{Class: decide.ClassEtcd, What: "etcd has \x1b[31mlost\x1b[0m its quorum"},
		{Class: decide.ClassConfig, Host: "203.0.113.99", What: "nobody knows its name", Do: "name it"},
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
		{Route: decide.Instruct, Also: []decide.Route{decide.Repair, decide.Resources}, Trace: []decide.Visit{
			{State: decide.AskHosts, Event: decide.OnFit, To: decide.AskProvisioned, Why: "every host that answered is fit"},
			{State: decide.AskProvisioned, Event: decide.OnYes, To: decide.AskControlPlane, Why: "cp-1 and cp-2 are members"},
			{State: decide.AskControlPlane, Event: decide.OnUnhealthy, To: decide.AskQuorum, Why: "cp-3 is unreachable: dial tcp 203.0.113.13:22: i/o timeout"},
			{State: decide.AskQuorum, Event: decide.OnSatisfied, To: decide.AskRepairable, Why: "2 of 3 voters healthy, quorum 2"},
			{State: decide.AskRepairable, Event: decide.OnNotRepairable, To: decide.State(decide.Instruct), Why: "nothing to start again"},
		}},
		{Route: decide.Nothing, Trace: []decide.Visit{{State: decide.AskHosts, Event: decide.OnFit, To: decide.AskProvisioned}}},
	}
	for name, s := range map[string]Style{"pipe": inPipe, "narrow": narrow} {
		got := render(func(b *bytes.Buffer) { Decision(b, s, ds...) })
		mustBePlain(t, s, got)
		pinned(t, "decision-"+name+".txt", got)
	}
}
