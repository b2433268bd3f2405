package view

import (
	"fmt"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
)

// The signs for what does not exist and for what is not known.
const (
	none     = "-"
	notKnown = "?"
)

// hosts writes the table of hosts; under each that is not healthy stands why. Columns that the reader misses least are
// left out where the screen is too narrow.
func (v statusView) hosts() {
	t := &table{head: []string{"HOST", "ADDRESS", "ROLE", "CONDITION", "VERSION", "CONTAINERD", "NODE", "API", "ETCD", "CERTS"}}
	for _, h := range v.Hosts {
		t.add(v.row(h)...)
	}
	for _, title := range []string{"CONTAINERD", "ADDRESS", "ROLE"} {
		if v.style.Width > 0 && t.wide() > v.style.Width {
			t.drop(title)
		}
	}
	for i, row := range t.lines(v.style) {
		for _, line := range row {
			v.line(line)
		}
		if i > 0 { // the first row is the heading
			v.reasons(v.Hosts[i-1])
		}
	}
}

func (v statusView) reasons(h HostReport) {
	if h.Condition != decide.Healthy && len(h.Reasons) > 0 {
		v.para("    ", strings.Join(h.Reasons, "; "), conditionInk(h.Condition))
	}
}

func (v statusView) row(h HostReport) []cell {
	return []cell{
		{clean(h.Name), bold}, {clean(h.Address), plain}, {string(h.Role), plain},
		{string(h.Condition), conditionInk(h.Condition)}, v.version(h), {orSign(clean(h.Containerd), none), plain},
		nodeCell(h), apiCell(h), etcdCell(h), certificateCell(h.Certificate),
	}
}

func conditionInk(c decide.Condition) ink {
	switch c {
	case decide.Healthy:
		return green
	case decide.Empty, decide.Partial, decide.Unready:
		return yellow
	}
	return red
}

// version is what the host runs; its kubelet's too where that is another.
func (v statusView) version(h HostReport) cell {
	text, as := orSign(clean(h.Kubernetes), none), plain
	switch {
	case h.Kubernetes == "" && h.Kubelet != "":
		text = "kubelet " + clean(h.Kubelet)
	case h.Kubelet != "" && h.Kubelet != h.Kubernetes:
		text = fmt.Sprintf("%s (kubelet %s)", clean(h.Kubernetes), clean(h.Kubelet))
	}
	if h.Kubelet != "" && h.Kubelet != v.Version || h.Kubernetes != "" && h.Kubernetes != v.Version {
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
	if h.Condition == decide.Empty && h.NodeReady == observed.No {
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
	case h.Role != desired.ControlPlane, h.Condition == decide.Empty:
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

func certificateCell(c *CertificateReport) cell {
	switch {
	case c == nil:
		return cell{none, plain}
	case c.Expired:
		return cell{"expired", red}
	case c.Days < warnDays:
		return cell{fmt.Sprintf("%dd", c.Days), yellow}
	}
	return cell{fmt.Sprintf("%dd", c.Days), plain}
}

func orSign(text, sign string) string {
	if text == "" {
		return sign
	}
	return text
}
