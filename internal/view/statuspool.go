package view

import (
	"fmt"
	"strconv"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/phrase"
)

// pool writes the Machines and their deployments; under each Machine that has an error, or is not ready, stands why.
func (v statusView) pool() {
	if v.Pool == nil || v.Pool.Problem != "" {
		return
	}
	v.space()
	if len(v.Pool.Deployments) > 0 {
		t := &table{head: []string{"MACHINEDEPLOYMENT", "WANTED", "READY", "UPDATED", "KUBELET"}}
		for _, d := range v.Pool.Deployments {
			name := cell{d.Name, bold}
			if d.Deleting {
				name.text += " (deleted)"
			}
			ready := cell{strconv.Itoa(d.Ready), plain}
			if d.Ready < d.Replicas {
				ready.as = yellow
			}
			t.add(name, cell{strconv.Itoa(d.Replicas), plain}, ready, cell{strconv.Itoa(d.Updated), plain},
				cell{orSign(d.Kubelet, none), plain})
		}
		v.table(t)
		v.space()
	}
	v.machines()
}

func (v statusView) machines() {
	if len(v.Pool.Machines) == 0 {
		return
	}
	t := &table{head: []string{"MACHINE", "PHASE", "KUBELET", "NODE", "HOST", "OWNER"}}
	for _, m := range v.Pool.Machines {
		t.add(cell{m.Name, bold}, phaseCell(m), kubeletCell(m), machineNodeCell(m),
			cell{orSign(m.Host, none), plain}, cell{orSign(m.Owner, none), plain})
	}
	for _, title := range []string{"OWNER", "HOST"} {
		if v.style.Width > 0 && t.wide() > v.style.Width {
			t.drop(title)
		}
	}
	for i, lines := range t.lines(v.style) {
		for _, line := range lines {
			v.line(line)
		}
		if i == 0 {
			continue
		}
		switch m := v.Pool.Machines[i-1]; {
		case m.Error != "":
			v.para("    ", m.Error, red)
		case m.Waits != "" && m.trouble() != "":
			v.para("    ", m.Waits, yellow)
		}
	}
}

func phaseCell(m MachineReport) cell {
	c := cell{orSign(m.Phase, none), plain}
	switch {
	case m.Error != "":
		c.as = red
	case m.Phase == "Running":
		c.as = green
	default:
		c.as = yellow
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
		c.text, c.as = c.text+",cordoned", yellow
	}
	return c
}

// poolFacts are what concerns the pool as a whole, and hosts that nobody has returned.
func (v statusView) poolFacts() {
	if v.Pool == nil {
		return
	}
	if c := v.checkDetail("machines"); c != "" {
		v.fact("machines", v.check("machines"), c)
	}
	if v.Pool.Problem != "" {
		return
	}
	text, as := "work", plain
	if v.Pool.Controllers != observed.Yes {
		text, as = "kubeone controller was not heard of within the last seconds", yellow
	}
	v.fact("controllers", as, text)
	v.fact("pool", plain, fmt.Sprintf("%s, %d free", phrase.Count(len(v.Pool.Hosts), "host"), v.Pool.free()))
	for _, h := range v.Pool.Hosts {
		if h.State == "Returning" || h.State == "Failed" {
			said := h.Name + " is " + strings.ToLower(h.State)
			if h.Message != "" {
				said += ": " + h.Message
			}
			v.fact("", yellow, said)
		}
	}
	if v.Pool.More {
		v.fact("", yellow, "there is more of the pool than is listed here")
	}
}
