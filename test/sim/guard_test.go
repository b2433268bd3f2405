package sim

import (
	"testing"

	"kubeone/test/sim/drive"
	"kubeone/test/sim/safety"
)

// With each guard off in turn, the checker finds the broken rule. With it on, it finds nothing.
func TestCheckerFindsDisabledGuards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		guard    drive.Guard
		scenario string
		rule     safety.Rule
	}{
		{drive.NoLock, "seed=1 hosts=3+1 start=bare faults=2:second:0:1", safety.OneOperator},
		{drive.NoFence, "seed=1 hosts=3+1 start=bare faults=4:forced:0:1", safety.OneOperator},
		{drive.NoLostCheck, "seed=6 hosts=2+0 start=bare faults=5:cut:1:9,10:forced:0:1",
			safety.OneOperator},
		{drive.NoCompare, "seed=1 hosts=3+1 start=missing faults=1:stopped:0:1", safety.Planned},
		{drive.Stranger, "seed=1 hosts=3+1 start=missing faults=", safety.Planned},
		{drive.Busybody, "seed=1 hosts=3+1 start=missing faults=", safety.Untouched},
		{drive.Renewer, "seed=1 hosts=3+1 start=missing faults=", safety.Untouched},
		{drive.Rewriter, "seed=1 hosts=3+1 start=missing faults=", safety.Untouched},
		{drive.Quarantiner, "seed=1 hosts=3+1 start=missing faults=", safety.Untouched},
		{drive.NoOrder, "seed=1 hosts=3+0 start=older-minor faults=", safety.OneAtATime},
		{drive.NoWorkers, "seed=1 hosts=1+1 start=older-minor faults=", safety.Skew},
		{drive.NoWaves, "seed=1 hosts=1+3 start=older-patch faults=", safety.Unavailable},
		{drive.NoRoom, "seed=34135 hosts=3+2 start=older-patch faults=1:full:0:97,2:alone:2:15,2:alone:1:128",
			safety.Unavailable},
		{drive.NoDrain, "seed=1 hosts=1+2 start=older-patch faults=", safety.Drained},
		{drive.NoSkew, "seed=1 hosts=1+0 start=older-minor faults=", safety.NoDowngrade},
		{drive.NoQuorum, "seed=13 hosts=3+0 start=healthy faults=1:split:2:43,7:settings:2:21", safety.RestartQuorum},
		{drive.Removal, "seed=1 hosts=3+0 start=healthy faults=1:dead:1:200,150:slow:0:1", safety.RemovalQuorum},
		{drive.NoConfirm, "seed=1 hosts=3+0 start=surplus faults=22:split:3:45", safety.LivingMember},
		{drive.Promote, "seed=1 hosts=2+0 start=missing faults=", safety.Promotion},
		{drive.AbsentHosts, "seed=1 hosts=3+0 start=healthy faults=1:replaced:0:1,1:dead:1:300,1:dead:2:300",
			safety.NewCluster},
		{drive.Wipe, "seed=1 hosts=3+0 start=bare faults=18:killed:0:2", safety.DataKept},
		{drive.FreshInit, "seed=1 hosts=1+0 start=bare faults=9:fail-always:0:3", safety.NewCluster},
		{drive.NoBudget, "seed=1 hosts=1+2 start=older-patch faults=", safety.Budget},
		{drive.OpenAll, "seed=1 hosts=1+2 start=missing faults=1:by-hand:1:1", safety.OwnCordons},
		{drive.LeaseByForce, "seed=1 hosts=4+1 start=missing faults=10:severed:0:150,30:second:0:1",
			safety.OneOperator},
		{drive.NoWorkerLock, "seed=1 hosts=1+1 start=missing faults=1:alone:1:1", safety.OneOperator},
		{drive.NoWorkerLock, "seed=3 hosts=1+0 start=older-minor faults=1:claimed:0:1 pool=1", safety.OneOperator},
		{drive.OneVersion, "seed=2 hosts=2+1 start=older-minor faults=1:conf-lost:2:1,2:claimed:2:40 pool=2",
			safety.Skew},
		{drive.NoOwner, "seed=1 hosts=1+1 start=surplus faults=2:mistaken:0:1 pool=1", safety.Owner},
		{drive.AnyToken, "seed=1 hosts=1+0 start=older-patch faults=1:claimed:0:1 pool=1", safety.OwnTokens},
		{drive.AnyToken, "seed=1 hosts=1+1 start=missing faults=", safety.OwnTokens},
		{drive.NoRecord, "seed=1 hosts=1+2 start=healthy faults=1:swapped:1:1,2:replaced:1:1,3:dead:2:200",
			safety.Planned},
		{drive.NoNames, "seed=1 hosts=3+1 start=elsewhere faults=", safety.Believed},
		{drive.NoForget, "seed=1 hosts=2+2 start=healthy faults=2:remove:3:90,10:forced:3:89",
			safety.OneOperator},
		{drive.Delete, "seed=1 hosts=3+1 start=healthy faults=3:reset:1:2", safety.DataKept},
		{drive.Wiped, "seed=1 hosts=3+1 start=healthy faults=3:reset:1:2", safety.MemberLeft},
		{drive.KeepNothing, "seed=174 hosts=3+0 start=healthy faults=1:reset:1:26,8:dead:2:38,26:reset:1:53",
			safety.KeptNeeded},
		{drive.NoRole, "seed=1 hosts=3+1 start=healthy faults=3:role:1:2,10:replace:3:1", safety.Role},
		{drive.Anyhow, "seed=1 hosts=3+0 start=healthy faults=30:recover:1:2", safety.Recovery},
		{drive.OldData, "seed=1 hosts=5+0 start=healthy faults=1:slow:0:300,40:replaced:2:1,40:replaced:3:1," +
			"40:replaced:4:1,60:recover:0:1", safety.NewestData},
		{drive.Unlisted, "seed=30092948 hosts=2+1 start=surplus faults=27:replaced:1:22,43:expired:0:86," +
			"73:left-out:0:65,91:reset:2:55,127:recover:0:62", safety.OneBrain},
		{drive.Untold, "seed=1 hosts=3+0 start=healthy faults=1:rotated-ca:0:1", safety.Trusted},
		{drive.Unwritten, "seed=1 hosts=3+0 start=healthy faults=1:encryption:0:1", safety.Readable},
		{drive.NoHooks, "seed=1 hosts=1+2 start=healthy faults=1:hooks:0:1,5:force-upgrade:0:1,38:fail-once:1:1",
			safety.Hooked},
		{drive.NoPods, "seed=1 hosts=1+0 start=older-patch faults=", safety.Told},
		{drive.NoPrune, "seed=1 hosts=1+0 start=healthy faults=1:addons:0:1,60:addons:0:2", safety.Converged},
		{drive.PruneAll, "seed=1 hosts=1+0 start=healthy faults=1:addons:0:1", safety.Pruned},
		{drive.NoUncordon, "seed=1 hosts=1+1 start=older-patch faults=", safety.Converged},
	} {
		t.Run(string(c.guard), func(t *testing.T) {
			t.Parallel()
			s, err := drive.Parse(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			if v := drive.Run(t, s).Violation; v != nil {
				t.Fatalf("with the guard on: %v", v)
			}
			s.Off = c.guard
			switch v := drive.Run(t, s).Violation; {
			case v == nil:
				t.Error("nothing was found")
			case v.Rule != c.rule:
				t.Errorf("found %v, want %q", v, c.rule)
			}
		})
	}
}
