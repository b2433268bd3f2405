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

// Check is one named condition of a healthy cluster. The exit status, the text and the JSON share the same checks.
type Check struct {
	Name   string `json:"name"` // "hosts", "nodes", "api", "components", "etcd", "certificates", "machines"
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // the result in words
}

// Healthy reports whether all of this holds: every host of the manifest is a healthy member with a Ready Node. The
// Kubernetes API answers. The network plugin and kube-proxy run on every Node, and cluster DNS runs. The voters of etcd
// are known and healthy. The certificates of every control-plane host are known and have not expired. Every Machine is
// a Ready Node. Unknown means unhealthy. Drift does not affect health.
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

// checkHosts is OK if every host is; the detail names the others.
func checkHosts(name, good string, hosts []HostReport, ok func(HostReport) (bool, string)) Check {
	var bad []string
	for _, h := range hosts {
		if fine, how := ok(h); !fine {
			bad = append(bad, h.Name+" "+how)
		}
	}
	c := Check{Name: name, OK: len(bad) == 0 && len(hosts) > 0}
	c.Detail = fmt.Sprintf("%d of %d %s", len(hosts)-len(bad), len(hosts), good)
	if len(bad) > 0 {
		c.Detail += ": " + joinNames(bad, 5)
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
		return Check{"api", false, "no host's API server answers; one is ready at " + a.ReadyAt}
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

// etcdText returns the state of the quorum: "3 voters, 3 healthy, quorum 2: 1 may fail".
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

// nodeText returns the state of a host's Node.
func nodeText(h HostReport) string {
	switch h.NodeReady {
	case observed.Yes:
		return "Ready"
	case observed.No:
		return "not Ready"
	}
	return "not known"
}

// checkComponents is OK if the network plugin, kube-proxy and cluster DNS run where they must (decide.NotRunning), none
// of their objects is missing, and all could be compared.
func checkComponents(st StatusInput) Check {
	a := st.World.API
	if a.Reached != observed.Yes {
		return Check{"components", false, "not known while the API does not answer"}
	}
	var bad []string
	for _, absent := range decide.NotRunning(st.Want.Network, a) {
		bad = append(bad, absent.Component+" is not running on "+joinNames(absent.Where(), 5))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Compared)) {
		c := a.Compared[name]
		for _, d := range slices.Concat(c.Differences, c.Settings) {
			if d.Missing {
				bad = append(bad, d.String())
			}
		}
		if c.Problem != "" {
			bad = append(bad, name+" could not be compared: "+c.Problem)
		}
	}
	if len(bad) > 0 {
		return Check{"components", false, joinNames(bad, 5)}
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

// Problems writes errors: the host, what was found and expected, and what helps. names maps host IDs to display names;
// hosts without one appear by ID.
func Problems(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.addDiagnoses("error: ", red, ps, names)
	out.flush(w)
}

// Warnings writes problems that stop nothing, like Problems.
func Warnings(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.addDiagnoses("warning: ", yellow, ps, names)
	out.flush(w)
}

func (p *page) addDiagnoses(severity string, as ink, ps []problem.Problem, names map[string]string) {
	for _, found := range ps {
		p.addParagraph(p.style.paintText(as, severity), atHost(nameOrID(names, found.Host), found.What()), plain)
		if do := found.Do(); do != "" {
			p.addParagraph(strings.Repeat(" ", textWidth(severity)), do, dim)
		}
	}
}

// Decision writes how each decision was made: questions, answers, reasons, and the route. The first decision is about
// the observed world, each later one about the world after the steps before it.
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
		for i, also := range d.Also {
			lead := ", "
			if i == 0 {
				lead = "; before that "
			}
			route += lead + string(also)
		}
		out.addLine("  " + s.pickText("→ ", "-> ") + s.paintText(bold, route))
	}
	out.flush(w)
}
