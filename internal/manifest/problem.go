package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kubeone/api/kubeone/v1beta2"
)

// Severity says whether a problem stops the run.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	// Note is about a field that is right, and that this version does nothing about.
	Note Severity = "note"
)

// Problem is one thing that is wrong with what was loaded, and where it was written.
type Problem struct {
	File     string   `json:"file"`             // as the operator named it
	Line     int      `json:"line,omitempty"`   // from 1; 0 if the problem is the whole file's
	Column   int      `json:"column,omitempty"` // from 1
	Path     string   `json:"path,omitempty"`   // "controlPlane.hosts[1].sshPort", as the file names it
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do: "did you mean sshPort?"
	Severity Severity `json:"severity"`
	cause    error
}

// String is the problem on one line: file:line:column: severity: path: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	fmt.Fprintf(&b, ": %s: ", p.Severity)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is the error of a manifest that cannot be used: all its problems, warnings included, by file and line.
type Problems struct {
	List []Problem
}

// Error is one line for each problem.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, problem := range p.List {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors that problems come from: of the file system, of Terraform, of the context.
func (p *Problems) Unwrap() []error {
	var causes []error
	for _, problem := range p.List {
		if problem.cause != nil {
			causes = append(causes, problem.cause)
		}
	}
	return causes
}

// report adds a problem about a path of the cluster, at the place where it was written.
func (l *loader) report(path string, severity Severity, hint, message string) {
	at := l.where.find(path)
	if at.File == "" {
		at.File = l.ManifestPath
	}
	if at.Path != "" {
		path = at.Path
	}
	l.found = append(l.found, Problem{
		File: at.File, Line: at.Line, Column: at.Column, Path: path,
		Message: message, Hint: hint, Severity: severity,
	})
}

// failFile adds a problem about a whole file.
func (l *loader) failFile(file, hint string, cause error) {
	l.found = append(l.found, Problem{File: file, Message: cause.Error(), Hint: hint, Severity: Error, cause: cause})
}

func (l *loader) failed() bool { return HasErrors(l.found) }

// HasErrors reports whether one of the problems stops the run.
func HasErrors(list []Problem) bool {
	return slices.ContainsFunc(list, func(p Problem) bool { return p.Severity == Error })
}

// notes are about the fields that are set and not carried out. One that stops apply is an error.
func (l *loader) notes() []Problem {
	before := len(l.found)
	security := l.cluster.SecurityNotCarriedOut()
	for _, path := range l.cluster.NotCarriedOut() {
		if slices.Contains(security, path) {
			l.report(path, Error, "remove it", "this version does not carry it out, and apply stops where it is set")
		} else {
			l.report(path, Note, "", "this version does not carry it out")
		}
	}
	notes := slices.Clone(l.found[before:])
	l.found = l.found[:before]
	l.sort(notes)
	return notes
}

// problems returns all problems, the manifest's first, in the order of lines.
func (l *loader) problems() *Problems {
	l.sort(l.found)
	// A mistake in a group of Terraform's is found on each of its hosts.
	l.found = slices.CompactFunc(l.found, func(a, b Problem) bool { return a.String() == b.String() })
	return &Problems{List: l.found}
}

func (l *loader) sort(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(
			l.rank(a.File)-l.rank(b.File),
			strings.Compare(a.File, b.File),
			a.Line-b.Line,
			a.Column-b.Column,
			strings.Compare(a.Path, b.Path),
		)
	})
}

func (l *loader) rank(file string) int {
	if file == l.ManifestPath {
		return 0
	}
	return 1
}

// explained reports whether a finding only follows from a problem that is known already: at its path or above it, or,
// if something is missing, below it.
func (l *loader) explained(f v1beta2.Finding) bool {
	return slices.ContainsFunc(l.explain, func(known string) bool {
		return within(f.Path, known) || f.Missing && within(known, f.Path)
	})
}
