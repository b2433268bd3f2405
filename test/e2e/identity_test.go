//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/test/e2e/operator"
)

// entries edits the lists of hosts of a manifest, as YAML has them.
func entries(edit func(hosts []map[string]any)) operator.Edit {
	return func(manifest string) string {
		var all map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &all); err != nil {
			return manifest // which the caller takes for an edit that changes nothing
		}
		for _, section := range []string{"controlPlane", "staticWorkers"} {
			list := all[section].(map[string]any)["hosts"].([]any)
			hosts := make([]map[string]any, len(list))
			for i := range list {
				hosts[i] = list[i].(map[string]any)
			}
			edit(hosts)
			for i := range hosts {
				list[i] = hosts[i]
			}
		}
		text, err := yaml.Marshal(all)
		if err != nil {
			return manifest
		}
		return string(text)
	}
}

func reordered(hosts []map[string]any) { slices.Reverse(hosts) }

func named(hosts []map[string]any) {
	for _, h := range hosts {
		h["id"] = "id-of-" + h["hostname"].(string)
	}
}

// swapped lets the last two hosts of a list, if it has two, swap their addresses.
func swapped(hosts []map[string]any) {
	if len(hosts) < 2 {
		return
	}
	a, b := hosts[len(hosts)-1], hosts[len(hosts)-2]
	for _, field := range []string{"publicAddress", "privateAddress", "sshHostPublicKey"} {
		if a[field] != nil && b[field] != nil { // a machine answers at its address with its own key
			a[field], b[field] = b[field], a[field]
		}
	}
}

// recognised shows that hosts are who they are, whatever their place in the manifest, their ID and the address that
// it gives them.
func recognised(s *story) {
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
		// Nothing is done to a host. The record is of a manifest with other addresses.
		s.run(2, []string{"plan", "-m", manifest}, "worker-1: the manifest has it at",
			"worker-2: the manifest has it at", "save manifest and record",
			"Plan: 1 step: 0 to create, 1 to change, 0 to remove.")
	}
	for name, refused := range map[string]struct {
		edit  operator.Edit
		texts []string
	}{
		"two-of-one-id": {
			entries(func(hosts []map[string]any) { hosts[0]["id"] = "same" }),
			[]string{"controlPlane.hosts[0].id", "staticWorkers.hosts[0].id"},
		},
		"another-hostname": {
			entries(func(hosts []map[string]any) {
				if hosts[0]["hostname"] == "worker-1" {
					hosts[0]["hostname"] = "renamed"
				}
			}),
			[]string{"worker-1", "renamed"},
		},
	} {
		manifest, err := s.Variant(name, refused.edit)
		s.must(err)
		s.run(15, []string{"apply", "-y", "-m", manifest}, refused.texts...)
	}
	after := s.started(s.Members())
	if !maps.Equal(before, after) {
		s.same("what runs since when", before, after)
	}
}
