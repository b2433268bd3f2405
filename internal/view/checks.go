package view

import (
	"cmp"
	"fmt"
	"io"
	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/text/phrase"
	"maps"
	"slices"
	"strings"
)

// Check is the result of one named health check. The exit status, the text and the JSON use the same checks.
type Check struct {
	Name   string `json:"name"` // "hosts", "nodes", "api", "components", "etcd", "certificates", "machines"
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // the result in words
}

// Healthy reports whether the cluster is healthy. Facts that are unknown make it unhealthy; drift does not. In a
// healthy cluster: - every host in the manifest is a healthy member with a Ready Node - the Kubernetes API responds -
// the network plugin and kube-proxy run on every Node, and cluster DNS runs - the etcd voters are known and healthy -
// the certificates on every control-plane host are known and have not expired - every Machine has a Ready Node
func Healthy(st StatusInput) bool { return NewReport(st).Healthy }

func statusChecks(st StatusInput, r Report) []Check {
	all := []Check{
		checkHosts("hosts", "healthy", r.Hosts, func(h HostReport) (bool, string) {
			return h.Condition == condition.Healthy, string(h.Condition)
		}),
		checkNodes(st.World.API, r.Hosts),
		checkAPI(st.World.API),
		checkComponents(st),
		checkEtcd(r.Etcd),
		checkCertificates(r.Hosts),
	}
	if c := checkMachines(r.Pool); c != nil {
		all = append(all, *c)
	}
	return all
}

// checkHosts returns a check that is OK if there are hosts and ok is true for each. Otherwise the detail lists the
// other hosts, each with the text from ok.
func checkHosts(name, good string, hosts []HostReport, ok func(HostReport) (bool, string)) Check {
	var failed []string
	for _, h := range hosts {
		if passed, state := ok(h); !passed {
			failed = append(failed, h.Name+" "+state)
		}
	}
	c := Check{Name: name, OK: len(failed) == 0 && len(hosts) > 0}
	c.Detail = fmt.Sprintf("%d of %d %s", len(hosts)-len(failed), len(hosts), good)
	if len(failed) > 0 {
		c.Detail += ": " + joinNames(failed, 5)
	}
	return c
}

func checkNodes(a observed.API, hosts []HostReport) Check {
	if a.Reached != observed.Yes {
		return Check{"nodes", false, "not known while the API does not answer"}
	}
	return checkHosts("nodes", "Ready", hosts, func(h HostReport) (bool, string) {
		return h.NodeReady == observed.Yes, nodeText(h)
	})
}

func checkAPI(a observed.API) Check {
	switch {
	case a.Reached == observed.Yes && a.EndpointAnswers == observed.No:
		return Check{"api", false, "the endpoint does not answer: " + a.EndpointProblem + "; the API itself answers"}
	case a.Reached == observed.Yes:
		return Check{"api", true, "answers"}
	case a.ReadyAt != "":
		return Check{"api", false, "no API server on a host answers; one is ready at " + a.ReadyAt}
	case a.Problem != "":
		return Check{"api", false, a.Problem}
	case a.Reached == observed.No:
		return Check{"api", false, "does not answer"}
	}
	return Check{"api", false, "could not be checked"}
}

func checkEtcd(e EtcdReport) Check {
	if e.Reached != observed.Yes {
		detail := "members not known"
		if e.Problem != "" {
			detail += ": " + e.Problem
		}
		return Check{"etcd", false, detail}
	}
	c := Check{"etcd", e.Voters > 0 && e.Healthy == e.Voters, etcdText(e)}
	for _, m := range e.Members {
		if len(m.Alarms) > 0 {
			c.OK = false
			c.Detail += fmt.Sprintf("; %s has alarm %s", cmp.Or(m.Name, m.ID), strings.Join(m.Alarms, ", "))
		}
	}
	for _, a := range e.Orphans {
		c.OK = false
		c.Detail += fmt.Sprintf("; alarm %s of removed member %s: clear it with kubeone etcd disarm", a.Name, a.Member)
	}
	return c
}

// etcdText summarizes the quorum, such as "3 voters, 3 healthy, quorum 2: 1 may fail".
func etcdText(e EtcdReport) string {
	text := fmt.Sprintf("%s, %d healthy, quorum %d: ", phrase.Count(e.Voters, "voter"), e.Healthy, e.Quorum)
	switch {
	case !e.Holds:
		text += "quorum lost"
	case e.MayFail == 0:
		text += "none may fail"
	default:
		text += fmt.Sprintf("%d may fail", e.MayFail)
	}
	if e.Learners > 0 {
		text += ", " + phrase.Count(e.Learners, "learner")
	}
	return text
}

func checkCertificates(hosts []HostReport) Check {
	var expired, unknown []string
	for _, h := range hosts {
		switch c := h.Certificate; {
		case c != nil && c.Expired:
			expired = append(expired, h.Name+" "+c.Name)
		case c == nil && h.Role == desired.ControlPlane:
			unknown = append(unknown, h.Name)
		}
	}
	switch {
	case len(expired) > 0:
		return Check{"certificates", false, "expired: " + joinNames(expired, 5)}
	case len(unknown) > 0:
		return Check{"certificates", false, "not known: " + joinNames(unknown, 5)}
	}
	return Check{"certificates", true, "none has expired"}
}

// nodeText returns the state of the Node of a host.
func nodeText(h HostReport) string {
	switch h.NodeReady {
	case observed.Yes:
		return "Ready"
	case observed.No:
		return "not Ready"
	}
	return "not known"
}

// checkComponents returns a check that is OK if the network plugin, kube-proxy and cluster DNS run where they must
// (decide.NotRunning), and their objects could be compared and none is missing.
func checkComponents(st StatusInput) Check {
	a := st.World.API
	if a.Reached != observed.Yes {
		return Check{"components", false, "not known while the API does not answer"}
	}
	var failures []string
	for _, absent := range decide.NotRunning(st.Want.Network, a) {
		failures = append(failures, absent.Component+" is not running on "+joinNames(absent.Where(), 5))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Compared)) {
		c := a.Compared[name]
		for _, d := range slices.Concat(c.Differences, c.Settings) {
			if d.Missing {
				failures = append(failures, d.String())
			}
		}
		if c.Problem != "" {
			failures = append(failures, name+" could not be compared: "+c.Problem)
		}
	}
	if len(failures) > 0 {
		return Check{"components", false, joinNames(failures, 5)}
	}
	return Check{"components", true, "network, Services and DNS run everywhere they should"}
}

// differingObjects returns the live objects that differ from the manifest.
func differingObjects(a observed.API) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.Compared)) {
		c := a.Compared[name]
		for _, d := range slices.Concat(c.Differences, c.Settings) {
			out = append(out, d.String())
		}
	}
	return out
}

// Problems writes errors. Each states the host, what is wrong, and what to do. names maps host IDs to display names; a
// host without a display name appears by ID.
func Problems(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.addDiagnoses("error: ", red, ps, names)
	out.flush(w)
}

// Warnings writes warnings in the same form as Problems.
func Warnings(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.addDiagnoses("warning: ", yellow, ps, names)
	out.flush(w)
}

func (p *page) addDiagnoses(severity string, color ink, ps []problem.Problem, names map[string]string) {
	for _, found := range ps {
		p.addParagraph(p.style.paintText(color, severity), atHost(nameOrID(names, found.Host), found.Text()), plain)
		if remedy := found.Remedy(); remedy != "" {
			p.addParagraph(strings.Repeat(" ", textWidth(severity)), remedy, dim)
		}
	}
}

// Decision explains the decisions: for each, it writes the questions with answers and reasons, and the route. The first
// decision is about the observed world. Each later one is about the predicted world after the steps of those before it.
func Decision(w io.Writer, s Style, decisions ...decide.Decision) {
	out := &page{style: s}
	for i, d := range decisions {
		title := "Decision"
		if i > 0 {
			title = "Decision after these steps"
		}
		out.addHeading(title)
		t := &table{indent: 2}
		for _, v := range d.Trace {
			t.addRow(cell{string(v.State), plain}, cell{string(v.Event), bold}, cell{cleanText(v.Why), dim})
		}
		out.addTable(t)
		route := string(d.Route)
		for i, earlier := range d.Also {
			separator := ", "
			if i == 0 {
				separator = "; before that "
			}
			route += separator + string(earlier)
		}
		out.addLine("  " + s.pickText("→ ", "-> ") + s.paintText(bold, route))
	}
	out.flush(w)
}
