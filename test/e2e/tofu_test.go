//go:build e2e && long

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// tofuConfiguration has a resource for each of the lab's hosts. terraform_data is built into OpenTofu: it needs no
// provider, and stores its input.
const tofuConfiguration = `
variable "cluster" {
  type = object({ name = string, endpoint = string, ssh_user = string, ssh_private_key_file = string })
}

variable "control_planes" {
  type = map(object({ address = string, hostname = string, ssh_host_key = string }))
}

variable "workers" {
  type = map(object({ address = string, hostname = string, ssh_host_key = string }))
}

resource "terraform_data" "control_plane" {
  for_each = var.control_planes
  input    = each.value
}

resource "terraform_data" "worker" {
  for_each = var.workers
  input    = each.value
}

locals {
  ssh = { ssh_user = var.cluster.ssh_user, ssh_private_key_file = var.cluster.ssh_private_key_file }
}

output "kubeone_api" {
  value = { endpoint = var.cluster.endpoint }
}

output "kubeone_hosts" {
  value = {
    control_plane = merge(local.ssh, {
      cluster_name    = var.cluster.name
      cloud_provider  = "none"
      public_address  = [for host in terraform_data.control_plane : host.output.address]
      private_address = [for host in terraform_data.control_plane : host.output.address]
      hostnames       = [for host in terraform_data.control_plane : host.output.hostname]
      ssh_hosts_keys  = [for host in terraform_data.control_plane : host.output.ssh_host_key]
    })
  }
}

output "kubeone_static_workers" {
  value = {
    workers = merge(local.ssh, {
      public_address  = [for host in terraform_data.worker : host.output.address]
      private_address = [for host in terraform_data.worker : host.output.address]
      hostnames       = [for host in terraform_data.worker : host.output.hostname]
      ssh_hosts_keys  = [for host in terraform_data.worker : host.output.ssh_host_key]
    })
  }
}
`

// tofuFolder is a folder in which OpenTofu manages the lab's hosts.
type tofuFolder struct {
	program, dir string
	// controlPlanes are the hosts of the resources, by the resource's key. A replaced resource may get another host.
	controlPlanes map[string]*fleet.Host
}

// newTofuFolder creates the folder and its state, and has the operator's commands read its output as a file.
func newTofuFolder(s *scenario) *tofuFolder {
	s.Helper()
	cache, err := components.DefaultCache()
	s.must(err)
	program, err := components.NewBuilder(cache, s.Logf).Tofu(s.Context())
	s.must(err)
	f := &tofuFolder{program: program, dir: s.TempDir(), controlPlanes: map[string]*fleet.Host{}}
	for _, host := range s.Lab.ControlPlanes() {
		f.controlPlanes[host.Hostname] = host
	}
	s.must(os.WriteFile(filepath.Join(f.dir, "main.tf"), []byte(tofuConfiguration), 0o600))
	f.runTofu(s, "init", "-input=false")
	f.applyTofu(s)
	s.Terraform = filepath.Join(f.dir, "tf.json")
	return f
}

// runTofu runs OpenTofu in the folder and returns its output.
func (f *tofuFolder) runTofu(s *scenario, args ...string) []byte {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), f.program, append([]string{"-chdir=" + f.dir}, args...)...)
	cmd.Env = append(append(os.Environ(), tofuEnvironment()...), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("tofu %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return out
}

// tofuEnvironment disables the CLI configuration of this machine. OpenTofu prints a warning before its JSON output when
// that file is missing.
func tofuEnvironment() []string { return []string{"TF_CLI_CONFIG_FILE="} }

// replaceResource taints the resource of a control-plane host, assigns it another machine, and applies.
func (f *tofuFolder) replaceResource(s *scenario, key string, now *fleet.Host) {
	s.Helper()
	f.controlPlanes[key] = now
	f.runTofu(s, "taint", `terraform_data.control_plane["`+key+`"]`)
	f.applyTofu(s)
}

// applyTofu passes the current machines to OpenTofu, and writes its output to tf.json.
func (f *tofuFolder) applyTofu(s *scenario) {
	s.Helper()
	workers := map[string]*fleet.Host{}
	for _, host := range s.Lab.Workers() {
		workers[host.Hostname] = host
	}
	variables, err := json.Marshal(map[string]any{
		"cluster": map[string]string{
			"name": s.Lab.Name, "endpoint": s.Lab.Endpoint, "ssh_user": s.Lab.SSHUser,
			"ssh_private_key_file": s.Lab.Path("id_ed25519"),
		},
		"control_planes": tofuHosts(f.controlPlanes), "workers": tofuHosts(workers),
	})
	s.must(err)
	s.must(os.WriteFile(filepath.Join(f.dir, "terraform.tfvars.json"), variables, 0o600))
	f.runTofu(s, "apply", "-auto-approve", "-input=false")
	s.must(os.WriteFile(filepath.Join(f.dir, "tf.json"), f.runTofu(s, "output", "-json"), 0o600))
}

func tofuHosts(hosts map[string]*fleet.Host) map[string]any {
	out := map[string]any{}
	for key, host := range hosts {
		out[key] = map[string]string{
			"address": host.Address, "hostname": host.Hostname, "ssh_host_key": host.WireKey(),
		}
	}
	return out
}
