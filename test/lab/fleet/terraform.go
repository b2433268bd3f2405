package fleet

import "encoding/json"

// tfHosts is a group of hosts in the format of KubeOne's Terraform outputs.
type tfHosts struct {
	ClusterName   string   `json:"cluster_name,omitempty"`
	CloudProvider string   `json:"cloud_provider,omitempty"`
	Public        []string `json:"public_address"`
	Private       []string `json:"private_address"`
	Hostnames     []string `json:"hostnames"`
	SSHUser       string   `json:"ssh_user"`
	SSHKeyFile    string   `json:"ssh_private_key_file"`
	SSHHostKeys   []string `json:"ssh_hosts_keys,omitempty"`
}

// terraformOutput returns the output of `terraform output -json` for the lab's hosts, without spare ones.
func terraformOutput(l *Lab) ([]byte, error) {
	controlPlane := terraformHosts(l, l.ControlPlanes())
	controlPlane.ClusterName, controlPlane.CloudProvider = l.Name, "none"
	outputs := map[string]any{
		"kubeone_api":   tfOutput(map[string]any{"endpoint": l.Endpoint}),
		"kubeone_hosts": tfOutput(map[string]any{"control_plane": controlPlane}),
	}
	if workers := l.Workers(); len(workers) > 0 {
		outputs["kubeone_static_workers"] = tfOutput(map[string]any{"workers": terraformHosts(l, workers)})
	}
	text, err := json.MarshalIndent(outputs, "", "  ")
	return append(text, '\n'), err
}

// tfOutput wraps a value like Terraform. The type "dynamic" is not read.
func tfOutput(value any) map[string]any {
	return map[string]any{"sensitive": false, "type": "dynamic", "value": value}
}

func terraformHosts(l *Lab, hosts []*Host) tfHosts {
	group := tfHosts{SSHUser: l.SSHUser, SSHKeyFile: l.Path("id_ed25519")}
	for _, host := range hosts {
		group.Public = append(group.Public, host.Address)
		group.Private = append(group.Private, host.Address)
		group.Hostnames = append(group.Hostnames, host.Hostname)
		if l.PinHostKeys {
			group.SSHHostKeys = append(group.SSHHostKeys, host.WireKey())
		}
	}
	return group
}
