package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// The signs for what does not exist and for what is not known.
const (
	none     = "-"
	notKnown = "?"
)

// hosts writes the table of hosts; under each that is not healthy stands why. Columns that the reader misses least are
// left out where the screen is too narrow.
func (v statusView) hosts() {
	t := &table{
		head: []string{"HOST", "ADDRESS", "ROLE", "CONDITION", "VERSION", "CONTAINERD", "NODE", "API", "ETCD", "CERTS"},
	}
	for _, h := range v.Hosts {
		t.add(v.row(h)...)
	}
	v.fit(t)
	for i, row := range t.lines(v.style) {
		for _, line := range row {
			v.line(line)
		}
		if i > 0 { // the first row is the heading
			v.reasons(v.Hosts[i-1])
		}
	}
}

// fit makes the table as narrow as the screen: it drops columns, then cuts names.
func (v statusView) fit(t *table) {
	for _, title := range []string{"CONTAINERD", "ADDRESS", "ROLE", "CERTS"} {
		if v.style.Width > 0 && t.wide() > v.style.Width {
			t.drop(title)
		}
	}
	const least = 12
	over := t.wide() - v.style.Width
	if v.style.Width == 0 || over <= 0 {
		return
	}
	room := max(t.widths()[0]-over, least)
	for _, row := range t.rows {
		row[0].text = v.style.clip(row[0].text, room)
	}
}

func (v statusView) reasons(h HostReport) {
	if h.Condition != condition.Healthy && h.Condition != condition.Empty && len(h.Reasons) > 0 {
		// What is among the errors and warnings below is not said twice.
		below := append(v.diagnosed(), v.Warnings...)
		reasons := slices.DeleteFunc(slices.Clone(h.Reasons), func(reason string) bool {
			return saysOf(below, h.ID, reason)
		})
		if len(reasons) > 0 {
			v.para("    ", strings.Join(reasons, "; "), conditionInk(h.Condition))
		}
	}
}

func (v statusView) row(h HostReport) []cell {
	return []cell{
		{clean(h.Name), bold}, {clean(h.Address), plain}, {string(h.Role), plain},
		{string(h.Condition), conditionInk(h.Condition)}, v.version(h),
		{orSign(clean(h.Containerd), missing(h)), plain},
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

// version is what the host runs; its kubelet's too where that is another.
func (v statusView) version(h HostReport) cell {
	text, as := orSign(clean(h.Kubernetes), missing(h)), plain
	wanted := cmp.Or(h.WantedKubelet, v.Version)
	switch {
	case h.Kubelet == h.Kubernetes, h.Kubernetes == "" && h.Kubelet == wanted:
	case h.Kubernetes == "":
		text = "kubelet " + clean(h.Kubelet)
	case h.Kubelet != "":
		text = fmt.Sprintf("%s (kubelet %s)", clean(h.Kubernetes), clean(h.Kubelet))
	}
	if h.Kubelet != "" && h.Kubelet != wanted || h.Kubernetes != "" && h.Kubernetes != wanted {
		as = yellow
	}
	return cell{text, as}
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
		c = cell{none, plain} // nobody expects one
	}
	if h.Cordoned {
		c.text += ",cordoned"
		c.as = yellow
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
		return cell{missing(h), plain}
	case c.Expired:
		return cell{"expired", red}
	case c.Days < warnDays:
		return cell{fmt.Sprintf("%dd", c.Days), yellow}
	}
	return cell{fmt.Sprintf("%dd", c.Days), plain}
}

// missing is the sign for what a host did not say.
func missing(h HostReport) string {
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
