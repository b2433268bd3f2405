package problem

// row defines one code.
type row struct {
	code    Code
	class   Class  // empty for steps of instructions
	meaning string // for docs/problems.md; empty if what says it all
	what    string // what is wrong, with {parameters}; empty for steps of instructions
	do      string // what to do
}

// section is one part of the table.
type section struct {
	title, about string
	rows         []row
}

// sections is the table of all codes.
var sections = []section{
	{"Conditions of hosts", "The reasons of a host's condition.", conditionsRows},
	{"Preflight", "Why kubeone cannot install a host.", preflightRows},
	{"The manifest and its hosts", "Errors and warnings about the cluster.", clusterRows},
	{"Identity", "Contradictions about which machine is which host.", identityRows},
	{"Machines", "Why a Machine gets no host or token, and what a reset waits for.", machineRows},
	{"Versions", "Why kubeone refuses a version.", versionsRows},
	{"etcd and its members", "Problems of etcd as a whole.", etcdRows},
	{"Instructions", "The steps of instructions to an operator.", stepRows},
}

// findRow returns the row of a code, or a row without a code if it is not in the table.
func findRow(code Code) row {
	for _, s := range sections {
		for _, r := range s.rows {
			if r.code == code {
				return r
			}
		}
	}
	return row{what: string(code)}
}
