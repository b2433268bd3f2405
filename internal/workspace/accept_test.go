package workspace

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/engine"
	"kubeone/internal/host"
)

const aFingerprint = "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8"

func TestAcceptHostKeys(t *testing.T) {
	t.Parallel()
	behind := strings.Replace(manifestText, "sshUsername: root",
		"sshUsername: root\n      bastion: jump.example.com", 1)
	for name, c := range map[string]struct {
		flags    []string
		policy   host.Policy
		hosts    map[string]string
		bastions map[string]string
		says     string
	}{
		"none": {nil, host.PolicyStrict, map[string]string{}, map[string]string{}, ""},
		"by name, whatever it shows": {[]string{"Worker"}, host.PolicyProbe,
			map[string]string{"192.0.2.21": host.AcceptShown}, map[string]string{"192.0.2.21": host.AcceptShown}, ""},
		"by address, one key": {[]string{"192.0.2.11=" + aFingerprint}, host.PolicyStrict,
			map[string]string{"192.0.2.11": aFingerprint}, map[string]string{"192.0.2.11": aFingerprint}, ""},
		"a bastion": {[]string{"jump.example.com"}, host.PolicyProbe,
			map[string]string{}, map[string]string{"jump.example.com": host.AcceptShown}, ""},
		"any key, but none is shown": {[]string{"worker"}, host.PolicyAcceptNew, nil, nil,
			"--accept-host-key worker needs the fingerprint"},
		"whatever it shows, strictly":   {[]string{"worker"}, host.PolicyStrict, nil, nil, "worker=SHA256:..."},
		"no host":                       {[]string{"nobody"}, host.PolicyProbe, nil, nil, `names "nobody"`},
		"no fingerprint after the sign": {[]string{"worker="}, host.PolicyProbe, nil, nil, "not a fingerprint"},
		"an MD5 fingerprint":            {[]string{"worker=MD5:16:27"}, host.PolicyProbe, nil, nil, "not a fingerprint"},
		"a piece of a fingerprint": {[]string{"worker=" + aFingerprint[:20]}, host.PolicyProbe, nil, nil,
			"is not a fingerprint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, behind)
			o.NewHosts, o.AcceptHostKeys = c.policy, c.flags
			w, err := Open(t.Context(), o)
			if c.says != "" {
				var wrong *engine.ConfigError
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v, want %q in it", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			got, err := w.parseAcceptances(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]map[string]string{c.hosts, c.bastions},
				[]map[string]string{got.hosts, got.bastions}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
