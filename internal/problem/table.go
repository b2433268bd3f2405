package problem

// row is all that is known about one code.
type row struct {
	code    Code
	class   Class  // empty for what a person can do
	meaning string // for the reader of docs/problems.md
	what    string // what is wrong, with {parameters}; empty for what a person can do
	do      string // what helps
}

// section is one part of the table.
type section struct {
	title, about string
	rows         []row
}

// sections is the table of all codes.
func sections() []section {
	conditions := conditionsRows()
	preflight := preflightRows()
	cluster := clusterRows()
	who := identityRows()
	machines := machineRows()
	versions := versionsRows()
	etcd := etcdRows()
	step := stepRows()
	return []section{
		{"What a host lacks", "Why a host is in its condition.", conditions[:]},
		{"Hosts that are not fit", "Why nothing can be installed on a host.", preflight[:]},
		{"The manifest and its hosts", "What speaks against doing anything at all, or is a warning.", cluster[:]},
		{"Who a machine is", "Two answers to the question which machine is which host.", who[:]},
		{"Machines", "Why a Machine is not given its host, or a token, and what a reset waits for.", machines[:]},
		{"Versions", "Why a version cannot be carried out.", versions[:]},
		{"etcd and its members", "What concerns etcd as a whole.", etcd[:]},
		{"What you can do", "The steps of instructions.", step[:]},
	}
}

// find returns the row of a code; its code is another one where the table does not have it.
func find(code Code) row {
	conditions := conditionsRows()
	preflight := preflightRows()
	cluster := clusterRows()
	who := identityRows()
	machines := machineRows()
	versions := versionsRows()
	etcd := etcdRows()
	step := stepRows()
	for _, rows := range [...][]row{
		conditions[:], preflight[:], cluster[:], who[:], machines[:], versions[:], etcd[:], step[:],
	} {
		for i := range rows {
			if rows[i].code == code {
				return rows[i]
			}
		}
	}
	return row{what: string(code)}
}
