package apply

import (
	"context"

	"kubeone/internal/host"
	"kubeone/internal/locks"
)

// Forget removes the working directory, with its lock, from a host that the run has reset. It leaves the directory
// alone if another run holds the lock or works on the host by then.
func Forget(ctx context.Context, h host.Host, run string) error {
	_, err := h.Run(ctx, host.Cmd{
		Name: "remove the working directory", Script: locks.WithFile(locks.FlockTimeout, scriptText("forget")),
		Args: []string{run}, Timeout: locks.GrantTimeout,
	})
	return err
}
