package etcd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/etcd"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/etcdtest"
)

func three(change ...func(*etcdtest.Cluster)) *etcdtest.Cluster {
	c := &etcdtest.Cluster{Members: []etcdtest.Member{
		{ID: 0xa, Name: "cp-1", Leader: 0xb}, {ID: 0xb, Name: "cp-2", Leader: 0xb},
		{ID: 0xc, Name: "cp-3", Leader: 0xb},
	}}
	for _, f := range change {
		f(c)
	}
	return c
}

func healthy(id, name string) observed.Member {
	return observed.Member{
		ID: id, Name: name, PeerURLs: []string{"https://" + name + ":2380"}, Healthy: observed.Yes,
		Leader:  name == "cp-2",
		Version: "3.6.8", DBSize: 4096,
	}
}

func dead(id, name string) observed.Member {
	return observed.Member{ID: id, Name: name, PeerURLs: []string{"https://" + name + ":2380"}, Healthy: observed.No}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	noSpace := &pb.AlarmMember{MemberID: 0xc, Alarm: pb.AlarmType_NOSPACE}
	corrupt := &pb.AlarmMember{MemberID: 0xc, Alarm: pb.AlarmType_CORRUPT}
	complain := func(c *etcdtest.Cluster) { c.Members[1].Errors = []string{"memberID:12 alarm:NOSPACE"} }
	tests := map[string]struct {
		cluster  *etcdtest.Cluster
		want     observed.Etcd
		requests int
	}{
		"three healthy members are three statuses and a list": {
			cluster: three(),
			want: observed.Etcd{Reached: observed.Yes, Members: []observed.Member{
				healthy("a", "cp-1"), healthy("b", "cp-2"), healthy("c", "cp-3"),
			}},
			requests: 4,
		},
		"a member that is down is not healthy": {
			cluster: three(func(c *etcdtest.Cluster) { c.Members[2].Down = true }),
			want: observed.Etcd{Reached: observed.Yes, Members: []observed.Member{
				healthy("a", "cp-1"), healthy("b", "cp-2"), dead("c", "cp-3"),
			}},
			requests: 4,
		},
		"a learner is skipped and listed, a nameless one is not asked": {
			cluster: three(func(c *etcdtest.Cluster) {
				c.Members[0].Learner = true
				c.Members[2] = etcdtest.Member{ID: 0xc, Learner: true, Down: true}
			}),
			want: observed.Etcd{Reached: observed.Yes, Members: []observed.Member{
				func() observed.Member { m := healthy("a", "cp-1"); m.Learner = true; return m }(),
				healthy("b", "cp-2"),
				func() observed.Member { m := dead("c", ""); m.Learner = true; return m }(),
			}},
			requests: 3,
		},
		"an alarm is its member's, and a full disk does not make a voter unhealthy": {
			cluster: three(complain, func(c *etcdtest.Cluster) { c.Alarms = []*pb.AlarmMember{noSpace} }),
			want: observed.Etcd{Reached: observed.Yes, Members: []observed.Member{
				healthy("a", "cp-1"), healthy("b", "cp-2"),
				func() observed.Member { m := healthy("c", "cp-3"); m.Alarms = []string{"NOSPACE"}; return m }(),
			}},
			requests: 5,
		},
		"an alarm outlives its member": {
			cluster: three(complain, func(c *etcdtest.Cluster) {
				c.Alarms = []*pb.AlarmMember{{MemberID: 0xd, Alarm: pb.AlarmType_NOSPACE}}
			}),
			want: observed.Etcd{
				Reached: observed.Yes,
				Members: []observed.Member{healthy("a", "cp-1"), healthy("b", "cp-2"), healthy("c", "cp-3")},
				Orphans: []observed.Alarm{{Member: "d", Name: "NOSPACE"}},
			},
			requests: 5,
		},
		"corruption does": {
			cluster: three(complain, func(c *etcdtest.Cluster) { c.Alarms = []*pb.AlarmMember{corrupt} }),
			want: observed.Etcd{Reached: observed.Yes, Members: []observed.Member{
				healthy("a", "cp-1"), healthy("b", "cp-2"),
				func() observed.Member {
					m := healthy("c", "cp-3")
					m.Healthy, m.Alarms = observed.No, []string{"CORRUPT"}
					return m
				}(),
			}},
			requests: 5,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := etcd.Connect(t.Context(), etcdtest.Start(t, test.cluster).Access())
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, client)
			got, err := client.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
			if client.Requests() != test.requests {
				t.Errorf("%d requests, want %d", client.Requests(), test.requests)
			}
		})
	}
}

func TestWithoutQuorumTheListIsTheMembersOwn(t *testing.T) {
	t.Parallel()
	c := three(func(c *etcdtest.Cluster) {
		c.NoQuorum = true
		c.Members[0].Leader = 0
		c.Members[0].Errors = []string{"etcdserver: no leader"}
		c.Members[1].Down, c.Members[2].Down = true, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client, err := etcd.Connect(ctx, etcdtest.Start(t, c).Access())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, client)
	got, err := client.Observe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Problem, "no quorum") || got.Reached != observed.Yes || len(got.Members) != 3 {
		t.Errorf("got %+v, want three members and a problem", got)
	}
	for _, m := range got.Members {
		if m.Healthy != observed.No {
			t.Errorf("member %s is %q, want unhealthy", m.Name, m.Healthy)
		}
	}
}

// A leader was just lost: the others elect a new one.
func TestAnElectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	electing := func(times int) *etcdtest.Cluster {
		return three(func(c *etcdtest.Cluster) {
			// the first answers Connect
			c.Members[0].Electing, c.Members[1].Down, c.Members[2].Electing = 2*times, true, times
			c.Members[0].Leader, c.Members[2].Leader = 0xc, 0xc
			c.Electing = min(1, times)
		})
	}
	for name, c := range map[string]struct {
		times    int
		patience time.Duration
		alive    int
	}{
		"it ends":         {2, time.Hour, 2},
		"it has ended":    {0, time.Nanosecond, 2},
		"it does not end": {1000, time.Nanosecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := etcdtest.Start(t, electing(c.times))
			access := cluster.Access()
			access.Election = c.patience
			client, err := etcd.Connect(t.Context(), access)
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, client)
			got, err := client.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tally := quorum.Count(got.Members); tally.Alive != c.alive || tally.Voters != 3 ||
				(got.Problem == "") != (c.alive > 0) {
				t.Errorf("got %s, problem %q", tally, got.Problem)
			}
		})
	}
}

// If a quorum has agreed on the list, its members that answer late are not lost.
func TestAQuorumThatAgreedIsWaitedFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		busy int
		want error
	}{
		"slow once":  {1, nil},
		"slow again": {2, etcd.ErrSlow},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, three(func(c *etcdtest.Cluster) {
				c.Members[1].Busy, c.Members[2].Busy = test.busy, test.busy
			}))
			client, err := etcd.Connect(t.Context(), c.Access())
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, client)
			got, err := client.Observe(t.Context())
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if tally := quorum.Count(got.Members); err == nil && tally.Alive != 3 {
				t.Errorf("got %s, want all three healthy", tally)
			}
		})
	}
}

func TestConnectTakesTheFirstThatAnswers(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, three(func(c *etcdtest.Cluster) { c.Members[0].Down = true }))
	client, err := etcd.Connect(t.Context(), c.Access())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, client)
	if client.HostID() != "cp-2" {
		t.Errorf("connected through %s, want cp-2", client.HostID())
	}
}

func TestConnectSaysWhatEveryMemberSaid(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, &etcdtest.Cluster{Members: []etcdtest.Member{
		{ID: 1, Name: "cp-1", Down: true}, {ID: 2, Name: "cp-2", Learner: true}, {ID: 3, Name: "cp-3", Silent: true},
	}})
	_, err := etcd.Connect(t.Context(), c.Access())
	if !errors.Is(err, etcd.ErrNoMember) || !errors.Is(err, etcd.ErrLearner) {
		t.Errorf("error %v, want ErrNoMember and ErrLearner", err)
	}
	for _, id := range []string{"cp-1", "cp-2", "cp-3"} {
		if err != nil && !strings.Contains(err.Error(), id) {
			t.Errorf("error %v does not name %s", err, id)
		}
	}
}

func TestRemoveMember(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, three())
	client, err := etcd.Connect(t.Context(), c.Access())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, client)
	id, err := etcd.ParseID("c")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveMember(t.Context(), id); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]uint64{0xc}, c.Removed()); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if err := client.RemoveMember(t.Context(), 0xdead); !errors.Is(err, etcd.ErrNotFound) {
		t.Errorf("removing a stranger: %v, want ErrNotFound", err)
	}
}

func TestCredentialsNeverShow(t *testing.T) {
	t.Parallel()
	a := etcd.Access{Credentials: etcd.Credentials{CA: []byte("SECRET"), Cert: []byte("SECRET"), Key: []byte("SECRET")}}
	text, err := json.Marshal(map[string]any{"a": a, "b": &a, "c": a.Credentials, "d": &a.Credentials})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		text = fmt.Appendf(text, format+format+format+format, a, &a, a.Credentials, &a.Credentials)
	}
	for _, bad := range []string{"SECRET", fmt.Sprintf("%x", "SECRET"), fmt.Sprint([]byte("SECRET")), "U0VDUkVU"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("credentials show as %s in %s", bad, text)
		}
	}
}

func TestUnusableCredentials(t *testing.T) {
	t.Parallel()
	_, err := etcd.Connect(t.Context(), etcd.Access{Credentials: etcd.Credentials{Key: []byte("SECRET")}})
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("error %v, want one that hides the key", err)
	}
}

func closed(t *testing.T, c *etcd.Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
