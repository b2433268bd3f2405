package view

import (
	"fmt"
	"io"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/text/phrase"
	"slices"
	"strings"
	"time"
)

// warnDays is how many days before its end a certificate is worth a warning. A kubelet renews its own, valid for a
// year, 36 to 110 days before the end; one with fewer days was not renewed.
const warnDays = 30

// Status writes a cluster's status: its hosts, the API, etcd with its quorum, certificates, Machines, what differs
// from the manifest, what runs and who holds the lock; then whether it is healthy, and what to do next.
func Status(w io.Writer, s Style, st StatusInput) {
	v := statusView{&page{style: s}, ReportOf(st)}
	v.addHosts()
	v.addPool()
	v.addFacts()
	v.addDiagnostics()
	v.addSummary()
	v.flush(w)
}

type statusView struct {
	*page
	Report
}

// addFacts are what concerns the cluster as a whole, a line each. Of a cluster that is not installed there are hardly
// any.
func (v statusView) addFacts() {
	v.addSpace()
	if v.Route != fsm.Install {
		v.addComponents()
	}
	v.addDrift()
	for _, r := range v.Running {
		v.addFact("running", plain, fmt.Sprintf("%s on %s, run %s", r.Stage, r.Host, r.RunID))
	}
	for _, l := range v.Locks {
		v.addFact("lock", plain, v.lockText(l))
	}
}

func (v statusView) addComponents() {
	v.addFact("API", v.checkInk("api"), v.apiText())
	v.addFact("etcd", v.checkInk("etcd"), v.checkDetail("etcd"))
	for _, m := range v.Etcd.Members {
		if m.Host == "" || len(m.Alarms) > 0 {
			v.addFact("", yellow, memberText(m))
		}
	}
	v.addFact("components", v.checkInk("components"), v.checkDetail("components"))
	v.addEncryption()
	v.addCertificates()
	v.poolFacts()
}

// factColumn is as wide as the longest name of a fact.
const factColumn = len("certificates")

func (v statusView) addFact(name string, as ink, text string) {
	v.addParagraph(padRight(name, factColumn)+"  ", text, as)
}

// checkInk is the colour of a check's fact.
func (v statusView) checkInk(name string) ink {
	if slices.ContainsFunc(v.Checks, func(c Check) bool { return c.Name == name && !c.OK }) {
		return red
	}
	return plain
}

func (v statusView) checkDetail(name string) string {
	for _, c := range v.Checks {
		if c.Name == name {
			return c.Detail
		}
	}
	return ""
}

func (v statusView) apiText() string {
	text := v.API.Endpoint + ": " + v.checkDetail("api")
	if v.API.Via != "" {
		text += " through " + v.API.Via
	}
	if v.API.Version != "" {
		text += ", version " + v.API.Version
	}
	if v.API.PendingCSRs > 0 {
		text += ", " + phrase.Count(v.API.PendingCSRs, "certificate request") + " pending"
	}
	return text
}

func memberText(m MemberReport) string {
	name := m.Name
	if name == "" {
		name = "without a name"
	}
	text := fmt.Sprintf("member %s (%s): %s", name, m.ID, m.State)
	if m.Host == "" {
		text += ", the manifest has no host for it"
	}
	if len(m.Alarms) > 0 {
		text += ", alarm " + strings.Join(m.Alarms, ", ")
	}
	return text
}

// addCertificates tells the certificate that expires first, and every host's that expires soon.
func (v statusView) addCertificates() {
	var soon []string
	var first *HostReport
	for i, h := range v.Hosts {
		switch {
		case h.Certificate == nil:
			continue
		case h.Certificate.Days < warnDays:
			soon = append(soon, formatExpiry(h))
		}
		if first == nil || h.Certificate.NotAfter.Before(first.Certificate.NotAfter) {
			first = &v.Hosts[i]
		}
	}
	switch {
	case first == nil:
		v.addFact("certificates", plain, "not known")
	case first.Certificate.Expired:
		v.addFact("certificates", red, joinNames(soon, 8))
	case len(soon) > 0:
		v.addFact("certificates", yellow, joinNames(soon, 8))
	default:
		v.addFact("certificates", plain, "the first is "+formatExpiry(*first))
	}
}

func formatExpiry(h HostReport) string {
	date := h.Certificate.NotAfter.UTC().Format(time.DateOnly)
	if h.Certificate.Expired {
		return fmt.Sprintf("%s %s expired on %s", h.Name, h.Certificate.Name, date)
	}
	left := phrase.Count(h.Certificate.Days, "day")
	return fmt.Sprintf("%s %s, expires in %s (%s)", h.Name, h.Certificate.Name, left, date)
}

// addDrift tells drift, or that there is none where the decision got as far as looking.
func (v statusView) addDrift() {
	if len(v.Drift) == 0 && v.Route == fsm.Nothing {
		v.addFact("drift", plain, "none")
	}
	for i, d := range v.Drift {
		name := ""
		if i == 0 {
			name = "drift"
		}
		text := d.What
		if len(d.Of) > 0 {
			text += " (" + strings.Join(d.Of, ", ") + ")"
		}
		v.addFact(name, yellow, atHost(hostOr(d.Host), text))
	}
}

func (v statusView) lockText(l LockReport) string {
	where := slices.Clone(l.Hosts)
	if l.API {
		where = append(where, "the API")
	}
	text := fmt.Sprintf("%s, run %s, since %s (%s ago)", l.Holder, l.RunID, l.Since.UTC().Format(time.RFC3339),
		formatDuration(v.Time.Sub(l.Since)))
	if !l.Live {
		text += ", not heard of any more"
	}
	return text + ", on " + joinNames(where, 5)
}

// diagnosedProblems returns all that errors and instructions are about.
func (v statusView) diagnosedProblems() []problem.Problem {
	out := slices.Clone(v.Problems)
	for _, i := range v.Instructions {
		out = append(out, i.Problems...)
	}
	return out
}

// isRepeated reports whether a warning says what an error or an instruction says already.
func (v statusView) isRepeated(warning problem.Problem) bool {
	return saysOf(v.diagnosedProblems(), warning.Host, warning.What())
}

// saysOf reports whether one of the problems is this one of a host.
func saysOf(problems []problem.Problem, host, what string) bool {
	return slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Host == host && p.What() == what })
}

func (v statusView) addDiagnostics() {
	names := map[string]string{}
	for _, h := range v.Hosts {
		names[h.ID] = h.Name
	}
	v.addSpace()
	v.addDiagnoses("error: ", red, v.Problems, names)
	v.addDiagnoses("warning: ", yellow, slices.DeleteFunc(slices.Clone(v.Warnings), v.isRepeated), names)
	if len(v.Instructions) == 0 {
		return
	}
	v.addHeading("! You must act:")
	for i, o := range v.Instructions {
		v.addInstruction(i+1, atHost(names[o.Host], o.Reason()), o.Texts())
	}
}

// addSummary is whether the cluster is healthy, which checks say that it is not, and what comes next.
func (v statusView) addSummary() {
	v.addSpace()
	switch {
	case v.Healthy:
		text := fmt.Sprintf("Cluster %s is healthy: %s, %s", v.Cluster,
			phrase.Count(v.hostsOfRole(desired.ControlPlane), "control-plane host"),
			phrase.Count(v.hostsOfRole(desired.Worker), "worker"))
		if v.Pool != nil && len(v.Pool.Machines) > 0 {
			text += ", " + phrase.Count(len(v.Pool.Machines), "Machine")
		}
		v.addParagraph("", text+", Kubernetes "+v.Version+".", green)
	case v.Route == fsm.Install:
		v.addParagraph("", "Cluster "+v.Cluster+" is not installed.", yellow)
	default:
		v.addParagraph("", "Cluster "+v.Cluster+" is not healthy:", red)
		v.failedChecks()
	}
	if next := nextCommand(v.Report); next != "" {
		v.addParagraph(v.style.paintText(bold, "Next: "), next, plain)
	}
}

func (v statusView) failedChecks() {
	t := &table{indent: 2}
	for _, c := range v.Checks {
		if !c.OK {
			t.addRow(cell{c.Name, plain}, cell{cleanText(c.Detail), plain})
		}
	}
	v.addTable(t)
}

// hostsOfRole is how many hosts of the role the manifest has.
func (v statusView) hostsOfRole(r desired.Role) int {
	n := 0
	for _, h := range v.Hosts {
		if h.Role == r {
			n++
		}
	}
	return n
}

// nextCommand says what a person does now.
func nextCommand(r Report) string {
	if slices.ContainsFunc(r.Locks, func(l LockReport) bool { return l.Live }) {
		return "wait, a run is going on."
	}
	switch r.Route {
	case fsm.Install:
		return "kubeone apply installs the cluster."
	case fsm.Join:
		return "kubeone apply joins the hosts that are missing."
	case fsm.Repair:
		if r.Healthy {
			return "kubeone plan shows what differs, kubeone apply makes it right."
		}
		return "kubeone apply repairs what is broken."
	case fsm.MoveEndpoint:
		return "kubeone apply has everybody find the API where the manifest says."
	case fsm.Instruct:
		return "follow the instructions above, then run kubeone apply."
	case fsm.DisasterRecovery:
		return "etcd has lost its quorum: follow the instructions above, and delete nothing."
	case fsm.Upgrade:
		return "kubeone plan shows what the change to version " + r.Version + " takes."
	case fsm.Reconfigure:
		return "kubeone plan shows what differs, kubeone apply brings it to the hosts, one after the other."
	case fsm.Encrypt:
		return "kubeone plan shows how Secrets come to be stored as the manifest says, kubeone apply does it."
	case fsm.Resources:
		return "kubeone plan shows what differs, kubeone apply makes it as the manifest says."
	case fsm.Error:
		return "put the errors above right, then run kubeone status again."
	case fsm.Nothing:
		switch {
		case slices.ContainsFunc(r.Drift, func(d Difference) bool { return d.What == hooksOwed }):
			return "kubeone plan shows the hooks that are owed, kubeone apply runs them."
		case !r.Healthy:
			return "apply has nothing to do: look into what is named above, then run kubeone status again."
		}
	}
	return ""
}

// NotRunning returns the line after "Done." that names components that do not run; "" if they all run.
func NotRunning(absent []decide.Absence) string {
	if len(absent) == 0 {
		return ""
	}
	names := make([]string, 0, len(absent))
	for _, a := range absent {
		names = append(names, a.String())
	}
	return "Not running yet: " + cleanText(joinNames(names, 4)) + "; see kubeone status."
}

// Unsettled returns what a run still waits for: the names of what is not ready, else the steps of a plan made now.
func Unsettled(notReady []string, p plan.Plan) string {
	if len(notReady) > 0 {
		return cleanText(joinNames(notReady, 4)) + ": not healthy yet"
	}
	titles := make([]string, 0, len(p.Steps))
	for _, s := range p.Steps {
		titles = append(titles, hostOr(p.Hosts[s.Host])+" "+s.Title)
	}
	if len(titles) == 0 {
		return "the cluster is not as the manifest says yet"
	}
	return "the cluster is not as the manifest says yet: " + cleanText(joinNames(titles, 3))
}
