package ssh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/api/cluster/v1alpha1"
)

// ConfigVersion is the version of Config that this program reads.
const ConfigVersion = "ssh.kubeone.k8c.io/v1alpha1"

// Config is the cloudProviderSpec of a Machine with this provider.
type Config struct {
	// APIVersion is ConfigVersion; "" means the same.
	APIVersion string `json:"apiVersion,omitempty"`
	// Host is the name of the only Host that the Machine can use; "" allows any Host.
	Host string `json:"host,omitempty"`
	// HostSelector selects Hosts by label. Nil selects all Hosts.
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`
	// SilentHostTimeoutSeconds is how long a deleted Machine waits for an unresponsive host: one that cannot be reached
	// over SSH and whose Node is not ready. Nil means 600.
	SilentHostTimeoutSeconds *int32 `json:"silentHostTimeoutSeconds,omitempty"`
}

// silentTimeout returns SilentHostTimeoutSeconds or its default.
func (c Config) silentTimeout() time.Duration {
	if s := c.SilentHostTimeoutSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultSilentTimeout
}

// parseConfig parses the cloudProviderSpec of a spec. It returns an error for an unknown field.
func parseConfig(spec v1alpha1.MachineSpec) (Config, labels.Selector, error) {
	var c Config
	if raw := spec.ProviderSpec.Value.CloudProviderSpec; raw != nil && len(raw.Raw) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); err != nil {
			return c, nil, fmt.Errorf("cloudProviderSpec: %w", err)
		}
	}
	if c.APIVersion != "" && c.APIVersion != ConfigVersion {
		return c, nil, fmt.Errorf("cloudProviderSpec.apiVersion is %q; kubeone reads %s", c.APIVersion,
			ConfigVersion)
	}
	if s := c.SilentHostTimeoutSeconds; s != nil && *s < 0 {
		return c, nil, fmt.Errorf("cloudProviderSpec.silentHostTimeoutSeconds is %d; it must not be negative", *s)
	}
	if c.HostSelector == nil {
		return c, labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(c.HostSelector)
	if err != nil {
		return c, nil, fmt.Errorf("cloudProviderSpec.hostSelector: %w", err)
	}
	return c, selector, nil
}

// Validate implements provider.Validator.
func (p *Provider) Validate(spec v1alpha1.MachineSpec) error {
	_, _, err := parseConfig(spec)
	var others []error
	if _, err := version.ParseSemantic(spec.Versions.Kubelet); err != nil {
		others = append(others, fmt.Errorf("versions.kubelet: %w", err))
	}
	if r := spec.Versions.ContainerRuntime; r != nil && r.Name != containerd {
		others = append(others, fmt.Errorf("versions.containerRuntime.name is %q; this provider installs %s", r.Name,
			containerd))
	}
	value := spec.ProviderSpec.Value
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"operatingSystem", value.OperatingSystem != ""}, {"operatingSystemSpec", value.OperatingSystemSpec != nil},
		{"sshPublicKeys", len(value.SSHPublicKeys) > 0}, {"network", value.Network != nil},
		{"caPublicKey", value.CAPublicKey != ""}, {"overwriteCloudConfig", value.OverwriteCloudConfig != ""},
	} {
		if field.set {
			others = append(others,
				fmt.Errorf("%s: this field does not apply to existing hosts; remove it, and select "+
					"hosts with hostSelector", field.name))
		}
	}
	return errors.Join(append(others, err)...)
}

const containerd = "containerd"
