//go:build e2e && long

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/test/lab/fleet"
)

// TestTerraformFlow knows its hosts from OpenTofu's output only, given as a file, as a folder and on standard input. It
// then taints and replaces resources of hosts: at another address, at the same one, and two one after the other.
func TestTerraformFlow(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "terraform", ControlPlanes: 5, Workers: 1, SSHUser: "ops"})
	folder := newTofuFolder(s)
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		for _, name := range []string{"controlPlane", "staticWorkers", "apiEndpoint"} {
			delete(all, name)
		}
	})))
	s.runParts(
		part{"a file: bare hosts become a cluster", installPlain},
		part{"standard input", terraformPiped},
		part{"a folder: what OpenTofu says there, in whatever workspace", folder.asFolder},
		part{"a folder: what Terraform says there, whatever state file is left", terraformFolder},
		part{"a folder without Terraform", folder.withoutProgram},
		part{"a control-plane host is tainted and comes back at another address", folder.taintedElsewhere},
		part{"a control-plane host is tainted and comes back at its address", func(s *scenario) {
			s.writeMarkerObject("same-address")
			s.destroyHost(s.Lab.Host("cp-3"))
			s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host("cp-3")))
			folder.replaceResource(s, "cp-3", s.Lab.Host("cp-3"))
			s.repairCluster("same-address")
		}},
		part{"two of five are replaced one after the other", folder.taintedOneByOne},
	)
}

// terraformPiped gives the output on standard input.
func terraformPiped(s *scenario) {
	text, err := os.ReadFile(s.Terraform)
	s.must(err)
	s.checkResult(s.Piped(s.Context(), strings.NewReader(string(text)), "plan", "-t", "-"), 0, "No changes")
	s.checkResult(s.Piped(s.Context(), strings.NewReader(string(text)), "apply", "-y", "-t", "-"), 0, "No changes")
	s.checkResult(s.Piped(s.Context(), strings.NewReader("{}"), "apply", "-y", "-t", "-"), 15,
		"contains none of the outputs")
}

// elsewhere is the state of another workspace, whose hosts must not be touched.
const elsewhere = `{"version": 4, "terraform_version": "1.9.0", "outputs": {"kubeone_hosts": {"value": ` +
	`{"control_plane": {"cluster_name": "elsewhere", "cloud_provider": "none", "public_address": ["192.0.2.1"]}}}}}`

// withPrograms creates a folder for the commands' PATH with these shell scripts as programs. An empty folder hides the
// programs of this machine.
func (s *scenario) withPrograms(scripts map[string]string) {
	s.Helper()
	bin := s.TempDir()
	for name, text := range scripts {
		s.must(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	s.Environment = []string{"PATH=" + bin}
}

// terraformFolder gives a folder with a leftover state of another workspace.
func terraformFolder(s *scenario) {
	defer func() { s.Environment = nil }()
	dir := s.TempDir()
	s.must(os.WriteFile(filepath.Join(dir, "terraform.tfstate"), []byte(elsewhere), 0o600))
	says := fmt.Sprintf(`[ "$*" = "output -json" ] && while IFS= read -r line; do echo "$line"; done <'%s'`,
		s.Terraform)
	s.withPrograms(map[string]string{"terraform": says})
	s.runCommand(0, []string{"apply", "-y", "-t", dir}, "No changes")
	s.must(os.WriteFile(filepath.Join(dir, ".terraform.lock.hcl"),
		[]byte("provider \"registry.opentofu.org/hashicorp/null\" {\n}\n"), 0o600))
	s.withPrograms(map[string]string{"tofu": says, "terraform": "exit 1"})
	s.runCommand(0, []string{"apply", "-y", "-t", dir}, "No changes")
	s.withPrograms(map[string]string{"terraform": "echo 'Error: Backend initialization required' >&2; exit 1"})
	s.runCommand(15, []string{"apply", "-y", "-t", dir}, "terraform output -json: exit status 1",
		"Backend initialization")
}

// asFolder gives the folder itself, where commands find OpenTofu in the PATH. In another workspace there is no cluster.
func (f *tofuFolder) asFolder(s *scenario) {
	defer func() { s.Environment = nil }()
	s.Environment = append(tofuEnvironment(), "PATH="+filepath.Dir(f.program))
	s.runCommand(0, []string{"apply", "-y", "-t", f.dir}, "No changes")
	f.runTofu(s, "workspace", "new", "empty")
	s.runCommand(15, []string{"apply", "-y", "-t", f.dir}, "contains none of the outputs")
	f.runTofu(s, "workspace", "select", "default")
	s.runCommand(0, []string{"apply", "-y", "-t", f.dir}, "No changes")
}

// withoutProgram gives a folder whose state has moved, and then the folder with only OpenTofu's state.
func (f *tofuFolder) withoutProgram(s *scenario) {
	defer func() { s.Environment = nil }()
	s.withPrograms(nil)
	dir := s.TempDir()
	s.must(os.WriteFile(filepath.Join(dir, "terraform.tfstate"), nil, 0o600))
	s.runCommand(15, []string{"apply", "-y", "-t", dir}, "terraform.tfstate is empty",
		"terraform output -json > tf.json")
	s.runCommand(0, []string{"apply", "-y", "-t", f.dir}, "No changes")
}

// destroyHost destroys a host, and checks that kubeone explains how to replace it.
func (s *scenario) destroyHost(host *fleet.Host) {
	s.Helper()
	s.must(host.Kill(s.Context()))
	s.eventually("plan says how to replace it", 2*time.Minute,
		s.planSays(host.Hostname, "That is safe now", "terraform taint", "terraform output -json > tf.json"))
}

// taintedElsewhere: OpenTofu creates a new machine with another name and address.
func (f *tofuFolder) taintedElsewhere(s *scenario) {
	gone := s.Lab.Host("cp-2")
	s.writeMarkerObject("new-address")
	s.destroyHost(gone)
	s.must(s.Lab.SetSpare(s.Context(), gone, true))
	come, err := s.Lab.AddHost(s.Context(), fleet.ControlPlane, false)
	s.must(err)
	f.replaceResource(s, gone.Hostname, come)
	s.eventually("plan says that the dead host's Node goes, too", 2*time.Minute, s.planSays(
		"remove dead member "+gone.Hostname, come.Hostname, "join: etcd member", "delete Node "+gone.Hostname))
	s.repairCluster("new-address")
}

// taintedOneByOne: two of five voters are dead. The first replacement joins while the other voter is still missing.
func (f *tofuFolder) taintedOneByOne(s *scenario) {
	s.writeMarkerObject("one-by-one")
	hosts := []*fleet.Host{s.Lab.Host("cp-1"), s.Lab.Host("cp-4")}
	for _, host := range hosts {
		s.destroyHost(host)
	}
	s.runCommand(10, []string{"apply", "-y"}, "nothing to apply until you complete the steps listed above")
	s.must(s.Lab.Rebuild(s.Context(), hosts[0]))
	f.replaceResource(s, hosts[0].Hostname, hosts[0])
	s.runCommand(10, []string{"apply", "-y"}, hosts[1].Hostname)
	s.eventually(hosts[0].Hostname+" is a member again", time.Minute, s.planSays("Action required", hosts[1].Hostname))
	s.must(s.Lab.Rebuild(s.Context(), hosts[1]))
	f.replaceResource(s, hosts[1].Hostname, hosts[1])
	s.repairCluster("one-by-one")
}
