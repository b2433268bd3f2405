package apply

import (
	"context"

	"kubeone/internal/host"
	"kubeone/internal/locks"
)

// Forget removes the working directory, which contains the lock, from a host that the run has reset. If another run
// holds the lock or is working on the host by then, Forget does not change the directory.
func Forget(ctx context.Context, h host.Host, run string) error {
	_, err := h.Run(ctx, host.Cmd{
		Name: "remove the working directory", Script: locks.WithFile(locks.FlockTimeout, scriptText("forget")),
		Args: []string{run}, Timeout: locks.GrantTimeout,
	})
	return err
}
