package cli

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/view"
	"testing"

	"kubeone/internal/apply"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/drain"
	"kubeone/internal/engine"
	"kubeone/internal/etcd/backup"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/manifest"
	"kubeone/internal/release"
)

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	onHost := func(c host.Class) error { return &host.Error{Class: c, Err: cause} }
	blocked := &apicall.Error{Class: apicall.Operator, Err: &drain.BlockedError{Err: cause}}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"a status of its own":           {&statusError{view.ExitUnhealthy}, 3},
		"a class of its own":            {&classError{view.ExitEtcd, cause}, 11},
		"interrupted":                   {fmt.Errorf("%w", context.Canceled), 130},
		"a manifest's problems":         {&manifest.Problems{}, 15},
		"configuration":                 {&engine.ConfigError{Err: cause}, 15},
		"the command line":              {&usageError{cause, "kubeone"}, 15},
		"a lock that another holds":     {&locks.HeldError{}, 10},
		"a lease that another took":     {&locks.TakenError{}, 10},
		"a world that changed":          {engine.ErrWorldChanged, 10},
		"a drain that is blocked":       {blocked, 10},
		"etcd does not allow a step":    {&apply.EtcdError{Err: cause}, 11},
		"etcd by hand":                  {&engine.EtcdError{Err: cause}, 11},
		"the API":                       {&apicall.Error{Class: apicall.Terminal, Err: cause}, 12},
		"no API server":                 {&apicall.UnreachableError{}, 12},
		"login refused":                 {onHost(host.Auth), 13},
		"another host key":              {onHost(host.HostKey), 13},
		"no sudo":                       {onHost(host.Sudo), 13},
		"no answer":                     {onHost(host.Unreachable), 14},
		"connection lost":               {onHost(host.Lost), 14},
		"a download":                    {&release.FetchError{}, 14},
		"a store of backups":            {&backup.StoreError{Err: cause}, 14},
		"a host's entry is wrong":       {onHost(host.Config), 15},
		"a command failed":              {&host.ExitError{Code: 1}, 16},
		"a step, otherwise":             {cause, 10},
		"etcd within the API's trouble": {&apicall.Error{Err: &apply.EtcdError{Err: cause}}, 11},
	} {
		if got := exitStatus(&apply.StepError{Err: c.err}); got != c.want {
			t.Errorf("%s: a step that failed so exits with %d, want %d", name, got, c.want)
		}
		if name == "a step, otherwise" {
			c.want = 1
		}
		if got := exitStatus(fmt.Errorf("run: %w", errors.Join(c.err))); got != c.want {
			t.Errorf("%s: exits with %d, want %d", name, got, c.want)
		}
	}
}
