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

// warnDays is the number of days before expiry in which status warns about a certificate. A kubelet renews its
// certificate, which is valid for a year, 36 to 110 days before expiry. A certificate with fewer days was not renewed.
const warnDays = 30

// Status writes the status of a cluster: hosts, API, etcd and quorum, certificates, Machines, drift, running steps,
// locks, health, and the next command.
func Status(w io.Writer, s Style, st StatusInput) {
	v := statusView{&page{style: s}, NewReport(st)}
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

// addFacts writes one line for each fact about the cluster, such as drift, running steps and locks.
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
	v.addPoolFacts()
}

// factColumn is the width of the longest fact name.
const factColumn = len("certificates")

func (v statusView) addFact(name string, color ink, text string) {
	v.addParagraph(padRight(name, factColumn)+"  ", text, color)
}

// checkInk returns the colour of a check.
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
		text += ", not in the manifest"
	}
	if len(m.Alarms) > 0 {
		text += ", alarm " + strings.Join(m.Alarms, ", ")
	}
	return text
}

// addCertificates writes the certificates that have expired or expire soon. If there are none, it writes the one that
// expires first.
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
		v.addFact("certificates", plain, "first: "+formatExpiry(*first))
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

// addDrift writes the differences from the manifest, or "none" if everything was checked.
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
		v.addFact(name, yellow, atHost(hostOrCluster(d.Host), text))
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
		text += ", no longer active"
	}
	return text + ", on " + joinNames(where, 5)
}

// diagnosedProblems returns the problems that are shown as errors or in instructions.
func (v statusView) diagnosedProblems() []problem.Problem {
	out := slices.Clone(v.Problems)
	for _, i := range v.Instructions {
		out = append(out, i.Problems...)
	}
	return out
}

// isRepeated reports whether an error or instruction already contains the warning.
func (v statusView) isRepeated(warning problem.Problem) bool {
	return containsProblem(v.diagnosedProblems(), warning.Host, warning.Text())
}

// containsProblem reports whether the list contains the problem with this host and text.
func containsProblem(problems []problem.Problem, host, what string) bool {
	return slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Host == host && p.Text() == what })
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
	v.addHeading("! Action required:")
	for i, o := range v.Instructions {
		v.addInstruction(i+1, atHost(names[o.Host], o.Reason()), o.Texts())
	}
}

// addSummary writes whether the cluster is healthy, the failed checks, and the next command.
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
		v.addFailedChecks()
	}
	if next := nextCommand(v.Report); next != "" {
		v.addParagraph(v.style.paintText(bold, "Next: "), next, plain)
	}
}

func (v statusView) addFailedChecks() {
	t := &table{indent: 2}
	for _, c := range v.Checks {
		if !c.OK {
			t.addRow(cell{c.Name, plain}, cell{cleanText(c.Detail), plain})
		}
	}
	v.addTable(t)
}

// hostsOfRole returns the number of hosts with this role in the manifest.
func (v statusView) hostsOfRole(r desired.Role) int {
	n := 0
	for _, h := range v.Hosts {
		if h.Role == r {
			n++
		}
	}
	return n
}

// nextCommand returns what the operator should do next, or "" if nothing.
func nextCommand(r Report) string {
	if slices.ContainsFunc(r.Locks, func(l LockReport) bool { return l.Live }) {
		return "wait; another run is active."
	}
	switch r.Route {
	case fsm.Install:
		return "run kubeone apply to install the cluster."
	case fsm.Join:
		return "run kubeone apply to join the missing hosts."
	case fsm.Repair:
		if r.Healthy {
			return "kubeone plan shows the differences; kubeone apply corrects them."
		}
		return "run kubeone apply to repair the cluster."
	case fsm.MoveEndpoint:
		return "run kubeone apply to switch to the API endpoint in the manifest."
	case fsm.Instruct:
		return "follow the instructions above, then run kubeone apply."
	case fsm.DisasterRecovery:
		return "etcd has lost quorum: follow the instructions above and do not delete anything."
	case fsm.Upgrade:
		return "kubeone plan shows the steps of the upgrade to version " + r.Version + "."
	case fsm.Reconfigure:
		return "kubeone plan shows the differences; kubeone apply changes one host at a time."
	case fsm.Encrypt:
		return "kubeone plan shows how the encryption of Secrets changes; kubeone apply changes it."
	case fsm.Resources:
		return "kubeone plan shows the differences; kubeone apply updates the cluster."
	case fsm.Error:
		return "fix the errors above, then run kubeone status again."
	case fsm.Nothing:
		switch {
		case slices.ContainsFunc(r.Drift, func(d Difference) bool { return d.What == pendingHooks }):
			return "kubeone plan shows the pending hooks; kubeone apply runs them."
		case !r.Healthy:
			return "apply has nothing to do; investigate the failed checks above, then run kubeone status again."
		}
	}
	return ""
}

// NotRunning returns a line about components that are not running, or "" if there are none.
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

// Unsettled returns what a run is waiting for: the members and components that are not ready or, if there are none, the
// steps in the new plan.
func Unsettled(notReady []string, p plan.Plan) string {
	if len(notReady) > 0 {
		return cleanText(joinNames(notReady, 4)) + ": not healthy yet"
	}
	titles := make([]string, 0, len(p.Steps))
	for _, s := range p.Steps {
		titles = append(titles, hostOrCluster(p.Hosts[s.Host])+" "+s.Title)
	}
	if len(titles) == 0 {
		return "the cluster does not match the manifest yet"
	}
	return "the cluster does not match the manifest yet: " + cleanText(joinNames(titles, 3))
}
