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

// Check is one named condition of a healthy cluster. The same checks make the exit status, the text and the JSON.
type Check struct {
	Name   string `json:"name"` // "hosts", "nodes", "api", "components", "etcd", "certificates", "machines"
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what was found, in words
}

// Healthy reports whether the cluster is as healthy as a cluster can be: every host of the manifest is a healthy member
// with a Node that is Ready, the Kubernetes API answers, the network plugin and kube-proxy run on every Node and
// cluster DNS runs, etcd's voters are known and all healthy, the certificates of every control-plane host are known and
// none has expired, and every Machine is a Node that is Ready. What is not known is not healthy. Drift is no matter of
// health.
func Healthy(st StatusInput) bool { return ReportOf(st).Healthy }

func statusChecks(st StatusInput, r Report) []Check {
	all := []Check{
		checkAll("hosts", "healthy", r.Hosts, func(h HostReport) (bool, string) {
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

// checkAll is ok when every host is; the detail names those that are not.
func checkAll(name, good string, hosts []HostReport, ok func(HostReport) (bool, string)) Check {
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
	return checkAll("nodes", "Ready", hosts, func(h HostReport) (bool, string) {
		return h.NodeReady == observed.Yes, nodeText(h)
	})
}

func checkAPI(a observed.API) Check {
	switch {
	case a.Reached == observed.Yes && a.EndpointAnswers == observed.No:
		return Check{"api", false, "nothing answers there: " + a.EndpointProblem + "; the API answers"}
	case a.Reached == observed.Yes:
		return Check{"api", true, "answers"}
	case a.ReadyAt != "":
		return Check{"api", false, "none of the hosts' answers; one is ready at " + a.ReadyAt}
	case a.Problem != "":
		return Check{"api", false, a.Problem}
	case a.Reached == observed.No:
		return Check{"api", false, "does not answer"}
	}
	return Check{"api", false, "could not be asked"}
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
		c.Detail += fmt.Sprintf("; alarm %s of member %s, which has left: kubeone etcd disarm", a.Name, a.Member)
	}
	return c
}

// etcdText is the quorum's arithmetic: "3 voters, 3 healthy, quorum 2: 1 may fail".
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

// nodeText is what a host's Node is.
func nodeText(h HostReport) string {
	switch h.NodeReady {
	case observed.Yes:
		return "Ready"
	case observed.No:
		return "not Ready"
	}
	return "not known"
}

// checkComponents is ok when network plugin, kube-proxy and cluster DNS run where they must (decide.NotRunning), and no
// object of theirs is missing. What could not be compared is not ok.
func checkComponents(st StatusInput) Check {
	a := st.World.API
	if a.Reached != observed.Yes {
		return Check{"components", false, "not known while the API does not answer"}
	}
	var bad []string
	for _, absent := range decide.NotRunning(st.Want.Network, a) {
		bad = append(bad, absent.Component+" does not run on "+joinNames(absent.Where(), 5))
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

// objectsOf says which live objects are not as they must be, and what could not be compared.
func objectsOf(a observed.API) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.Compared)) {
		c := a.Compared[name]
		for _, d := range slices.Concat(c.Differences, c.Settings) {
			out = append(out, d.String())
		}
	}
	return out
}

// Problems writes what stands in the way: each with its host's name, what was found and wanted, and what helps. Names
// are display names by host ID; a host without one is called by its ID.
func Problems(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.addDiagnoses("error: ", red, ps, names)
	out.flush(w)
}

// Warnings writes what does not stop anything, as Problems does.
func Warnings(w io.Writer, s Style, ps []problem.Problem, names map[string]string) {
	out := &page{style: s}
	out.addDiagnoses("warning: ", yellow, ps, names)
	out.flush(w)
}

func (p *page) addDiagnoses(severity string, as ink, ps []problem.Problem, names map[string]string) {
	for _, found := range ps {
		p.addParagraph(p.style.paintText(as, severity), atHost(nameOf(names, found.Host), found.What()), plain)
		if do := found.Do(); do != "" {
			p.addParagraph(strings.Repeat(" ", textWidth(severity)), do, dim)
		}
	}
}

// Decision writes how each decision was made: what was asked, the answer, the reason, and the route at the end. The
// first decision is about the world as it is, each further one about the world after the steps of those before.
func Decision(w io.Writer, s Style, decisions ...decide.Decision) {
	out := &page{style: s}
	for i, d := range decisions {
		title := "Decision"
		if i > 0 {
			title = "Then, after these steps"
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
