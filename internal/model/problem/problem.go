// Package problem describes what is wrong with a cluster, and what to do about it, as values. A problem is a code with
// named parameters. All messages for people (output, JSON, Events, conditions) come from one table of codes. A code
// never changes its meaning and is a valid reason of a metav1.Condition.
package problem

import "strings"

// Code names one problem, or one step of an instruction, in CamelCase.
type Code string

// Parameters are the values of a problem by name: strings, ints or lists of strings. They are observed or desired
// values, never sentences.
type Parameters map[string]any

// Class groups problems; each class has its own exit status.
type Class string

// The classes of problems.
const (
	ClassConfig     Class = "config"     // the manifest, or what it says about these hosts
	ClassSSH        Class = "ssh"        // login, host key or sudo
	ClassConnection Class = "connection" // no answer
	ClassEtcd       Class = "etcd"
	ClassKube       Class = "kube"    // the Kubernetes API or what runs on it
	ClassRuntime    Class = "runtime" // a host that fails preflight
)

// Problem is one thing that is wrong, or one reason of a host's condition.
type Problem struct {
	Code       Code
	Host       string // host ID; empty for the cluster
	Parameters Parameters
}

// Step is one action for the operator.
type Step struct {
	Code       Code
	Parameters Parameters
}

// Instruction is what the operator must do about problems. Lists of instructions are sorted in the order in which it
// is safe to follow them.
type Instruction struct {
	Host     string // host ID; empty for the cluster
	Problems []Problem
	Steps    []Step // in order
}

// Class returns the class of the problem.
func (p Problem) Class() Class { return findRow(p.Code).class }

// Text describes the problem, with observed and desired values. It does not name the host.
func (p Problem) Text() string { return fillPlaceholders(findRow(p.Code).what, p.Host, p.Parameters) }

// Remedy says what to do about the problem. It returns "" if there is nothing to do.
func (p Problem) Remedy() string { return fillPlaceholders(findRow(p.Code).do, p.Host, p.Parameters) }

// Text describes the step in one or more sentences.
func (s Step) Text() string { return fillPlaceholders(findRow(s.Code).do, "", s.Parameters) }

// Reason describes the problems that the instruction is about.
func (i Instruction) Reason() string { return strings.Join(Texts(i.Problems), "; ") }

// Texts returns the texts of the steps, in order.
func (i Instruction) Texts() []string {
	var out []string
	for _, s := range i.Steps {
		out = append(out, s.Text())
	}
	return out
}

// Texts returns the text of each problem.
func Texts(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Text())
	}
	return out
}

// Has reports whether one of the problems has the code.
func Has(problems []Problem, code Code) bool {
	for _, p := range problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

// String returns the code with its parameters.
func (p Problem) String() string { return formatCode(p.Code, p.Parameters) }

// String returns the code with its parameters.
func (s Step) String() string { return formatCode(s.Code, s.Parameters) }
