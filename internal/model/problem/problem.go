// Package problem says what is wrong with a cluster, and what helps, as values: a problem is a code with named
// parameters, and everything that people read of it (text, JSON, Events, conditions of objects) is made from the one
// table of codes. A code never changes its meaning, and is fit to be the reason of a metav1.Condition.
package problem

import "strings"

// Code names one thing that can be wrong, or one thing that a person can do: an identifier in CamelCase.
type Code string

// Parameters are the values of a problem by name; each is a string, an int or a list of strings. They are values that
// were found or wanted, never sentences.
type Parameters map[string]any

// Class is the sort of a problem; each has its own exit status.
type Class string

// The classes of problems.
const (
	ClassConfig     Class = "config"     // the manifest, or what it says about these hosts
	ClassSSH        Class = "ssh"        // login, host key or sudo
	ClassConnection Class = "connection" // no answer
	ClassEtcd       Class = "etcd"
	ClassKube       Class = "kube"    // the Kubernetes API or what runs on it
	ClassRuntime    Class = "runtime" // a host that is not fit
)

// Problem is one thing that is wrong, or one reason of a host's condition.
type Problem struct {
	Code       Code
	Host       string // host ID; empty for the cluster
	Parameters Parameters
}

// Step is one thing that a person is to do.
type Step struct {
	Code       Code
	Parameters Parameters
}

// Instruction is what a person must do about problems. Instructions are in the order in which it is safe
// to follow them.
type Instruction struct {
	Host     string // host ID; empty for the cluster
	Problems []Problem
	Steps    []Step // in order
}

// Class is the sort of the problem.
func (p Problem) Class() Class { return find(p.Code).class }

// What says what is wrong, with the values found and wanted. It does not name the host.
func (p Problem) What() string { return fill(find(p.Code).what, p.Host, p.Parameters) }

// Do says what helps.
func (p Problem) Do() string { return fill(find(p.Code).do, p.Host, p.Parameters) }

// Text says what is to be done, in a sentence or more.
func (s Step) Text() string { return fill(find(s.Code).do, "", s.Parameters) }

// Reason says what the instruction is about.
func (i Instruction) Reason() string { return strings.Join(Whats(i.Problems), "; ") }

// Texts are the texts of the steps, in order.
func (i Instruction) Texts() []string {
	var out []string
	for _, s := range i.Steps {
		out = append(out, s.Text())
	}
	return out
}

// Whats says of each problem what is wrong.
func Whats(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.What())
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

// String is the code with its parameters.
func (p Problem) String() string { return describe(p.Code, p.Parameters) }

// String is the code with its parameters.
func (s Step) String() string { return describe(s.Code, s.Parameters) }
