// Package fleet brings up labs: groups of hosts that a reconciler cannot tell from bare machines. Each host is a docker
// container with systemd as its first process, sshd, an address of its own, and nothing of Kubernetes installed. One
// more host per lab runs haproxy in front of the control planes' API servers.
//
// A lab lives on when the program that made it ends: its folder (Lab.Dir) holds lab.json, from which Open finds it
// again, and all that the product needs to work on it: a manifest, Terraform's output, a key, the hosts' keys.
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Lab is a group of running hosts. Its methods may run concurrently with those of its hosts, not with each other.
type Lab struct {
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Dir is the lab's folder.
	Dir     string `json:"dir"`
	Network string `json:"network"`
	Subnet  string `json:"subnet"`
	// Endpoint is the load balancer's address; the API is on its port 6443.
	Endpoint string  `json:"endpoint"`
	Hosts    []*Host `json:"hosts"`
	// Bundle is the path of the bundle with everything the cluster needs, empty when the lab was made without.
	Bundle string `json:"bundle,omitempty"`

	Image string `json:"image"`
	// Images are those of hosts that have another one, by hostname.
	Images        map[string]string `json:"images,omitempty"`
	SSHUser       string            `json:"sshUser"`
	AuthorizedKey string            `json:"authorizedKey"`
	Nameservers   []string          `json:"nameservers"`
	PinHostKeys   bool              `json:"pinHostKeys"`
	// Ephemeral labs belong to the process Owner and are leftovers once it is gone.
	Ephemeral bool   `json:"ephemeral,omitempty"`
	Owner     string `json:"owner"`

	// log receives the progress of whatever is done to the lab; nil for none.
	log Logf
}

// Open finds a lab by name. The error matches fs.ErrNotExist when there is none.
func Open(name string) (*Lab, error) {
	root, err := defaultStateRoot()
	if err != nil {
		return nil, err
	}
	return open(filepath.Join(root, name))
}

func open(dir string) (*Lab, error) {
	text, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	if err != nil {
		return nil, fmt.Errorf("open lab %s: %w", filepath.Base(dir), err)
	}
	var lab Lab
	if err := json.Unmarshal(text, &lab); err != nil {
		return nil, fmt.Errorf("open lab %s: %w", filepath.Base(dir), err)
	}
	return &lab, nil
}

// List opens all labs, by name.
func List() ([]*Lab, error) {
	root, err := defaultStateRoot()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var labs []*Lab
	for _, entry := range entries {
		if lab, err := open(filepath.Join(root, entry.Name())); err == nil {
			labs = append(labs, lab)
		}
	}
	return labs, nil
}

// FindHost finds a host by its unique name among all labs.
func FindHost(name string) (*Lab, *Host, error) {
	labs, err := List()
	if err != nil {
		return nil, nil, err
	}
	for _, lab := range labs {
		if host := lab.Host(name); host != nil {
			return lab, host, nil
		}
	}
	return nil, nil, fmt.Errorf("no lab has a host %q: %w", name, fs.ErrNotExist)
}
