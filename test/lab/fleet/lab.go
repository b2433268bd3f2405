// Package fleet brings up labs: groups of hosts that are like bare machines for kubeone. Each host is a docker
// container with systemd, sshd and its own address, without anything of Kubernetes. One more host per lab runs haproxy
// in front of the control planes' API servers.
//
// A lab outlives the program that made it. Its folder (Lab.Dir) contains lab.json for Open, and everything that kubeone
// needs: a manifest, Terraform's output, a key, and the hosts' keys.
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kubeone/test/lab/components"
)

// Lab is a group of running hosts. Its methods may run concurrently with those of its hosts, but not with each other.
type Lab struct {
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	CNI               string `json:"cni"` // the network plugin
	Dir               string `json:"dir"`
	Network           string `json:"network"`
	Subnet            string `json:"subnet"`
	SubnetIPv6        string `json:"subnetIPv6,omitempty"` // of a dual-stack lab
	// Endpoint is the load balancer's address; the API is on its port 6443.
	Endpoint string  `json:"endpoint"`
	Hosts    []*Host `json:"hosts"`
	// Bundle is the path of a bundle for the cluster, empty if the lab has none.
	Bundle string `json:"bundle,omitempty"`
	// Addons are the addons of kubeone whose images are in the bundle.
	Addons []string `json:"addons,omitempty"`

	Image string `json:"image"`
	// Images are the images of hosts with another than the default, by hostname.
	Images        map[string]string `json:"images,omitempty"`
	SSHUser       string            `json:"sshUser"`
	AuthorizedKey string            `json:"authorizedKey"`
	Nameservers   []string          `json:"nameservers"`
	PinHostKeys   bool              `json:"pinHostKeys"`
	// Ephemeral labs belong to the process Owner and are leftovers when it has ended.
	Ephemeral bool   `json:"ephemeral,omitempty"`
	Owner     string `json:"owner"`

	// log receives progress, and may be nil.
	log Logf
}

// Open opens a lab by name. The error matches fs.ErrNotExist if there is none.
func Open(name string) (*Lab, error) {
	root, err := defaultStateRoot()
	if err != nil {
		return nil, err
	}
	return openDir(filepath.Join(root, name))
}

func openDir(dir string) (*Lab, error) {
	text, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	if err != nil {
		return nil, fmt.Errorf("open lab %s: %w", filepath.Base(dir), err)
	}
	lab := Lab{CNI: components.DefaultCNI} // older labs do not name it
	if err := json.Unmarshal(text, &lab); err != nil {
		return nil, fmt.Errorf("open lab %s: %w", filepath.Base(dir), err)
	}
	return &lab, nil
}

// List opens all labs, sorted by name.
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
		if lab, err := openDir(filepath.Join(root, entry.Name())); err == nil {
			labs = append(labs, lab)
		}
	}
	return labs, nil
}

// FindHost returns the host with a unique name among all labs.
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
