package view

import (
	"cmp"
	"fmt"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/phrase"
	"slices"
	"strconv"
	"strings"
)

// Signs for absent and unknown values.
const (
	none     = "-"
	notKnown = "?"
)

// addHosts writes the table of hosts. Reasons follow the line of a host that is not healthy. On a narrow screen, the
// table omits the least important columns.
func (v statusView) addHosts() {
	t := &table{
		head: []string{"HOST", "ADDRESS", "ROLE", "CONDITION", "VERSION", "CONTAINERD", "NODE", "API", "ETCD", "CERTS"},
	}
	for _, h := range v.Hosts {
		t.addRow(v.hostRow(h)...)
	}
	v.fitTable(t)
	for i, row := range t.renderLines(v.style) {
		for _, line := range row {
			v.addLine(line)
		}
		if i > 0 { // the first row is the heading
			v.addReasons(v.Hosts[i-1])
		}
	}
}

// fitTable makes the table fit the screen: it drops columns and, if that is not enough, cuts names.
func (v statusView) fitTable(t *table) {
	for _, title := range []string{"CONTAINERD", "ADDRESS", "ROLE", "CERTS"} {
		if v.style.Width > 0 && t.totalWidth() > v.style.Width {
			t.dropColumn(title)
		}
	}
	const minName = 12
	excess := t.totalWidth() - v.style.Width
	if v.style.Width == 0 || excess <= 0 {
		return
	}
	width := max(t.columnWidths()[0]-excess, minName)
	for _, row := range t.rows {
		row[0].text = v.style.clipText(row[0].text, width)
	}
}

func (v statusView) addReasons(h HostReport) {
	if h.Condition != condition.Healthy && h.Condition != condition.Empty && len(h.Reasons) > 0 {
		// Do not repeat reasons that are shown below as errors or warnings.
		shown := append(v.diagnosedProblems(), v.Warnings...)
		reasons := slices.DeleteFunc(slices.Clone(h.Reasons), func(reason string) bool {
			return containsProblem(shown, h.ID, reason)
		})
		if len(reasons) > 0 {
			v.addParagraph("    ", strings.Join(reasons, "; "), conditionInk(h.Condition))
		}
	}
}

func (v statusView) hostRow(h HostReport) []cell {
	return []cell{
		{cleanText(h.Name), bold}, {cleanText(h.Address), plain}, {string(h.Role), plain},
		{string(h.Condition), conditionInk(h.Condition)}, v.hostVersion(h),
		{orSign(cleanText(h.Containerd), missingSign(h)), plain},
		nodeCell(h), apiCell(h), etcdCell(h), certificateCell(h),
	}
}

func conditionInk(c condition.Condition) ink {
	switch c {
	case condition.Healthy:
		return green
	case condition.Empty, condition.Partial, condition.Unready:
		return yellow
	}
	return red
}

// hostVersion returns the Kubernetes version of the host, and the kubelet version if it differs.
func (v statusView) hostVersion(h HostReport) cell {
	text, color := orSign(cleanText(h.Kubernetes), missingSign(h)), plain
	wanted := cmp.Or(h.WantedKubelet, v.Version)
	switch {
	case h.Kubelet == h.Kubernetes, h.Kubernetes == "" && h.Kubelet == wanted:
	case h.Kubernetes == "":
		text = "kubelet " + cleanText(h.Kubelet)
	case h.Kubelet != "":
		text = fmt.Sprintf("%s (kubelet %s)", cleanText(h.Kubernetes), cleanText(h.Kubelet))
	}
	if h.Kubelet != "" && h.Kubelet != wanted || h.Kubernetes != "" && h.Kubernetes != wanted {
		color = yellow
	}
	return cell{text, color}
}

func nodeCell(h HostReport) cell {
	c := cell{"Ready", plain}
	switch h.NodeReady {
	case observed.No:
		c = cell{"NotReady", red}
	case observed.Unknown:
		c = cell{notKnown, yellow}
	}
	if h.Condition == condition.Empty && h.NodeReady != observed.Yes {
		c = cell{none, plain} // an empty host is not expected to have a Node
	}
	if h.Cordoned {
		c.text += ",cordoned"
		c.color = yellow
	}
	return c
}

func apiCell(h HostReport) cell {
	switch {
	case h.Role != desired.ControlPlane, h.Condition == condition.Empty:
		return cell{none, plain}
	case h.APIServer == observed.Yes:
		return cell{"ok", plain}
	case h.APIServer == observed.No:
		return cell{"fails", red}
	}
	return cell{notKnown, yellow}
}

func etcdCell(h HostReport) cell {
	switch h.Etcd {
	case "", EtcdNone:
		return cell{none, plain}
	case EtcdUnknown:
		return cell{notKnown, yellow}
	case EtcdUnhealthy:
		return cell{string(h.Etcd), red}
	case EtcdLearner:
		return cell{string(h.Etcd), yellow}
	}
	return cell{string(h.Etcd), plain}
}

func certificateCell(h HostReport) cell {
	c := h.Certificate
	switch {
	case c == nil:
		return cell{missingSign(h), plain}
	case c.Expired:
		return cell{"expired", red}
	case c.Days < warnDays:
		return cell{fmt.Sprintf("%dd", c.Days), yellow}
	}
	return cell{fmt.Sprintf("%dd", c.Days), plain}
}

// missingSign returns the sign for a value that a host did not report.
func missingSign(h HostReport) string {
	if h.Condition == condition.Unreachable || h.Condition == condition.Unclear {
		return notKnown
	}
	return none
}

func orSign(text, sign string) string {
	if text == "" {
		return sign
	}
	return text
}

// addPool writes MachineDeployments and Machines. Reasons follow the line of a Machine that is not ready.
func (v statusView) addPool() {
	if v.Pool == nil || v.Pool.Problem != "" {
		return
	}
	v.addSpace()
	if len(v.Pool.Deployments) > 0 {
		t := &table{head: []string{"MACHINEDEPLOYMENT", "WANTED", "READY", "UPDATED", "KUBELET"}}
		for _, d := range v.Pool.Deployments {
			name := cell{d.Name, bold}
			if d.Deleting {
				name.text += " (deleted)"
			}
			ready := cell{strconv.Itoa(d.Ready), plain}
			if d.Ready < d.Replicas {
				ready.color = yellow
			}
			t.addRow(name, cell{strconv.Itoa(d.Replicas), plain}, ready, cell{strconv.Itoa(d.Updated), plain},
				cell{orSign(d.Kubelet, none), plain})
		}
		v.addTable(t)
		v.addSpace()
	}
	v.addMachines()
}

func (v statusView) addMachines() {
	if len(v.Pool.Machines) == 0 {
		return
	}
	t := &table{head: []string{"MACHINE", "PHASE", "KUBELET", "NODE", "HOST", "OWNER"}}
	for _, m := range v.Pool.Machines {
		t.addRow(cell{m.Name, bold}, phaseCell(m), kubeletCell(m), machineNodeCell(m),
			cell{orSign(m.Host, none), plain}, cell{orSign(m.Owner, none), plain})
	}
	for _, title := range []string{"OWNER", "HOST"} {
		if v.style.Width > 0 && t.totalWidth() > v.style.Width {
			t.dropColumn(title)
		}
	}
	for i, lines := range t.renderLines(v.style) {
		for _, line := range lines {
			v.addLine(line)
		}
		if i == 0 {
			continue
		}
		switch m := v.Pool.Machines[i-1]; {
		case m.Error != "":
			v.addParagraph("    ", m.Error, red)
		case m.Waits != "" && m.whyNotReady() != "":
			v.addParagraph("    ", m.Waits, yellow)
		}
	}
}

func phaseCell(m MachineReport) cell {
	c := cell{orSign(m.Phase, none), plain}
	switch {
	case m.Error != "":
		c.color = red
	case m.Phase == "Running":
		c.color = green
	default:
		c.color = yellow
	}
	if m.Deleting && m.Phase != "Deleting" {
		c.text += ", deleted"
	}
	return c
}

func kubeletCell(m MachineReport) cell {
	switch {
	case m.Kubelet == "" && m.WantedKubelet == "":
		return cell{none, plain}
	case m.Kubelet == "":
		return cell{"wants " + m.WantedKubelet, yellow}
	case m.WantedKubelet != "" && m.Kubelet != m.WantedKubelet:
		return cell{fmt.Sprintf("%s, wants %s", m.Kubelet, m.WantedKubelet), yellow}
	}
	return cell{m.Kubelet, plain}
}

func machineNodeCell(m MachineReport) cell {
	if m.Node == "" {
		return cell{none, plain}
	}
	c := cell{m.Node + " Ready", plain}
	switch m.NodeReady {
	case observed.No:
		c = cell{m.Node + " NotReady", red}
	case observed.Unknown:
		c = cell{m.Node + " " + notKnown, yellow}
	}
	if m.Cordoned {
		c.text, c.color = c.text+",cordoned", yellow
	}
	return c
}

// addPoolFacts writes facts about the pool, and the hosts that are being returned or have failed.
func (v statusView) addPoolFacts() {
	if v.Pool == nil {
		return
	}
	if c := v.checkDetail("machines"); c != "" {
		v.addFact("machines", v.checkInk("machines"), c)
	}
	if v.Pool.Problem != "" {
		return
	}
	text, color := "active", plain
	if v.Pool.Controllers != observed.Yes {
		text, color = "kubeone controller has not been active within the last seconds", yellow
	}
	v.addFact("controllers", color, text)
	v.addFact("pool", plain, fmt.Sprintf("%s, %d free", phrase.Count(len(v.Pool.Hosts), "host"), v.Pool.freeHosts()))
	for _, h := range v.Pool.Hosts {
		if h.State == "Returning" || h.State == "Failed" {
			text := h.Name + " is " + strings.ToLower(h.State)
			if h.Message != "" {
				text += ": " + h.Message
			}
			v.addFact("", yellow, text)
		}
	}
	if v.Pool.More {
		v.addFact("", yellow, "the pool has more entries than listed here")
	}
}
