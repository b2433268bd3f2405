package etcd_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"kubeone/internal/etcd"
	"kubeone/internal/testutil/etcdtest"
	"kubeone/internal/testutil/snapshottest"
)

func connect(t *testing.T, c *etcdtest.Cluster) *etcd.Client {
	t.Helper()
	client, err := etcd.Connect(t.Context(), etcdtest.Start(t, c).Access())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, client) })
	return client
}

// grown returns three members whose databases have unused space.
func grown(change ...func(*etcdtest.Cluster)) *etcdtest.Cluster {
	c := three(change...)
	for i := range c.Members {
		m := &c.Members[i]
		if m.Size == 0 {
			m.Size = 1 << 20
		}
		m.Quota, m.Revision, m.Hash = 2<<20, int64(100+i), 0xfeed
	}
	return c
}

func TestSnapshotArrivesWhole(t *testing.T) {
	t.Parallel()
	content := snapshottest.Bytes(t, snapshottest.Content{Keys: 30, Padding: 4000})
	client := connect(t, three(func(c *etcdtest.Cluster) { c.Snapshot = content }))
	var got bytes.Buffer
	n, err := client.Snapshot(t.Context(), &got)
	if err != nil || n != int64(len(content)) || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes of %d, error %v", n, len(content), err)
	}
}

func TestABrokenSnapshotIsAnError(t *testing.T) {
	t.Parallel()
	content := snapshottest.Bytes(t, snapshottest.Content{Keys: 30, Padding: 4000})
	flipped := append([]byte{}, content...)
	flipped[5000] ^= 1
	for name, c := range map[string]*etcdtest.Cluster{
		"ended early":       three(func(c *etcdtest.Cluster) { c.Snapshot, c.SnapshotEnds = content, 1 }),
		"checksum is wrong": three(func(c *etcdtest.Cluster) { c.Snapshot = flipped }),
	} {
		var got bytes.Buffer
		if _, err := connect(t, c).Snapshot(t.Context(), &got); !errors.Is(err, etcd.ErrSnapshotBroken) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFullDiskOfOursIsNotTheMembersFault(t *testing.T) {
	t.Parallel()
	content := snapshottest.Bytes(t, snapshottest.Content{})
	_, err := connect(t, three(func(c *etcdtest.Cluster) { c.Snapshot = content })).Snapshot(t.Context(), full{})
	if !errors.Is(err, etcd.ErrDisk) || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("error %v", err)
	}
}

func TestDefragmentTakesTheLeaderLast(t *testing.T) {
	t.Parallel()
	c := grown()
	client := connect(t, c)
	var told []string
	err := client.Defragment(t.Context(), "", func(d etcd.Defragmented) {
		told = append(told, d.Member.Name)
		if d.Before != 1<<20 || d.After != 4096 {
			t.Errorf("%s: %d bytes, then %d", d.Member.Name, d.Before, d.After)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cp-1", "cp-3", "cp-2"}
	if diff := cmp.Diff(want, c.Defragmented()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestDefragmentOfOneMember(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"cp-2", "b"} {
		c := grown()
		if err := connect(t, c).Defragment(t.Context(), named, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"cp-2"}, c.Defragmented()); diff != "" {
			t.Errorf("%s: %s", named, diff)
		}
	}
	c := grown()
	err := connect(t, c).Defragment(t.Context(), "cp-9", nil)
	if !errors.Is(err, etcd.ErrNotFound) || !strings.Contains(err.Error(), `"cp-9"; its members are cp-1, cp-2, cp-3`) {
		t.Errorf("error %v", err)
	}
	if got := c.Defragmented(); len(got) > 0 {
		t.Errorf("%q were disturbed", got)
	}
}

// Defragmenting one member disturbs it no less while another is not healthy.
func TestDefragmentOfOneMemberNeedsAllToBeWell(t *testing.T) {
	t.Parallel()
	c := grown(func(c *etcdtest.Cluster) { c.Members[2].Down = true })
	if err := connect(t, c).Defragment(t.Context(), "cp-1", nil); !errors.Is(err, etcd.ErrUnhealthy) {
		t.Errorf("error %v", err)
	}
}

func TestDisarmOfOneMember(t *testing.T) {
	t.Parallel()
	raised := func(c *etcdtest.Cluster) {
		for _, id := range []uint64{0xa, 0xc, 0xd} { // d has left
			c.Alarms = append(c.Alarms, &pb.AlarmMember{MemberID: id, Alarm: pb.AlarmType_NOSPACE})
		}
	}
	for named, want := range map[string]uint64{"cp-1": 0xa, "c": 0xc, "d": 0xd} {
		c := grown(raised)
		got, err := connect(t, c).Disarm(t.Context(), named)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]etcd.Disarmed{{Member: want, Alarm: "NOSPACE"}}, got); diff != "" {
			t.Errorf("%s: %s", named, diff)
		}
		if left := c.Raised(); len(left) != 2 {
			t.Errorf("%s: left are %v", named, left)
		}
	}
	if _, err := connect(t, grown(raised)).Disarm(t.Context(), "cp-9"); !errors.Is(err, etcd.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestDefragmentStopsWhileMemberIsUnhealthy(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*etcdtest.Cluster){
		"cp-3 does not answer":  func(c *etcdtest.Cluster) { c.Members[2].Down = true },
		"cp-1 is a learner":     func(c *etcdtest.Cluster) { c.Members[0].Learner = true },
		"cp-3 sees no leader":   func(c *etcdtest.Cluster) { c.Members[2].Leader = 0 },
		"has never started":     func(c *etcdtest.Cluster) { c.Members[2] = etcdtest.Member{ID: 0xc, Down: true} },
		"has the alarm CORRUPT": func(c *etcdtest.Cluster) { c.Alarms = alarm(pb.AlarmType_CORRUPT) },
		"no quorum answers":     func(c *etcdtest.Cluster) { c.NoQuorum = true },
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			c := grown(change)
			err := connect(t, c).Defragment(t.Context(), "", nil)
			if !errors.Is(err, etcd.ErrUnhealthy) || !strings.Contains(err.Error(), says) {
				t.Errorf("error %v", err)
			}
			if got := c.Defragmented(); len(got) > 0 {
				t.Errorf("%q were disturbed", got)
			}
		})
	}
}

func alarm(kind pb.AlarmType) []*pb.AlarmMember {
	return []*pb.AlarmMember{{MemberID: 0xc, Alarm: kind}}
}

func TestDisarm(t *testing.T) {
	t.Parallel()
	c := grown(func(c *etcdtest.Cluster) { c.Alarms = alarm(pb.AlarmType_NOSPACE) })
	client := connect(t, c)
	got, err := client.Disarm(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]etcd.Disarmed{{Member: 0xc, Alarm: "NOSPACE"}}, got); diff != "" {
		t.Error(diff)
	}
	if left := c.Raised(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	if got, err := client.Disarm(t.Context(), ""); err != nil || got != nil {
		t.Errorf("again: %v, %v", got, err)
	}
}

// An alarm outlives the member that raised it and still blocks writes.
func TestAlarmsOfMembersThatLeft(t *testing.T) {
	t.Parallel()
	left := []*pb.AlarmMember{
		{MemberID: 0xd, Alarm: pb.AlarmType_NOSPACE},
		{MemberID: 0xe, Alarm: pb.AlarmType_CORRUPT},
	}
	c := grown(func(c *etcdtest.Cluster) { c.Alarms = left })
	client := connect(t, c)
	s, err := client.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]etcd.Alarm{{Member: 0xd, Name: "NOSPACE"}, {Member: 0xe, Name: "CORRUPT"}},
		s.Orphans); diff != "" {
		t.Error(diff)
	}
	got, err := client.Disarm(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]etcd.Disarmed{{Member: 0xd, Alarm: "NOSPACE"}, {Member: 0xe, Alarm: "CORRUPT"}},
		got); diff != "" {
		t.Error(diff)
	}
	if left := c.Raised(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestDisarmRefusesWhatWouldComeBackOrHide(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*etcdtest.Cluster)
		want   error
	}{
		"still full": {func(c *etcdtest.Cluster) { c.Alarms, c.Members[2].Size = alarm(pb.AlarmType_NOSPACE), 2<<20 },
			etcd.ErrNoSpace},
		"another is full": {func(c *etcdtest.Cluster) {
			c.Alarms, c.Members[0].Size = []*pb.AlarmMember{{MemberID: 0xd, Alarm: pb.AlarmType_NOSPACE}}, 2<<20
		}, etcd.ErrNoSpace},
		"corrupt":   {func(c *etcdtest.Cluster) { c.Alarms = alarm(pb.AlarmType_CORRUPT) }, etcd.ErrCorrupt},
		"no quorum": {func(c *etcdtest.Cluster) { c.NoQuorum = true }, etcd.ErrUnhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := grown(test.change)
			before := len(c.Alarms)
			if _, err := connect(t, c).Disarm(t.Context(), ""); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if got := c.Raised(); len(got) != before {
				t.Errorf("alarms are %v", got)
			}
		})
	}
}

func TestSurveyComparesWhatMembersHold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*etcdtest.Cluster)
		want   etcd.Consistency
	}{
		"same":                       {func(*etcdtest.Cluster) {}, etcd.Same},
		"one differs":                {func(c *etcdtest.Cluster) { c.Members[2].Hash = 1 }, etcd.Different},
		"one is down, the others do": {func(c *etcdtest.Cluster) { c.Members[2].Down = true }, etcd.Same},
		"only one answers": {func(c *etcdtest.Cluster) {
			c.Members[1].Down, c.Members[2].Down = true, true
		}, etcd.NotCompared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := grown()
			test.change(c)
			got, err := connect(t, c).Survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Consistent != test.want {
				t.Errorf("consistency %q, want %q", got.Consistent, test.want)
			}
			if got.ClusterID != 0xc1 || !got.Agreed || len(got.Members) != 3 {
				t.Errorf("survey %+v", got)
			}
			for _, m := range got.Members {
				if m.Hash != nil && m.Hash.Revision != got.Members[0].Hash.Revision {
					t.Errorf("%s was hashed at %d, not where the others were", m.Name, m.Hash.Revision)
				}
			}
		})
	}
}
