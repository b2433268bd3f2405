package decide

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
	"kubeone/internal/testutil/golden"
)

// TestDialogues reads testdata/dialogues.txt: each dialogue is a title, a world in words, and, after a line of dashes,
// the decision and its reasons. -update rewrites the decisions; people should read them.
func TestDialogues(t *testing.T) {
	t.Parallel()
	const path = "testdata/dialogues.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		world, _, _ := strings.Cut(block, "\n----")
		out.WriteString(world + "\n----\n")
		in, err := parseWorld(world)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", path, err, world)
		}
		out.WriteString(formatDecision(Decide(in)))
	}
	golden.Check(t, path, out.String())
}

// parseWorld builds the world from the lines: "cp: healthy down", "worker: wlost", and sentences about the cluster.
func parseWorld(world string) (Input, error) {
	cps, workers := wordsAfter(world, "cp:"), wordsAfter(world, "worker:")
	in := Input{Want: decidetest.Wanted(len(cps), len(workers)), Config: map[string]map[string]string{}}
	in.Is = healthyCluster(0, 0).Is
	in.Addons = healthyCluster(0, 0).Addons
	in.Is.Etcd.Reached = observed.Yes
	version := decidetest.Version
	if v := wordsAfter(world, "runs:"); len(v) > 0 {
		version = v[0]
	}
	for i, name := range append(cps, workers...) {
		all := slices.Concat(hostKinds(), workerKinds())
		k := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
		if k < 0 {
			return in, fmt.Errorf("no kind of host %q", name)
		}
		in.addHost(in.Want.Hosts()[i], all[k], version)
	}
	for _, line := range strings.Split(world, "\n") {
		if err := in.applyLine(strings.Fields(line)); err != nil {
			return in, err
		}
	}
	return in, nil
}

func wordsAfter(world, key string) []string {
	for _, line := range strings.Split(world, "\n") {
		if strings.HasPrefix(line, key) {
			return strings.Fields(strings.TrimPrefix(line, key))
		}
	}
	return nil
}

func (in *Input) applyLine(line []string) error {
	if len(line) == 0 || line[0] == "#" {
		return nil
	}
	rest := line[1:]
	switch line[0] {
	case "cp:", "worker:", "runs:":
	case "wanted:":
		in.Want.KubernetesVersion = rest[0]
	case "silent:": // api, etcd
		for _, who := range rest {
			if who == "api" {
				in.Is.API = observed.API{Reached: observed.No}
			} else {
				in.Is.Etcd = observed.Etcd{Problem: "context deadline exceeded"}
			}
		}
	case "drift:":
		for _, name := range rest {
			h, _ := in.Want.Host(name)
			in.Config[h.ID] = map[string]string{"kubelet": "config-2"}
		}
	case "stale:":
		for _, name := range rest {
			delete(in.Is.API.Addons, name)
		}
	case "limit:":
		in.Limit = map[string]bool{}
		for _, name := range rest {
			h, _ := in.Want.Host(name)
			in.Limit[h.ID] = true
		}
	case "forced":
		in.ForceUpgrade = true
	case "member:": // name, and dead, alive or unknown
		m := decidetest.Voter(desired.Host{Hostname: rest[0], PrivateAddress: "10.0.9.9"})
		m.Healthy = map[string]observed.Tri{"alive": observed.Yes, "dead": observed.No}[rest[1]]
		in.Is.Etcd.Members = append(in.Is.Etcd.Members, m)
	default:
		return fmt.Errorf("cannot read %q", line)
	}
	return nil
}

// formatDecision returns the decision in lines.
func formatDecision(d Decision) string {
	var b strings.Builder
	for _, v := range d.Trace {
		fmt.Fprintf(&b, "%s? %s: %s\n", v.State, v.Event, v.Why)
	}
	fmt.Fprintf(&b, "=> %s", d.Route)
	if len(d.Also) > 0 {
		fmt.Fprintf(&b, ", also %v", d.Also)
	}
	b.WriteString("\n")
	for _, l := range []struct {
		what  string
		hosts []string
	}{{"joins", d.Joins}, {"upgrades", d.Upgrades}, {"addons", d.Addons}} {
		if len(l.hosts) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", l.what, strings.Join(l.hosts, " "))
		}
	}
	if d.Leader != "" {
		fmt.Fprintf(&b, "leader: %s\n", d.Leader)
	}
	if len(d.Restarts) > 0 {
		fmt.Fprintf(&b, "restarts: %v\n", d.Restarts)
	}
	if len(d.Regenerations) > 0 {
		fmt.Fprintf(&b, "regenerates: %v\n", d.Regenerations)
	}
	if len(d.Quarantines) > 0 {
		fmt.Fprintf(&b, "quarantines: %v\n", d.Quarantines)
	}
	for _, r := range d.Removals {
		fmt.Fprintf(&b, "removes %s: %s\n", r.Member, r.Why)
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "problem %s: %v\n", p.Host, p)
	}
	for _, i := range d.Instructions {
		fmt.Fprintf(&b, "! %s: %v\n", i.Host, i.Problems)
		for n, s := range i.Steps {
			fmt.Fprintf(&b, "  %d. %v\n", n+1, s)
		}
	}
	return b.String()
}
