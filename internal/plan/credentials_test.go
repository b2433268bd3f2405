package plan

import (
	"strings"
	"testing"

	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// Whose credentials change is said, host by host, and afterwards nothing is left to do.
func TestOtherCredentialsAreAReconfiguration(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	for _, name := range []string{"cp-1", "cp-2", "cp-3", "w-1"} {
		changeHost(in, name, func(h *observed.Host) {
			h.Credentials = []observed.Credential{
				{Of: "registry credentials of new.example.com", Is: observed.CredentialMissing},
				{Of: "registry credentials of old.example.com", Is: observed.CredentialExtra},
				{Of: "registry credentials of registry.example.com", Is: observed.CredentialOther},
				{Of: "registry credentials of unknown.example.com", Is: observed.CredentialLeft},
			}
		})
	}
	p, _ := Build(Input{Decide: in})
	if p.Again != "" || p.Blocked != "" {
		t.Fatalf("%s", planText(p))
	}
	for _, name := range []string{"cp-1", "cp-2", "cp-3", "w-1"} {
		s, there := p.Step("reconfigure/" + name)
		if !there || step.ParamsOf[step.ReconfigureParams](s.Intent).Configurations[0] != "credentials" {
			t.Fatalf("%s has no step:\n%s", name, planText(p))
		}
		if got, want := strings.Join(s.Changes, "; "), "registry credentials of new.example.com are uploaded; "+
			"registry credentials of old.example.com are removed; "+
			"registry credentials of registry.example.com differ; "+
			"containerd restarts for its credentials; containers keep running"; got != want {
			t.Errorf("%s changes\n%s\nwant\n%s", name, got, want)
		}
	}
	if s, _ := p.Step("reconfigure/cp-2"); len(s.Needs) == 0 {
		t.Error("hosts are not reconfigured one at a time")
	}
}
