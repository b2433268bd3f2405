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

// editSections edits the two lists of hosts in a manifest.
func editSections(edit func(controlPlane, workers []any) ([]any, []any)) operator.Edit {
	return editFields(func(all map[string]any) {
		controlPlane, workers := all["controlPlane"].(map[string]any), all["staticWorkers"].(map[string]any)
		controlPlane["hosts"], workers["hosts"] = edit(controlPlane["hosts"].([]any), workers["hosts"].([]any))
	})
}

// editFields edits the manifest's fields.
func editFields(edit func(all map[string]any)) operator.Edit {
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

// editEntries edits each list of hosts separately.
func editEntries(edit func(hosts []map[string]any)) operator.Edit {
	return editSections(func(controlPlane, workers []any) ([]any, []any) {
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

// demoteHosts makes all control-plane hosts but the first workers.
func demoteHosts(controlPlane, workers []any) ([]any, []any) {
	return controlPlane[:1], append(workers, controlPlane[1:]...)
}

// promoteWorker makes the first worker a control-plane host.
func promoteWorker(controlPlane, workers []any) ([]any, []any) {
	return append(controlPlane, workers[0]), workers[1:]
}

func reverseHosts(hosts []map[string]any) { slices.Reverse(hosts) }

func setIDs(hosts []map[string]any) {
	for _, h := range hosts {
		h["id"] = "id-of-" + h["hostname"].(string)
	}
}

// swapAddresses swaps the addresses of the last two hosts of a list.
func swapAddresses(hosts []map[string]any) {
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

// checkIdentities checks that hosts keep their identity when the manifest changes their order, ID or address.
func checkIdentities(s *scenario) {
	before := s.readStarted(s.Members())
	for name, edits := range map[string][]operator.Edit{
		"reordered":          {editEntries(reverseHosts)},
		"named":              {editEntries(setIDs)},
		"reordered-named":    {editEntries(reverseHosts), editEntries(setIDs)},
		"swapped":            {editEntries(swapAddresses)},
		"reordered-swapped":  {editEntries(reverseHosts), editEntries(swapAddresses)},
		"everything-at-once": {editEntries(swapAddresses), editEntries(setIDs), editEntries(reverseHosts)},
	} {
		manifest, err := s.Variant(name, edits...)
		s.must(err)
		if !strings.Contains(name, "swapped") && name != "everything-at-once" {
			s.runCommand(0, []string{"plan", "-m", manifest}, "No changes")
			s.runCommand(0, []string{"apply", "-y", "-m", manifest}, "No changes")
			continue
		}
		// The record is of a manifest with other addresses; no host changes.
		s.runCommand(2, []string{"plan", "-m", manifest}, "worker-1: the manifest lists it at",
			"worker-2: the manifest lists it at", "save manifest and record",
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
			editEntries(func(hosts []map[string]any) { hosts[0]["id"] = "same" }), 15,
			[]string{"controlPlane.hosts[0].id", "staticWorkers.hosts[0].id"},
		},
		"another-hostname": {
			editEntries(func(hosts []map[string]any) {
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
		s.runCommand(refused.status, []string{"apply", "-y", "-m", manifest}, refused.texts...)
	}
	after := s.readStarted(s.Members())
	if !maps.Equal(before, after) {
		s.checkEqual("what runs since when", before, after)
	}
}

// removesOnly checks that a plan to remove a worker touches only that worker.
func (s *scenario) removesOnly(worker, manifest string) {
	s.Helper()
	r := s.runCommand(2, []string{"node", "remove", worker, "--dry-run", "-m", manifest}, "reset to a bare host")
	var about []string // subjects of the plan's steps
	for line := range strings.Lines(r.Stdout) {
		if name, _, ok := strings.Cut(line, " ("); ok && s.isLabHost(name) {
			about = append(about, name)
		}
	}
	s.checkEqual("whom the plan to remove "+worker+" is about", []string{worker}, about)
}

// isLabHost reports whether a host of the lab has the name.
func (s *scenario) isLabHost(name string) bool {
	return slices.ContainsFunc(s.Machines(), func(h *fleet.Host) bool { return h.Hostname == name })
}

// rolesChanged checks that a host keeps its role whatever the manifest says, and that every command refuses to change
// it.
func rolesChanged(s *scenario) {
	before := s.readStarted(s.Members())
	workers, err := s.Variant("demoted", editSections(demoteHosts))
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
		s.runCommand(15, append(asked, "-m", workers), says...)
	}
	s.runCommand(15, []string{"plan", "-m", workers}, append(says, "cp-2", "cp-3")...)
	more, err := s.Variant("promoted", editSections(promoteWorker))
	s.must(err)
	s.runCommand(15, []string{"apply", "-y", "-m", more},
		"the manifest lists it as control-plane, but it is in the cluster as worker")
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
	s.awaitHealthy()
	s.nothingToDo()
}

// anotherCA checks that this machine knows the cluster by its CA, from first contact or from a file.
func anotherCA(s *scenario) {
	file := filepath.Join(s.Dir, "state", s.Lab.Name, "ca")
	known, err := os.ReadFile(file)
	s.must(err)
	s.must(os.WriteFile(file, []byte("sha256:"+strings.Repeat("0", 64)+"\n"), 0o600))
	says := []string{"its CA is " + strings.TrimSpace(string(known)), "another machine is impersonating the cluster"}
	s.runCommand(15, []string{"plan"}, says...)
	s.runCommand(15, []string{"apply", "-y"}, says...)
	s.runCommand(12, []string{"kubeconfig"}, "no reachable control-plane host has a kubeconfig")
	s.must(os.Remove(file))
	certificate, err := s.Lab.Host("cp-1").Exec(s.Context(), "cat /etc/kubernetes/pki/ca.crt")
	s.must(err)
	given := filepath.Join(s.Dir, "cluster-ca.crt")
	s.must(os.WriteFile(given, []byte(certificate), 0o600))
	s.runCommand(0, []string{"plan", "--ca-file", given}, "No changes")
	again, err := os.ReadFile(file)
	s.must(err)
	s.checkEqual("the CA that is known", string(known), string(again))
}
