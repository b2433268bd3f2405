package engine

import "testing"

func TestAMembersRevisionIsReadFromItsMetrics(t *testing.T) {
	t.Parallel()
	for metrics, want := range map[string]int64{
		"# HELP x\netcd_debugging_mvcc_current_revision 1.000000005e+09\n": 1000000005,
		"etcd_debugging_mvcc_current_revision 4711\n":                      4711,
		"etcd_server_proposals_committed_total 17\n":                       0,
		"etcd_debugging_mvcc_current_revision NaN\n":                       0,
		"": 0,
	} {
		if got := revisionIn(metrics); got != want {
			t.Errorf("%q: %d, want %d", metrics, got, want)
		}
	}
}
