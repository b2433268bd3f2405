package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
)

// setCertificates gives a host certificates that are valid for so many days more.
func setCertificates(in decide.Input, name string, days time.Duration) {
	changeHost(in, name, func(h *observed.Host) {
		h.Certificates = nil
		for _, c := range []string{"admin.conf", "apiserver", "etcd/server", "kubelet-client"} {
			h.Certificates = append(h.Certificates, observed.Certificate{Name: c, Left: days * 24 * time.Hour})
		}
	})
}

// renewalSteps returns the steps that renew certificates, each with what it needs of the others.
func renewalSteps(t *testing.T, p Plan) [][]string {
	t.Helper()
	var out [][]string
	for _, s := range p.Steps {
		if s.Intent.Kind != step.Regenerate {
			continue
		}
		if diff := cmp.Diff([]string{condition.PartCertificates},
			step.ParamsOf[step.RegenerateParams](s.Intent).Parts); diff != "" || s.Risk != Restarts {
			t.Errorf("%s: risk %s, %s", s.ID, s.Risk, diff)
		}
		out = append(out, append([]string{s.ID}, s.Needs...))
	}
	return out
}

func TestARenewalGoesFromHostToHostAndOnWhereItEnded(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	for name, days := range map[string]time.Duration{"cp-1": 200, "cp-2": 365, "cp-3": 200, "w-1": 10} {
		setCertificates(in, name, days)
	}
	p, err := RenewCertificates(in, false)
	if err != nil || p.Blocked != "" {
		t.Fatal(err, p.Blocked)
	}
	if diff := cmp.Diff([][]string{{"regenerate/cp-1"}, {"regenerate/cp-3", "regenerate/cp-1"}},
		renewalSteps(t, p)); diff != "" {
		t.Error(diff)
	}
	if s := p.Steps[0]; s.Reason != "asked for: admin.conf, apiserver and etcd/server" {
		t.Errorf("reason %q", s.Reason)
	}
	if last := p.Steps[len(p.Steps)-1]; last.ID != "record" || len(last.Needs) != 2 {
		t.Errorf("the run is recorded by %+v", last)
	}
	all, err := RenewCertificates(in, true)
	if err != nil || len(renewalSteps(t, all)) != 3 {
		t.Errorf("with all: %v, %v", err, all.Steps)
	}
	setCertificates(in, "cp-1", 365)
	setCertificates(in, "cp-3", 365)
	if p, err = RenewCertificates(in, false); err != nil || !p.Empty() {
		t.Errorf("when all are new: %v, %+v", err, p.Steps)
	}
}

func TestNothingIsRenewedWhileAControlPlaneHostIsNotWell(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*decide.Input){
		"cp-2 is unreachable: ": func(in *decide.Input) { replaceHost(*in, "cp-2", silentHost) },
		"cp-2 is restartable: ": func(in *decide.Input) { replaceHost(*in, "cp-2", stoppedHost) },
		"the cluster API or etcd does not answer": func(in *decide.Input) {
			in.Is.Etcd = observed.Etcd{Reached: observed.No}
		},
		"cp-2 is broken: the cluster CA key is missing": func(in *decide.Input) {
			changeHost(*in, "cp-2", func(h *observed.Host) { h.PKI = observed.No })
		},
	} {
		in := healthyCluster(3, 0)
		for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
			setCertificates(in, name, 200)
		}
		change(&in)
		p, err := RenewCertificates(in, true)
		if err != nil || !strings.Contains(p.Blocked, want) || len(p.Steps) > 0 {
			t.Errorf("want %q: %v, %q, %d steps", want, err, p.Blocked, len(p.Steps))
		}
	}
}

// A host that has not joined yet has nothing to renew, and holds up no other host.
func TestAHostThatIsToJoinStopsNoRenewal(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0, "cp-3")
	setCertificates(in, "cp-1", 200)
	setCertificates(in, "cp-2", 200)
	p, err := RenewCertificates(in, false)
	if err != nil || p.Blocked != "" || len(renewalSteps(t, p)) != 2 {
		t.Errorf("%v, %q, %+v", err, p.Blocked, p.Steps)
	}
}

// A host has one step of each kind in a plan, with one set of parameters: its renewal waits for the next plan.
func TestARepairOfTheSameKindGoesFirst(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	replaceHost(in, "cp-2", incompleteHost)
	setCertificates(in, "cp-2", 60)
	p, _ := Build(Input{Decide: in})
	if want := "certificates of cp-2 expire soon"; !strings.HasPrefix(p.Again, want) {
		t.Errorf("again: %q, want %q", p.Again, want)
	}
	seen := map[string]bool{}
	for _, s := range p.Steps {
		if seen[s.ID] {
			t.Errorf("%s is there twice", s.ID)
		}
		seen[s.ID] = true
	}
}

// A restart of units renews nothing.
func TestARestartRenewsNothing(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 0)
	replaceHost(in, "cp-2", stoppedHost)
	setCertificates(in, "cp-2", 60)
	p, _ := Build(Input{Decide: in})
	if diff := cmp.Diff([][]string{{"regenerate/cp-2", "restart-units/cp-2"}}, renewalSteps(t, p)); diff != "" {
		t.Error(diff)
	}
}
