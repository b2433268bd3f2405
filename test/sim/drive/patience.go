package drive

import (
	"time"

	"kubeone/internal/apply"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/engine"
)

// What apply and the engine allow, in the simulated world's seconds.
const (
	etcdTimeout     = int64(apply.EtcdTimeout / time.Second)
	leaseTimeout    = int64(apply.LeaseTimeout / time.Second)
	leaseDuration   = int64(apply.LeaseDuration / time.Second)
	uncordonTimeout = int64(apply.UncordonTimeout / time.Second)
	nodeTimeout     = int64(apply.NodeTimeout / time.Second)
	tokenAge        = int64(apply.TokenAge / time.Second)
	staleAfter      = int64(apply.StaleAfter / time.Second)
	requestTimeout  = int64(apicall.OpTimeout / time.Second) // of one whose step has no deadline
	settle          = int64(engine.SettleTimeout / time.Second)
)

// instant is a moment of the simulated world, for rules that count in time.
func instant(now int64) time.Time { return time.Unix(now, 0) }
