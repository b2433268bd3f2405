package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The budgets of a plan over 1000 hosts, and over 5000 hosts, the limit of Kubernetes itself.
const (
	planSecondsLimit = 10
	planMemoryLimit  = 500 // MB
	roundTrip        = 20 * time.Millisecond
)

// planResult measures "kubeone plan" over simulated hosts: real SSH connections with a round trip of 20 ms, canned
// answers.
type planResult struct {
	Hosts         int     `json:"hosts"`
	Reached       int     `json:"reached"`
	Seconds       float64 `json:"seconds"`       // of the program, from start to end
	ClientCPU     float64 `json:"clientSeconds"` // of processors, of the program alone
	ClientMB      int     `json:"clientMB"`      // the most memory that it had resident
	ServerCPU     float64 `json:"serverSeconds"` // of the process that plays the hosts, which shares the machine
	ServerMB      int     `json:"serverMB"`
	Load          float64 `json:"loadSeconds"`  // parts of a look: manifest and connections' preparation
	Probe         float64 `json:"probeSeconds"` // hosts and API asked
	Think         float64 `json:"thinkSeconds"` // decide and plan
	Connections   int     `json:"connectionsAHost"`
	Commands      int     `json:"commandsAHost"`
	Route         string  `json:"route"`
	WithinSeconds bool    `json:"withinSeconds"`
	WithinMemory  bool    `json:"withinMemory"`
}

// isOver reports whether the plan exceeded its budget or missed a host.
func (r planResult) isOver() bool { return !r.WithinSeconds || !r.WithinMemory || r.Reached != r.Hosts }

// measurePlans measures a plan for each number of hosts.
func (b *bench) measurePlans(ctx context.Context) ([]planResult, error) {
	var out []planResult
	for _, hosts := range b.hosts {
		result, err := b.measurePlan(ctx, hosts)
		if err != nil {
			return nil, err
		}
		out = append(out, *result)
	}
	return out, nil
}

func (b *bench) measurePlan(ctx context.Context, hosts int) (*planResult, error) {
	servers, err := startHosts(ctx, filepath.Join(b.dir, fmt.Sprint("fleet-", hosts)), hosts)
	if err != nil {
		return nil, err
	}
	result, err := b.planOver(ctx, servers.manifest)
	usage, stopErr := servers.stopProcess()
	if err != nil {
		return nil, err
	}
	if stopErr != nil {
		return nil, stopErr
	}
	result.Hosts, result.ServerMB, result.ServerCPU = hosts, usage.mb, usage.cpu/2 // each host was probed twice
	result.WithinSeconds = result.Seconds <= planSecondsLimit
	result.WithinMemory = result.ClientMB <= planMemoryLimit
	return result, nil
}

// planOver runs the program, and then probes once more from a separate process that reports more details.
func (b *bench) planOver(ctx context.Context, manifest string) (*planResult, error) {
	var result planResult
	cmd := b.productCommand(ctx, "plan", "-m", manifest)
	var err error
	if result.Seconds, err = firstLook(cmd); err != nil {
		return nil, err
	}
	used := usageOf(cmd.ProcessState)
	result.ClientCPU, result.ClientMB = used.cpu, used.mb
	look, err := b.lookOver(ctx, manifest)
	if err != nil {
		return nil, err
	}
	result.Reached, result.Route, result.Load, result.Probe, result.Think = look.Reached, look.Route, look.Load,
		look.Probe, look.Think
	result.Connections, result.Commands = look.Connections, look.Commands
	return &result, nil
}

// firstLook plans the simulated hosts and returns the seconds until the plan is shown or the program announces another
// probe. It then interrupts the program. The program probes again because these hosts have no API, which might only be
// late.
func firstLook(cmd *exec.Cmd) (float64, error) {
	w := &untilAgain{cmd: cmd}
	cmd.Stderr = w
	start := time.Now()
	ended := cmd.Run()
	took := time.Since(start)
	if !w.at.IsZero() {
		return w.at.Sub(start).Seconds(), nil // the exit status after an interrupt does not matter
	}
	status, err := exitStatus(ended)
	if err == nil && status != 0 && status != 2 {
		err = fmt.Errorf("exit status %d", status)
	}
	if err != nil {
		return 0, withLastLines(fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err), w.printed.String())
	}
	return took.Seconds(), nil
}

// untilAgain reads the messages of a plan, and interrupts the plan when it announces another probe.
type untilAgain struct {
	cmd     *exec.Cmd
	printed bytes.Buffer
	at      time.Time // time of the announcement
}

func (w *untilAgain) Write(p []byte) (int, error) {
	_, _ = w.printed.Write(p)
	if w.at.IsZero() && bytes.Contains(w.printed.Bytes(), []byte("; checking again for up to ")) {
		w.at = time.Now()
		_ = w.cmd.Process.Signal(os.Interrupt)
	}
	return len(p), nil
}

func (b *bench) lookOver(ctx context.Context, manifest string) (look, error) {
	var l look
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	cmd := exec.CommandContext(ctx, self, oneLook, manifest, filepath.Join(b.dir, "state"))
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return l, withLastLines(err, messages.String())
	}
	return l, json.Unmarshal(out, &l)
}

// usage is the resource usage of a process over its lifetime.
type usage struct {
	cpu float64 // seconds
	mb  int     // maximum resident size
}

func usageOf(p *os.ProcessState) usage {
	u := usage{cpu: (p.UserTime() + p.SystemTime()).Seconds()}
	if r, ok := p.SysUsage().(*syscall.Rusage); ok {
		u.mb = int(r.Maxrss >> 10) // in kilobytes on Linux
	}
	return u
}

// hostsProcess is the process that simulates the hosts.
type hostsProcess struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	messages *bytes.Buffer
	manifest string
}

// startHosts starts the process and returns when it accepts connections.
func startHosts(ctx context.Context, dir string, hosts int) (*hostsProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &hostsProcess{
		cmd:      exec.CommandContext(ctx, self, simulatedHosts, dir, fmt.Sprint(hosts)),
		messages: &bytes.Buffer{},
	}
	p.cmd.Stderr = p.messages
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(out, &p.manifest); err != nil {
		_ = p.stdin.Close()
		return nil, withLastLines(fmt.Errorf("simulated hosts: %w", p.cmd.Wait()), p.messages.String())
	}
	return p, nil
}

func (p *hostsProcess) stopProcess() (usage, error) {
	_ = p.stdin.Close() // ends the process
	if err := p.cmd.Wait(); err != nil {
		return usage{}, withLastLines(fmt.Errorf("simulated hosts: %w", err), p.messages.String())
	}
	return usageOf(p.cmd.ProcessState), nil
}
