package ssh

import (
	"errors"
	"strings"
	"testing"

	"kubeone/internal/cluster/record"
	"kubeone/internal/machines/provider"
	"kubeone/internal/model/observed"
)

// Without these keys a host could get another's name, or be less hardened than its cluster. It needs no other key.
func TestNoHostIsWorkedOnByARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for key, waits := range map[string]bool{
		observed.RecordManifest: true, observed.RecordHardening: true, observed.RecordNodes: true,
		observed.RecordFormerEndpoints: true, observed.RecordHistory: false, observed.RecordAddons: false,
	} {
		err := unreadableRecord(record.Decode(map[string]string{key: "a,b: [x"}))
		var waiting *provider.Waiting
		if errors.As(err, &waiting) != waits {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if waits && (waiting.Reason != "RecordUnreadable" || !strings.Contains(waiting.Message, "the key "+key+" in")) {
			t.Errorf("%s: %s: %s", key, waiting.Reason, waiting.Message)
		}
	}
}
