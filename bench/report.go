package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// report holds the results of the measurements. A measurement that did not run is nil.
type report struct {
	Format   int             `json:"format"`
	Machine  machine         `json:"machine"`
	Start    *startResult    `json:"start,omitempty"`
	Plans    []planResult    `json:"plans,omitempty"` // by hosts
	Install  *installResult  `json:"install,omitempty"`
	Noop     *noopResult     `json:"noop,omitempty"`
	Machines *machinesResult `json:"machines,omitempty"`
}

// printTo writes the report as text or json.
func (r *report) printTo(w io.Writer, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	p := &printer{w: w}
	p.printLine("machine: %d cores, %d GB, %s", r.Machine.Cores, r.Machine.MemoryGB, r.Machine.Platform)
	if r.Start != nil {
		p.printStart(*r.Start)
	}
	for _, one := range r.Plans {
		p.printPlan(one)
	}
	if r.Install != nil {
		p.printInstall(*r.Install)
	}
	if r.Noop != nil {
		p.printNoop(*r.Noop)
	}
	if r.Machines != nil {
		p.printMachines(*r.Machines)
	}
	return p.err
}

// checkLimits returns errOver when a result exceeds a limit that the options enforce.
func (r *report) checkLimits(o options) error {
	if o.maxRatio > 0 && r.Install != nil && r.Install.Ratio > o.maxRatio {
		return errOver
	}
	if !o.check {
		return nil
	}
	kept := (r.Start == nil || r.Start.WithinSeconds && r.Start.WithinSize) &&
		!slices.ContainsFunc(r.Plans, planResult.isOver) &&
		(r.Noop == nil || r.Noop.Within) &&
		(r.Machines == nil || r.Machines.Within)
	if !kept {
		return errOver
	}
	return nil
}

// printer writes lines until the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printLine(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func limitWord(kept bool) string {
	if kept {
		return "within"
	}
	return "OVER"
}

func (p *printer) printStart(r startResult) {
	p.printLine("\nstart: kubeone version takes %.0f ms (%s the limit of %.0f ms); the program has %.1f MB (%s "+
		"the limit of %d MB)",
		r.Seconds*1000, limitWord(r.WithinSeconds), startLimit*1000, r.SizeMB, limitWord(r.WithinSize), sizeLimit)
}

func (p *printer) printPlan(r planResult) {
	p.printLine("\nplan: %d hosts, round trip %v: %.1f s (%s the limit of %d s), %d MB (%s the limit of %d MB)",
		r.Hosts,
		roundTrip,
		r.Seconds, limitWord(r.WithinSeconds), planSecondsLimit, r.ClientMB, limitWord(r.WithinMemory), planMemoryLimit)
	p.printLine("  %d hosts answered, route %q; a host had %d connection and %d command", r.Reached, r.Route,
		r.Connections,
		r.Commands)
	p.printLine("  load %.2f s, probe %.2f s, decide and plan %.2f s", r.Load, r.Probe, r.Think)
	p.printLine("  CPU: kubeone %.1f s, the simulated hosts %.1f s; the hosts' process has %d MB", r.ClientCPU,
		r.ServerCPU,
		r.ServerMB)
}

func (p *printer) printInstall(r installResult) {
	p.printLine("\ninstall: %d control planes, %d workers", r.ControlPlanes, r.Workers)
	for _, pair := range r.Pairs {
		p.printLine("  by hand  %6.1f s, CPU %6.1f s: %s", pair.ByHand.Seconds, pair.ByHand.CPUSeconds,
			stagesText(pair.ByHand.Stages))
		p.printLine("  kubeone  %6.1f s, CPU %6.1f s; ratio %.2f", pair.Kubeone.Seconds, pair.Kubeone.CPUSeconds,
			pair.Ratio)
	}
	p.printLine("  ratio %.2f (median of %d)", r.Ratio, len(r.Pairs))
}

func stagesText(stages []stage) string {
	parts := make([]string, 0, len(stages))
	for _, s := range stages {
		parts = append(parts, fmt.Sprintf("%s %.1f", s.Name, s.Seconds))
	}
	return strings.Join(parts, ", ")
}

func (p *printer) printNoop(r noopResult) {
	p.printLine("\nnoop: plan of a cluster as wanted, with %d addons and %d Helm releases, takes %.2f s (median of %d; "+
		"%.2f to %.2f)", r.Addons, r.Releases, r.Seconds, noopRuns, r.Fastest, r.Slowest)
	p.printLine("  a host had %d connection and %d command (%s the limit of one each); %d API requests, %d etcd requests",
		r.Connections, r.Commands, limitWord(r.Within), r.APIRequests, r.EtcdRequests)
}
