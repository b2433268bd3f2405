package decide

import (
	"kubeone/internal/identity"
	"kubeone/internal/problem"
)

// contradictionCode is the code of a sort of contradiction.
func contradictionCode(k identity.Kind) problem.Code {
	switch k {
	case identity.SameID:
		return problem.HostIDDuplicate
	case identity.OtherID:
		return problem.HostIDMismatch
	case identity.Displaced:
		return problem.HostIDElsewhere
	case identity.OtherHostname:
		return problem.HostnameChanged
	default:
		return problem.RoleChanged
	}
}

// Contradictions are the reasons why some host cannot be told from another, or is not what the manifest says.
func Contradictions(in Input) []problem.Problem {
	var out []problem.Problem
	for _, c := range in.Contradictions {
		p := problem.Problem{Code: contradictionCode(c.Kind), Parameters: problem.Parameters{}}
		switch c.Kind {
		case identity.SameID:
			p.Parameters = problem.Parameters{"id": c.Host, "address": c.Address, "other": c.OtherAddress}
		case identity.OtherID:
			p.Parameters = problem.Parameters{"id": c.Host, "address": c.Address, "says": c.Says}
		case identity.Displaced:
			p.Parameters = problem.Parameters{
				"id":      c.Host,
				"address": c.Address,
				"says":    c.Says,
				"other":   c.OtherAddress,
			}
		default:
			p.Host, p.Parameters = c.Host, problem.Parameters{"wanted": c.Wants, "says": c.Says}
		}
		out = append(out, p)
	}
	return out
}

// moved are the hosts that were recognised at another address than the manifest gives them.
func (v *view) moved() []problem.Problem {
	var out []problem.Problem
	for _, m := range v.in.Moved {
		out = append(out, problem.Problem{
			Code: problem.HostMoved, Host: m.Host,
			Parameters: problem.Parameters{"address": m.Address, "found": m.Found},
		})
	}
	return out
}
