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
var sections = []section{
	{"What a host lacks", "Why a host is in its condition.", conditionsRows},
	{"Hosts that are not fit", "Why nothing can be installed on a host.", preflightRows},
	{"The manifest and its hosts", "What speaks against doing anything at all, or is a warning.", clusterRows},
	{"Who a machine is", "Two answers to the question which machine is which host.", identityRows},
	{"Machines", "Why a Machine is not given its host, or a token, and what a reset waits for.", machineRows},
	{"Versions", "Why a version cannot be carried out.", versionsRows},
	{"etcd and its members", "What concerns etcd as a whole.", etcdRows},
	{"What you can do", "The steps of instructions.", stepRows},
}

// find returns the row of a code; its code is another one where the table does not have it.
func find(code Code) row {
	for _, s := range sections {
		for _, r := range s.rows {
			if r.code == code {
				return r
			}
		}
	}
	return row{what: string(code)}
}
