package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/workspace"
)

// oneLook is the argument that makes this program probe a cluster once, in a process of its own.
const oneLook = "one-look"

// look is the cost of probing a cluster once.
type look struct {
	Reached      int     `json:"reached"` // hosts
	Route        string  `json:"route"`
	Load         float64 `json:"loadSeconds"`
	Probe        float64 `json:"probeSeconds"`
	Think        float64 `json:"thinkSeconds"`
	Connections  int     `json:"connections"` // the most to any host
	Commands     int     `json:"commands"`    // likewise
	APIRequests  int     `json:"apiRequests"`
	EtcdRequests int     `json:"etcdRequests"`
}

// printLook probes the cluster of a manifest and prints a look as JSON. Its arguments are the manifest and a folder for
// kubeone's state.
func printLook(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%s MANIFEST STATE", oneLook)
	}
	l, err := lookAt(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(l)
}

func lookAt(ctx context.Context, manifest, state string) (look, error) {
	start := time.Now()
	answers := &stopwatch{}
	w, err := workspace.Open(ctx, workspace.Options{
		Manifest: manifest,
		StateDir: state,
		NewHosts: host.PolicyProbe,
		Now:      answers.readClock,
	})
	if err != nil {
		return look{}, err
	}
	defer w.Close()
	opened := time.Now()
	seen, err := w.Engine.Propose(ctx, engine.Apply{})
	if err != nil {
		return look{}, err
	}
	l := look{
		Route: string(seen.Decision().Route), Load: opened.Sub(start).Seconds(),
		Probe: answers.before.Sub(opened).Seconds(), Think: answers.last.Sub(answers.before).Seconds(),
		APIRequests: seen.Observed.Requests.API, EtcdRequests: seen.Observed.Requests.Etcd,
	}
	for _, h := range seen.Observed.World.Hosts {
		if h.Reach == observed.Reached {
			l.Reached++
		}
	}
	for _, s := range w.Stats().Hosts {
		l.Connections, l.Commands = max(l.Connections, s.Connections), max(l.Commands, s.Commands)
	}
	return l, nil
}

// stopwatch is a clock that remembers its last two reads. An engine reads its clock when a host has answered and when
// probing is over.
type stopwatch struct {
	mu           sync.Mutex
	before, last time.Time
}

func (s *stopwatch) readClock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.last = s.last, time.Now()
	return s.last
}
