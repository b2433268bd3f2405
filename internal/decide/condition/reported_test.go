package condition

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// A host that was not probed is only healthy if its Node and its etcd member say so.
func TestConditionOfAHostThatWasNotAsked(t *testing.T) {
	t.Parallel()
	cluster := decidetest.Wanted(1, 1)
	controlPlane, worker := cluster.ControlPlane[0], cluster.Workers[0]
	tests := []struct {
		name    string
		host    desired.Host
		around  func(*HostContext)
		want    Condition
		reasons []problem.Code
	}{
		{
			name: "control plane, Node ready and member healthy", host: controlPlane, want: Healthy,
		},
		{
			name: "worker, Node ready", host: worker, want: Healthy,
		},
		{
			name: "worker, Node not ready", host: worker, want: Unready,
			around:  func(cx *HostContext) { cx.Node.Ready = observed.No },
			reasons: []problem.Code{problem.NodeNotReady},
		},
		{
			name: "worker without a Node", host: worker, want: Unreachable,
			around:  func(cx *HostContext) { cx.Node = nil },
			reasons: []problem.Code{problem.HostNotAsked},
		},
		{
			name: "worker, the API did not answer", host: worker, want: Unreachable,
			around:  func(cx *HostContext) { cx.API = observed.No },
			reasons: []problem.Code{problem.HostNotAsked},
		},
		{
			name: "control plane, member down and Node not ready", host: controlPlane, want: Unready,
			around: func(cx *HostContext) {
				cx.Member.Healthy, cx.Node.Ready = observed.No, observed.No
			},
			reasons: []problem.Code{problem.EtcdMemberDown, problem.NodeNotReady},
		},
		{
			name: "control plane without a member", host: controlPlane, want: Unready,
			around:  func(cx *HostContext) { cx.Member = nil },
			reasons: []problem.Code{problem.EtcdMemberMissing},
		},
		{
			name: "control plane, member with an alarm", host: controlPlane, want: Unready,
			around:  func(cx *HostContext) { cx.Member.Alarms = []string{"NOSPACE"} },
			reasons: []problem.Code{problem.EtcdAlarm},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cx := inCluster(tt.host)
			if tt.around != nil {
				tt.around(&cx)
			}
			got := Reported(&tt.host, cx)
			if got.Condition != tt.want {
				t.Errorf("condition %s, want %s", got.Condition, tt.want)
			}
			var codes []problem.Code
			for _, p := range got.Reasons {
				codes = append(codes, p.Code)
				if p.Host != tt.host.ID {
					t.Errorf("%s is about host %q, want %q", p.Code, p.Host, tt.host.ID)
				}
			}
			if diff := cmp.Diff(tt.reasons, codes); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if cx.Member != nil && got.Etcd != cx.Member.ID {
				t.Errorf("etcd member %q, want %q", got.Etcd, cx.Member.ID)
			}
		})
	}
}

// The answers of every predicate for all conditions: add each new condition to this table.
func TestKindsOfConditions(t *testing.T) {
	t.Parallel()
	kinds := map[Condition]struct{ joined, installable, silent bool }{
		Unreachable: {silent: true},
		Unclear:     {silent: true},
		Empty:       {installable: true},
		Partial:     {installable: true},
		Foreign:     {},
		Healthy:     {joined: true},
		Restartable: {joined: true},
		Regenerable: {joined: true},
		Rejoinable:  {joined: true},
		Unready:     {joined: true},
		Broken:      {joined: true},
	}
	for c, want := range kinds {
		if c.Joined() != want.joined || c.Installable() != want.installable || c.Silent() != want.silent {
			t.Errorf("%s: joined %t, installable %t, silent %t, want %+v", c, c.Joined(), c.Installable(), c.Silent(),
				want)
		}
	}
}
