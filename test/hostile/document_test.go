package hostile

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/problem"
)

const head = `# A hostile host

What a host could try that belongs to an attacker, and what came of it. The host is a real SSH server that answers the
program with whatever it likes; the program is the real one, and everybody else in the cluster is honest
(test/hostile, part of "go test ./..."; "go test ./test/hostile -update" writes this page). It is met

- as a **worker** of the cluster, whose SSH key is known,
- as a **first contact**: a worker that is to join, and whose key nobody has approved yet,
- as a **control plane, not approved**: a control-plane host that is to join, and whose key nobody has approved yet.

Of every attempt it is tested that

- everybody else's conditions, steps and instructions are those beside an honest host, by value;
- nothing came to the attacker but the probe's script, which is asked for facts only: no secret, no tunnel;
- it took no more than three minutes on a busy machine, and no more than 12 MiB were taken from the attacker;
- plan, status, problems and times, as text and as JSON, and all scripts have no character that is not printed, and no
  more than 64 KiB more than beside an honest host;
- the cluster's CA that is remembered is still the cluster's.

Where all work waits, the attacker says what is a reason to stop if an honest host says it, and what only a person can
judge: a control-plane host is trusted with that. [security.md](security.md) says who is trusted with what.

| attempt | as | what came of it |
|---|---|---|
`

// document is the page about the attempts.
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

func distinct(games []*game) int {
	names := map[string]bool{}
	for _, g := range games {
		names[g.name] = true
	}
	return len(names)
}

// codes are those of the first problems, in brackets.
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
