//go:build e2e

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// sections edits the two lists of hosts in a manifest.
func sections(edit func(controlPlane, workers []any) ([]any, []any)) operator.Edit {
	return fields(func(all map[string]any) {
		controlPlane, workers := all["controlPlane"].(map[string]any), all["staticWorkers"].(map[string]any)
		controlPlane["hosts"], workers["hosts"] = edit(controlPlane["hosts"].([]any), workers["hosts"].([]any))
	})
}

// fields edits the manifest's fields.
func fields(edit func(all map[string]any)) operator.Edit {
	return func(manifest string) string {
		var all map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &all); err != nil {
			return manifest // the caller reports it as an edit without a change
		}
		edit(all)
		text, err := yaml.Marshal(all)
		if err != nil {
			return manifest
		}
		return string(text)
	}
}

// entries edits each list of hosts separately.
func entries(edit func(hosts []map[string]any)) operator.Edit {
	return sections(func(controlPlane, workers []any) ([]any, []any) {
		for _, list := range [][]any{controlPlane, workers} {
			hosts := make([]map[string]any, len(list))
			for i := range list {
				hosts[i] = list[i].(map[string]any)
			}
			edit(hosts)
			for i := range hosts {
				list[i] = hosts[i]
			}
		}
		return controlPlane, workers
	})
}

// demoted makes all control-plane hosts but the first workers.
func demoted(controlPlane, workers []any) ([]any, []any) {
	return controlPlane[:1], append(workers, controlPlane[1:]...)
}

// promoted makes the first worker a control-plane host.
func promoted(controlPlane, workers []any) ([]any, []any) {
	return append(controlPlane, workers[0]), workers[1:]
}

func reordered(hosts []map[string]any) { slices.Reverse(hosts) }

func named(hosts []map[string]any) {
	for _, h := range hosts {
		h["id"] = "id-of-" + h["hostname"].(string)
	}
}

// swapped swaps the addresses of the last two hosts of a list.
func swapped(hosts []map[string]any) {
	if len(hosts) < 2 {
		return
	}
	a, b := hosts[len(hosts)-1], hosts[len(hosts)-2]
	for _, field := range []string{"publicAddress", "privateAddress", "sshHostPublicKey"} {
		if a[field] != nil && b[field] != nil { // a machine keeps its own key at its address
			a[field], b[field] = b[field], a[field]
		}
	}
}

// recognised checks that hosts keep their identity when the manifest changes their order, ID or address.
func recognised(s *scenario) {
	before := s.started(s.Members())
	for name, edits := range map[string][]operator.Edit{
		"reordered":          {entries(reordered)},
		"named":              {entries(named)},
		"reordered-named":    {entries(reordered), entries(named)},
		"swapped":            {entries(swapped)},
		"reordered-swapped":  {entries(reordered), entries(swapped)},
		"everything-at-once": {entries(swapped), entries(named), entries(reordered)},
	} {
		manifest, err := s.Variant(name, edits...)
		s.must(err)
		if !strings.Contains(name, "swapped") && name != "everything-at-once" {
			s.run(0, []string{"plan", "-m", manifest}, "No changes")
			s.run(0, []string{"apply", "-y", "-m", manifest}, "No changes")
			continue
		}
		// The record is of a manifest with other addresses; no host changes.
		s.run(2, []string{"plan", "-m", manifest}, "worker-1: the manifest has it at",
			"worker-2: the manifest has it at", "save manifest and record",
			"Plan: 1 step: 0 to create, 1 to change, 0 to remove.")
		if name == "swapped" {
			s.removesOnly("worker-1", manifest)
			s.removesOnly("worker-2", manifest)
		}
	}
	for name, refused := range map[string]struct {
		edit   operator.Edit
		status int
		texts  []string
	}{
		"two-of-one-id": {
			entries(func(hosts []map[string]any) { hosts[0]["id"] = "same" }), 15,
			[]string{"controlPlane.hosts[0].id", "staticWorkers.hosts[0].id"},
		},
		"another-hostname": {
			entries(func(hosts []map[string]any) {
				if hosts[0]["hostname"] == "worker-1" {
					hosts[0]["hostname"] = "renamed"
				}
			}),
			10, // work on other hosts continues
			[]string{"worker-1", "renamed", "leaves renamed (", "restore the hostname"},
		},
	} {
		manifest, err := s.Variant(name, refused.edit)
		s.must(err)
		s.run(refused.status, []string{"apply", "-y", "-m", manifest}, refused.texts...)
	}
	after := s.started(s.Members())
	if !maps.Equal(before, after) {
		s.same("what runs since when", before, after)
	}
}

// removesOnly checks that a plan to remove a worker touches only that worker.
func (s *scenario) removesOnly(worker, manifest string) {
	s.Helper()
	r := s.run(2, []string{"node", "remove", worker, "--dry-run", "-m", manifest}, "reset to a bare host")
	var about []string // subjects of the plan's steps
	for line := range strings.Lines(r.Stdout) {
		if name, _, ok := strings.Cut(line, " ("); ok && s.known(name) {
			about = append(about, name)
		}
	}
	s.same("whom the plan to remove "+worker+" is about", []string{worker}, about)
}

// known reports whether a host of the lab has the name.
func (s *scenario) known(name string) bool {
	return slices.ContainsFunc(s.Machines(), func(h *fleet.Host) bool { return h.Hostname == name })
}

// rolesChanged checks that a host keeps its role whatever the manifest says, and that every command refuses to change
// it.
func rolesChanged(s *scenario) {
	before := s.started(s.Members())
	workers, err := s.Variant("demoted", sections(demoted))
	s.must(err)
	says := []string{"the manifest lists it as worker, but it is in the cluster as control-plane",
		"kubeone node remove"}
	for _, asked := range [][]string{
		{"apply", "-y"},
		{"upgrade", "-y", "--force"},
		{"node", "replace", "cp-2", "-y"},
		{"node", "replace", "cp-3", "-y"},
		{"node", "remove", "cp-2", "-y"},
		{"node", "remove", "cp-2", "-y", "--unreachable"},
		{"reset", "-y", "--host", "cp-2", "--host", "cp-3"},
		{"reset", "-y"},
		{"recover", "-y", "--from", "surviving-member"},
	} {
		s.run(15, append(asked, "-m", workers), says...)
	}
	s.run(15, []string{"plan", "-m", workers}, append(says, "cp-2", "cp-3")...)
	more, err := s.Variant("promoted", sections(promoted))
	s.must(err)
	s.run(15, []string{"apply", "-y", "-m", more},
		"the manifest lists it as control-plane, but it is in the cluster as worker")
	s.same("what runs since when", before, s.started(s.Members()))
	s.healthy()
	s.nothingToDo()
}

// anotherCA checks that this machine knows the cluster by its CA, from first contact or from a file.
func anotherCA(s *scenario) {
	file := filepath.Join(s.Dir, "state", s.Lab.Name, "ca")
	known, err := os.ReadFile(file)
	s.must(err)
	s.must(os.WriteFile(file, []byte("sha256:"+strings.Repeat("0", 64)+"\n"), 0o600))
	says := []string{"its CA is " + strings.TrimSpace(string(known)), "another machine is impersonating the cluster"}
	s.run(15, []string{"plan"}, says...)
	s.run(15, []string{"apply", "-y"}, says...)
	s.run(12, []string{"kubeconfig"}, "no control-plane host that answers has a kubeconfig")
	s.must(os.Remove(file))
	certificate, err := s.Lab.Host("cp-1").Exec(s.Context(), "cat /etc/kubernetes/pki/ca.crt")
	s.must(err)
	given := filepath.Join(s.Dir, "cluster-ca.crt")
	s.must(os.WriteFile(given, []byte(certificate), 0o600))
	s.run(0, []string{"plan", "--ca-file", given}, "No changes")
	again, err := os.ReadFile(file)
	s.must(err)
	s.same("the CA that is known", string(known), string(again))
}
