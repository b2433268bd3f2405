package cli

import (
	"context"
	"fmt"
	"strings"

	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
	"kubeone/internal/workspace"
)

// hostIDs are the IDs of hosts of the manifest that somebody wants taken out. For a name that is no host's of the
// manifest the API is asked: it may be that of a Machine's host, and then the error says what to delete.
func hostIDs(ctx context.Context, w *workspace.Workspace, flag string, names ...string) ([]string, error) {
	ids, unknown := w.HostIDs(flag, names...)
	if unknown == nil {
		return ids, nil
	}
	seen, err := w.Engine.Observe(ctx)
	if err != nil {
		return nil, unknown // the name is what is wrong
	}
	if of := machineNamed(seen.World.API.Pool, flag, names); of != nil {
		return nil, &engine.ConfigError{Err: of}
	}
	return nil, unknown
}

// machineNamed is an error about the first of the names that is the host, the Node or the address of a Machine.
func machineNamed(pool *observed.Pool, flag string, names []string) error {
	for _, name := range names {
		if machine := pool.MachineOn(name); machine != "" {
			namespace, of, _ := strings.Cut(machine, "/")
			return fmt.Errorf("%s names %q, which is the host of Machine %s: "+
				"kubectl -n %s delete machine %s returns it",
				flag, name, machine, namespace, of)
		}
	}
	return nil
}
