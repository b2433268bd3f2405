package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/record"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

// History is the runs that the cluster remembers, the newest first. A run that seems to be running and that nobody has
// a lock for was killed. Where no API server answers it is an *apicall.Error of class Operator.
func (e *Engine) History(ctx context.Context) ([]record.Run, error) {
	result, err := e.Observe(ctx)
	if err != nil {
		return nil, err
	}
	if why := NoAPI(result); why != "" {
		return nil, &apicall.Error{
			Op: "read the history", Class: apicall.Operator,
			Err: errors.New("the Kubernetes API cannot be reached (" + why +
				"); see kubeone status. Runs from this machine are in its state directory, under journal"),
		}
	}
	client, err := cluster.Connect(*result.Access)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return Runs(ctx, client, result.World)
}

// NoAPI says why the API cannot be asked; "" if it can.
func NoAPI(r probe.Result) string {
	switch {
	case r.Access != nil && r.World.API.Reached == observed.Yes:
		return ""
	case r.World.API.Problem != "":
		return r.World.API.Problem
	}
	return "no control-plane host that answers has credentials"
}

// Runs is History for who has a connection to the API.
func Runs(ctx context.Context, client *cluster.Client, world observed.World) ([]record.Run, error) {
	record, err := client.Record(ctx)
	if err != nil || record == nil {
		return nil, err
	}
	if why := record.Unreadable[observed.RecordHistory]; why != "" {
		return nil, fmt.Errorf("the key %s of the ConfigMap kube-system/kubeone cannot be read (%s): the next run "+
			"begins it again", observed.RecordHistory, why)
	}
	return newestFirst(record.History, world), nil
}

func newestFirst(runs []record.Run, world observed.World) []record.Run {
	out := slices.Clone(runs)
	slices.Reverse(out)
	for i := range out {
		if !atWork(world, out[i].ID) {
			out[i].Interrupt()
		}
	}
	return out
}

// atWork reports whether a run was heard of within the last seconds.
func atWork(world observed.World, runID string) bool {
	live := func(l *observed.Lock) bool { return l != nil && l.RunID == runID && l.Live }
	if live(world.API.Lease) {
		return true
	}
	for _, h := range world.Hosts {
		if live(h.Lock) {
			return true
		}
	}
	return false
}
