package sim

import (
	"fmt"
	"testing"

	"kubeone/test/sim/drive"
)

// Faults interrupt runs with hooks before and after every activity, at every moment. Pending hooks of a host run in the
// end, and no node is uncordoned before the hooks after its upgrade have succeeded.
func TestInterruptedHooks(t *testing.T) {
	t.Parallel()
	apart := 17
	if testing.Short() {
		apart = 60
	}
	for _, c := range []string{
		"hosts=3+2 start=bare faults=1:hooks:0:1", "hosts=3+2 start=older-patch faults=1:hooks:0:1",
		"hosts=3+1 start=missing faults=1:hooks:0:1", "hosts=1+2 start=healthy faults=1:hooks:0:1,60:settings:0:1",
		"hosts=3+1 start=healthy faults=1:hooks:0:1,60:replace:1:1",
	} {
		for _, fault := range []string{
			"killed:0:2", "killed:0:1", "stop:0:1", "dead:0:60", "replaced:1:1", "fail-once:0:1", "fail-once:3:1",
			"fail-always:1:90", "cut:2:60", "second:0:1", "settings:0:1", "force-upgrade:0:1", "hooks:0:2",
		} {
			t.Run(c+"/"+fault, func(t *testing.T) {
				t.Parallel()
				for at := 2; at < 130; at += apart {
					text := fmt.Sprintf("seed=%d %s,%d:%s", at, c, at, fault)
					s, err := drive.Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					if v := drive.Run(t, s).Violation; v != nil {
						t.Fatalf("%s: %v", text, v)
					}
				}
			})
		}
	}
}
