package sim

import (
	"fmt"
	"testing"

	"kubeone/test/sim/drive"
)

// At every moment, faults interrupt the encryption of Secrets, a change of keys, and decryption. No Secret is ever
// stored with a key that an API server lacks, and in the end everything matches the manifest.
func TestInterruptedKeyChanges(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"1:encryption:0:1", "1:encryption:0:1,60:rotated:0:1", "1:encryption:0:1,60:encryption:0:2",
	} {
		for _, fault := range []string{
			"killed:0:2", "killed:0:1", "dead:0:60", "dead:1:60", "replaced:1:1", "keys-lost:1:1", "fail-once:0:1",
			"cut:2:60", "full:1:60", "second:0:1", "manifest:1:1", "data-lost:1:1", "settings:0:1", "force-upgrade:0:1",
		} {
			t.Run(change+"/"+fault, func(t *testing.T) {
				t.Parallel()
				for at := 2; at < 130; at += 17 {
					text := fmt.Sprintf("seed=%d hosts=3+0 start=healthy faults=%s,%d:%s", at, change, at, fault)
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
