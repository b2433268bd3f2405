package cli

import (
	"context"
	"fmt"
	"strings"

	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
	"kubeone/internal/workspace"
)

// hostIDs returns the IDs of the named hosts of the manifest, which are about to be removed. If a name is unknown, it
// asks the API: for the host of a Machine, the error names the object to delete.
func hostIDs(ctx context.Context, w *workspace.Workspace, flag string, names ...string) ([]string, error) {
	ids, unknown := w.HostIDs(flag, names...)
	if unknown == nil {
		return ids, nil
	}
	seen, err := w.Engine.Observe(ctx)
	if err != nil {
		return nil, unknown // the unknown name is the mistake to report
	}
	if of := machineNamed(seen.World.API.Pool, flag, names); of != nil {
		return nil, &engine.ConfigError{Err: of}
	}
	return nil, unknown
}

// machineNamed returns an error about the first name that is the host, Node or address of a Machine, or nil.
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
