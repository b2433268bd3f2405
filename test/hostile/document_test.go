package hostile

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/problem"
)

const head = `# A hostile host

This page lists what a host that belongs to an attacker can try, and what happens then. The host is a real SSH server
that answers kubeone with whatever it likes. kubeone is the real program, and everything else in the cluster is honest.
The tests are test/hostile, part of "go test ./..."; "go test ./test/hostile -update" writes this page. The attacker is

- a **worker** of the cluster, whose SSH key is known,
- a **first contact**: a worker that is to join, and whose key no operator has approved yet,
- a **control plane, not approved**: a control-plane host that is to join, and whose key no operator has approved yet,
- a **host of a Machine**: it has joined, and the controllers check it, each host by itself.

The cluster also has Nodes whose hosts are not in the manifest: a Machine's, one that was joined by hand, and one of a
control-plane host that is still a member of etcd. Each attempt is tested for the following:

- The conditions, steps and instructions of all other hosts are those beside an honest host, by value. The host of a
  Machine gets steps only for itself and for its own Node.
- Nothing comes to the attacker but the probe's script, which asks for facts only: no secret, no tunnel.
- It takes at most three minutes on a busy machine, and kubeone reads at most 12 MiB from the attacker.
- Plan, status, problems and times, as text and as JSON, and all scripts have printable characters only. They are at
  most 64 KiB longer than beside an honest host.
- The remembered CA of the cluster stays the same.

All work waits only where an honest host would be a reason to stop if it said the same, and only an operator can judge
that: a control-plane host is trusted with it. [security.md](security.md) says who is trusted with what.

Other tests try what is not in the first table:

- TestCommandsWriteNowhereElse runs kubeone's commands beside a worker that wants to choose which files they write, by
  its own name and by the names of its logs. Each host has one script, and one folder in a support bundle, under its
  own name or its ID.
- TestOpenRefusesAnIndexThatSaysMoreThanItCan (internal/release) changes a genuine bundle, so that an upgrade would
  install another kubelet. The location of crictl has a second line, "kubelet evil …", and the program is one more part
  of a genuine image. kubeone refuses to open that bundle.

| attempt | as | what came of it |
|---|---|---|
`

// document returns the page about the attempts.
func document(games []*game, outcomes []outcome) string {
	var b strings.Builder
	b.WriteString(head)
	type row struct {
		name, came string
		as         []string
	}
	var rows []row
	for i, g := range games {
		came := outcomes[i].came
		j := slices.IndexFunc(rows, func(r row) bool { return r.name == g.name && r.came == came })
		if j < 0 {
			rows = append(rows, row{name: g.name, came: came})
			j = len(rows) - 1
		}
		rows[j].as = append(rows[j].as, string(g.as))
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, strings.Join(r.as, "; "), r.came)
	}
	fmt.Fprintf(&b, "\n%d attempts, %d with every role counted.\n", distinct(games), len(games))
	return b.String()
}

const recordHead = `
## The cluster's record

Users who may write ConfigMaps can change kube-system/kubeone, the cluster's record. Each key gets a text that no run of
kubeone writes, in a hardened cluster and in one that is not. One worker is to join, and one addon is to be updated. The
API stays known, and the plan has no step that it does not have beside an intact record. So it hardens nothing, and
applies no other addon.

| key | text | what happens |
|---|---|---|
`

// recordTable returns the part of the page about the record.
func recordTable(all []garbling, outcomes []outcome) string {
	var b strings.Builder
	b.WriteString(recordHead)
	for i, g := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", g.key, g.what, outcomes[i].came)
	}
	return b.String()
}

func distinct(games []*game) int {
	names := map[string]bool{}
	for _, g := range games {
		names[g.name] = true
	}
	return len(names)
}

// codes returns those of the first problems, in brackets.
func codes(problems []problem.Problem) string {
	var out []string
	for _, p := range problems {
		if !slices.Contains(out, string(p.Code)) && len(out) < 2 {
			out = append(out, string(p.Code))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}
