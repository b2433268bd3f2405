package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"kubeone/api/kubeone/v1beta2"
	"path/filepath"
	"strings"
)

// controlPlaneOutput is the path of the control plane in the Terraform output.
const controlPlaneOutput = outputHosts + ".value.control_plane"

// hostGroup is a group of similar hosts. Fields that differ are lists with one item for each host; all other fields
// apply to every host.
type hostGroup struct {
	PublicAddress  []string   `json:"public_address"`
	PrivateAddress []string   `json:"private_address"`
	IPv6Addresses  [][]string `json:"ipv6_addresses"`
	Hostnames      []string   `json:"hostnames"`
	SSHHostsKeys   []string   `json:"ssh_hosts_keys"`

	OperatingSystem       string            `json:"operating_system"`
	SSHUser               string            `json:"ssh_user"`
	SSHPort               int               `json:"ssh_port"`
	SSHPrivateKeyFile     string            `json:"ssh_private_key_file"`
	SSHCertFile           string            `json:"ssh_cert_file"`
	SSHAgentSocket        string            `json:"ssh_agent_socket"`
	Bastion               string            `json:"bastion"`
	BastionPort           int               `json:"bastion_port"`
	BastionUser           string            `json:"bastion_user"`
	BastionHostKey        string            `json:"bastion_host_key"`
	BastionPrivateKeyFile string            `json:"bastion_private_key_file"`
	Kubelet               terraformKubelet  `json:"kubelet"`
	Labels                map[string]string `json:"labels"`
	Annotations           map[string]string `json:"annotations"`
}

// terraformKubelet holds kubelet settings. The first three are comma-separated lists, because some Terraform maps do
// not allow keys such as memory.available.
type terraformKubelet struct {
	SystemReserved              string `json:"system_reserved"` // "cpu=200m,memory=200Mi"
	KubeReserved                string `json:"kube_reserved"`
	EvictionHard                string `json:"eviction_hard"` // "memory.available<100Mi"
	MaxPods                     *int32 `json:"max_pods"`
	PodPidsLimit                *int64 `json:"pod_pids_limit"`
	ImageGCHighThresholdPercent *int32 `json:"image_gc_high_threshold_percent"`
	ImageGCLowThresholdPercent  *int32 `json:"image_gc_low_threshold_percent"`
	ImageMinimumGCAge           string `json:"image_minimum_gc_age"`
	ImageMaximumGCAge           string `json:"image_maximum_gc_age"`
}

// terraformHost is one host in a group. The positions of its fields are keyed by their path relative to the host.
type terraformHost struct {
	host  v1beta2.HostConfig
	where positions
}

// groupHosts returns the hosts in a group: one for each public address or, if there are none, for each private address.
// Every other list must be empty or have the same length.
func (l *loader) groupHosts(out *terraformOutput, path string, g hostGroup) []terraformHost {
	addresses := "public_address"
	n := len(g.PublicAddress)
	if n == 0 {
		addresses, n = "private_address", len(g.PrivateAddress)
	}
	for name, have := range map[string]int{
		"private_address": len(g.PrivateAddress), "ipv6_addresses": len(g.IPv6Addresses),
		"hostnames": len(g.Hostnames), "ssh_hosts_keys": len(g.SSHHostsKeys),
	} {
		if have != 0 && have != n {
			l.reportAt(out.positionOf(path+"."+name), Error,
				"every list in a group must have one item for each host, in the same order",
				fmt.Sprintf("has %d items, but %s has %d", have, addresses, n))
		}
	}
	kubelet := l.newKubelet(out, path+".kubelet", g.Kubelet)
	hosts := make([]terraformHost, n)
	for i := range hosts {
		h := g.newHost(kubelet)
		h.PublicAddress, h.PrivateAddress = elementAt(g.PublicAddress, i), elementAt(g.PrivateAddress, i)
		h.Hostname, h.SSHHostPublicKey = elementAt(g.Hostnames, i), elementAt(g.SSHHostsKeys, i)
		h.IPv6Addresses = elementAt(g.IPv6Addresses, i)
		hosts[i] = terraformHost{host: h, where: out.hostPositions(path, addresses, i)}
	}
	return hosts
}

// newHost returns a host with the fields that all hosts in the group share.
func (g hostGroup) newHost(kubelet v1beta2.KubeletConfig) v1beta2.HostConfig {
	return v1beta2.HostConfig{
		OperatingSystem: g.OperatingSystem,
		Kubelet:         kubelet,
		Labels:          g.Labels,
		Annotations:     g.Annotations,
		SSHConfig: v1beta2.SSHConfig{
			SSHPort:               g.SSHPort,
			SSHUsername:           g.SSHUser,
			SSHPrivateKeyFile:     g.SSHPrivateKeyFile,
			SSHCertFile:           g.SSHCertFile,
			SSHAgentSocket:        g.SSHAgentSocket,
			Bastion:               g.Bastion,
			BastionPort:           g.BastionPort,
			BastionUser:           g.BastionUser,
			BastionHostPublicKey:  g.BastionHostKey,
			BastionPrivateKeyFile: g.BastionPrivateKeyFile,
		},
	}
}

func elementAt[T any](list []T, i int) T {
	var none T
	if i < len(list) {
		return list[i]
	}
	return none
}

func (l *loader) newKubelet(out *terraformOutput, path string, k terraformKubelet) v1beta2.KubeletConfig {
	return v1beta2.KubeletConfig{
		SystemReserved:              l.parseAmounts(out, path+".system_reserved", k.SystemReserved, "="),
		KubeReserved:                l.parseAmounts(out, path+".kube_reserved", k.KubeReserved, "="),
		EvictionHard:                l.parseAmounts(out, path+".eviction_hard", k.EvictionHard, "<"),
		MaxPods:                     k.MaxPods,
		PodPidsLimit:                k.PodPidsLimit,
		ImageGCHighThresholdPercent: k.ImageGCHighThresholdPercent,
		ImageGCLowThresholdPercent:  k.ImageGCLowThresholdPercent,
		ImageMinimumGCAge:           k.ImageMinimumGCAge,
		ImageMaximumGCAge:           k.ImageMaximumGCAge,
	}
}

// parseAmounts parses a list such as "cpu=200m,memory=200Mi".
func (l *loader) parseAmounts(out *terraformOutput, path, text, separator string) map[string]string {
	var amounts map[string]string
	for entry := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, amount, ok := strings.Cut(entry, separator)
		if !ok {
			l.reportAt(out.positionOf(path), Error, "write name"+separator+"amount, separated by commas",
				fmt.Sprintf("%q has no %q", entry, separator))
			continue
		}
		if amounts == nil {
			amounts = map[string]string{}
		}
		amounts[strings.TrimSpace(name)] = strings.TrimSpace(amount)
	}
	return amounts
}

// hostPositions returns the positions of the fields of a host, by their names in the manifest.
func (out *terraformOutput) hostPositions(group, addresses string, i int) positions {
	where := positions{"": out.positionOf(v1beta2.Item(group+"."+addresses, i))}
	for ours, theirs := range map[string]string{
		"publicAddress": "public_address", "privateAddress": "private_address", "hostname": "hostnames",
		"ipv6Addresses": "ipv6_addresses", "sshHostPublicKey": "ssh_hosts_keys",
	} {
		out.copyPosition(where, "."+ours, v1beta2.Item(group+"."+theirs, i))
	}
	for ours, theirs := range map[string]string{
		"operatingSystem": "operating_system", "sshUsername": "ssh_user", "sshPort": "ssh_port",
		"sshPrivateKeyFile": "ssh_private_key_file", "sshCertFile": "ssh_cert_file",
		"sshAgentSocket": "ssh_agent_socket",
		"bastion":        "bastion", "bastionPort": "bastion_port", "bastionUser": "bastion_user",
		"bastionHostPublicKey": "bastion_host_key", "bastionPrivateKeyFile": "bastion_private_key_file",
		"kubelet": "kubelet", "kubelet.systemReserved": "kubelet.system_reserved",
		"kubelet.kubeReserved": "kubelet.kube_reserved",
		"kubelet.evictionHard": "kubelet.eviction_hard", "kubelet.maxPods": "kubelet.max_pods",
		"labels": "labels", "annotations": "annotations",
	} {
		out.copyPosition(where, "."+ours, group+"."+theirs)
	}
	return where
}

// copyPosition copies the position of a value in the output, if the value is set.
func (out *terraformOutput) copyPosition(where positions, ours, theirs string) {
	at := out.positionOf(theirs)
	if _, written := out.where[at.Path]; written {
		where[ours] = at
	}
}

// stateName is the file in which the local backend keeps the state of the default workspace. A file with this name in
// the data directory contains the settings of another backend.
const stateName = "terraform.tfstate"

// readStateFile reads terraform.tfstate without Terraform, but only if no other state can be in use. An old file
// remains there when the operator selects another workspace or moves the state to another backend.
func (l *loader) readStateFile() ([]byte, error) {
	data, err := readFile(filepath.Join(l.TerraformPath, stateName))
	unusable := error(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		unusable = errors.New("there is no " + stateName)
	case err != nil:
		return nil, err
	default:
		unusable = l.checkStateInUse()
	}
	if unusable == nil && len(bytes.TrimSpace(data)) == 0 {
		unusable = errors.New(stateName + " is empty, probably because the state was moved to another backend")
	}
	if unusable != nil {
		return nil, fmt.Errorf("%w, and %w", ErrNoTerraform, unusable)
	}
	return data, nil
}

// checkStateInUse returns an error if a state other than terraform.tfstate may be in use.
func (l *loader) checkStateInUse() error {
	const defaultWorkspace = "default"
	dir := l.Getenv("TF_DATA_DIR")
	if dir == "" {
		dir = ".terraform"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(l.TerraformPath, dir)
	}
	if name := l.Getenv("TF_WORKSPACE"); name != "" && name != defaultWorkspace {
		return fmt.Errorf("TF_WORKSPACE selects the workspace %q, whose state is not in %s", name, stateName)
	}
	text, err := readFile(filepath.Join(dir, "environment"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	selected := strings.TrimSpace(string(text))
	if selected != "" && selected != defaultWorkspace && l.Getenv("TF_WORKSPACE") == "" {
		return fmt.Errorf("the selected workspace is %q, whose state is not in %s", selected, stateName)
	}
	settings, err := readFile(filepath.Join(dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return checkBackend(settings)
}

// checkBackend returns an error if the backend settings name a location other than terraform.tfstate for the state.
func checkBackend(settings []byte) error {
	var parsed struct {
		Backend *struct {
			Type   string `json:"type"`
			Config struct {
				Path string `json:"path"`
			} `json:"config"`
		} `json:"backend"`
	}
	if err := json.Unmarshal(settings, &parsed); err != nil {
		return fmt.Errorf("cannot read the Terraform backend settings: %w", err)
	}
	switch b := parsed.Backend; {
	case b == nil:
		return nil
	case b.Type != "local":
		return fmt.Errorf("the state is in the backend %q", b.Type)
	case b.Config.Path != "" && filepath.Clean(b.Config.Path) != stateName:
		return fmt.Errorf("the state is in the file %q", b.Config.Path)
	}
	return nil
}
