package view

import (
	"strings"
	"testing"

	"kubeone/internal/etcd"
)

// An alarm of a removed member is shown and makes etcd unhealthy.
func TestAlarmsOfMembersThatLeftAreShown(t *testing.T) {
	t.Parallel()
	s := etcd.Survey{
		Agreed:  true,
		Members: []etcd.Surveyed{{Member: etcd.Member{ID: 0xa, Name: "cp-1"}, Status: &etcd.Status{Leader: 0xa}}},
	}
	for _, left := range []bool{false, true} {
		if left {
			s.Orphans = []etcd.Alarm{{Member: 0xd, Name: "NOSPACE"}}
		}
		doc := NewMembersDocument("alpha", s)
		var out strings.Builder
		if err := doc.Print(&out); err != nil {
			t.Fatal(err)
		}
		if doc.Healthy == left || strings.Contains(out.String(),
			"alarm NOSPACE of removed member d: clear it with kubeone etcd disarm") != left {
			t.Errorf("healthy %v, and it prints\n%s", doc.Healthy, out.String())
		}
	}
}
