package hostile

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/problem"
)

const head = `# Attempts of a hostile host

Written by "go test ./test/hostile -update". [docs/hostile.md](../../../docs/hostile.md) explains it.

| attempt | as | outcome |
|---|---|---|
`

// renderDocument returns the table of the attempts.
func renderDocument(trials []*trial, outcomes []outcome) string {
	var b strings.Builder
	b.WriteString(head)
	type row struct {
		name, came string
		as         []string
	}
	var rows []row
	for i, g := range trials {
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
	fmt.Fprintf(&b, "\n%d attempts, %d with every role counted.\n", countDistinct(trials), len(trials))
	return b.String()
}

const recordHead = `
## The cluster's record

| key | text | outcome |
|---|---|---|
`

// recordTable returns the table of damaged records.
func recordTable(all []garbling, outcomes []outcome) string {
	var b strings.Builder
	b.WriteString(recordHead)
	for i, g := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", g.key, g.what, outcomes[i].came)
	}
	return b.String()
}

func countDistinct(trials []*trial) int {
	names := map[string]bool{}
	for _, g := range trials {
		names[g.name] = true
	}
	return len(names)
}

// firstCodes returns the codes of the first problems, in brackets.
func firstCodes(problems []problem.Problem) string {
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
