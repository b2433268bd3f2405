package cli

import (
	"context"
	"fmt"
	"strings"

	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
	"kubeone/internal/workspace"
)

// hostIDs returns the IDs of the named hosts in the manifest, for a command that removes them. If a name is not in the
// manifest, hostIDs inspects the cluster: if the name belongs to a Machine host, the error says which Machine to
// delete.
func hostIDs(ctx context.Context, w *workspace.Workspace, flag string, names ...string) ([]string, error) {
	ids, unknown := w.HostIDs(flag, names...)
	if unknown == nil {
		return ids, nil
	}
	seen, err := w.Engine.Observe(ctx)
	if err != nil {
		return nil, unknown // report the unknown name, not the failed inspection
	}
	if err := checkMachineHosts(seen.World.API.Pool, flag, names); err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	return nil, unknown
}

// checkMachineHosts returns an error if a name is the host, Node or address of a Machine. The error names the Machine.
func checkMachineHosts(pool *observed.Pool, flag string, names []string) error {
	for _, name := range names {
		if machine := pool.MachineOn(name); machine != "" {
			namespace, object, _ := strings.Cut(machine, "/")
			return fmt.Errorf("%s names %q, which is the host of Machine %s: "+
				"kubectl -n %s delete machine %s returns it",
				flag, name, machine, namespace, object)
		}
	}
	return nil
}
