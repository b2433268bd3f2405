package view

import (
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
)

// stream creates the events of a run at given times.
type stream struct {
	plan   plan.Plan
	events []apply.Event
	began  map[string]float64
	done   int
}

func newStream(p plan.Plan) *stream {
	s := &stream{plan: p, began: map[string]float64{}}
	s.addEvent(0, apply.Event{Type: apply.RunStarted, Total: len(p.Steps), Digest: p.Digest()})
	return s
}

func (s *stream) addEvent(at float64, e apply.Event) {
	e.Format, e.RunID = apply.EventFormat, "20260810-030000-7f3a"
	e.Time = now().Add(time.Duration(at * float64(time.Second)))
	s.events = append(s.events, e)
}

func (s *stream) step(at float64, kind apply.EventType, id string) apply.Event {
	step, _ := s.plan.Step(id)
	e := apply.Event{Type: kind, Step: id, Host: s.plan.Hosts[step.Host], Title: step.Title}
	switch kind {
	case apply.StepStarted:
		s.began[id] = at
	case apply.StepDone:
		s.done++
		e.Seconds, e.Done, e.Total = at-s.began[id], s.done, len(s.plan.Steps)
	case apply.StepFailed:
		e.Seconds = at - s.began[id]
	}
	return e
}

func (s *stream) start(at float64, id string)    { s.addEvent(at, s.step(at, apply.StepStarted, id)) }
func (s *stream) endStep(at float64, id string)  { s.addEvent(at, s.step(at, apply.StepDone, id)) }
func (s *stream) skipStep(at float64, id string) { s.addEvent(at, s.step(at, apply.StepSkipped, id)) }

func (s *stream) fail(at float64, id, why string) {
	e := s.step(at, apply.StepFailed, id)
	where := e.Host
	if where == "" {
		where = "cluster"
	}
	e.Error = where + ": " + e.Title + ": " + why
	s.addEvent(at, e)
}

func (s *stream) addOutput(at float64, id, line string) {
	e := s.step(at, apply.StepOutput, id)
	e.Title, e.Line = "", line
	s.addEvent(at, e)
}

func (s *stream) beat(at float64, running ...string) {
	s.addEvent(at, apply.Event{Type: apply.Heartbeat, Running: running, Done: s.done, Total: len(s.plan.Steps)})
}

func (s *stream) finish(at float64, problem string) *stream {
	s.addEvent(at, apply.Event{Type: apply.RunFinished, Seconds: at, Error: problem})
	return s
}

// joined is a successful join of a worker.
func joined() *stream {
	s := newStream(oneMoreWorker())
	s.start(0, "remove-auto-approval")
	s.start(0, "prepare/worker-2")
	s.endStep(0.25, "remove-auto-approval")
	s.addOutput(1, "prepare/worker-2", "containerd 2.3.5 \x1b[32munpacked\x1b[0m")
	s.beat(15, "prepare/worker-2")
	s.endStep(22.1, "prepare/worker-2")
	s.start(22.1, "images/worker-2")
	s.addOutput(25, "images/worker-2",
		"imported registry.k8s.io/kube-proxy:v1.36.3 by its digest, which is long enough to be cut somewhere")
	s.addEvent(26, apply.Event{Type: apply.Warning, Host: "worker-2", Line: "connection lost, trying again"})
	s.endStep(30.5, "images/worker-2")
	s.start(30.6, "join-worker/worker-2")
	s.endStep(41, "join-worker/worker-2")
	s.start(41, "node-ready/worker-2")
	s.start(41, "revoke-tokens")
	s.endStep(41.3, "revoke-tokens")
	s.endStep(64, "node-ready/worker-2")
	s.start(64, "record")
	s.endStep(64.2, "record")
	return s.finish(64.2, "")
}

// brokenJoin is an installation where cp-2 fails to join etcd.
func brokenJoin() *stream {
	s := newStream(install())
	s.start(0, "prepare/cp-2")
	s.endStep(20, "prepare/cp-2")
	s.start(120, "join-etcd/cp-2")
	s.start(121, "images/worker-1")
	s.addOutput(122, "join-etcd/cp-2", "etcd: peer TLS handshake failed")
	s.fail(124.5, "join-etcd/cp-2", "exit status 1\n    | etcd: peer TLS handshake failed")
	for _, id := range []string{
		"join-finish/cp-2", "node-ready/cp-2", "join-etcd/cp-3", "join-finish/cp-3", "node-ready/cp-3", "record",
	} {
		s.skipStep(124.5, id)
	}
	s.endStep(190, "images/worker-1")
	return s.finish(190, "cp-2: join: etcd member: exit status 1\n    | etcd: peer TLS handshake failed")
}

// stopped is a run aborted by the operator during a step.
func stopped() *stream {
	s := newStream(oneMoreWorker())
	s.start(0, "remove-auto-approval")
	s.endStep(0.2, "remove-auto-approval")
	s.start(0.2, "prepare/worker-2")
	for _, id := range []string{"images/worker-2", "join-worker/worker-2"} {
		s.skipStep(3, id)
	}
	return s.finish(4, "context canceled")
}
