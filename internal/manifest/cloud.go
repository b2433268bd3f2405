package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/addons"
	"kubeone/internal/addons/cloud"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/pattern"
)

// configKey and storageKey are fields of cloudProvider with a configuration file, and keys of a credentials file that
// precede them.
const (
	configKey  = "cloudConfig"
	storageKey = "csiConfig"
)

// externalCloud returns the provider whose controller manager initializes the Nodes; "" if there is none.
func (l *loader) externalCloud() string {
	if names := l.cluster.CloudProvider.Providers(); l.cluster.CloudProvider.External && len(names) == 1 {
		return names[0]
	}
	return ""
}

// usesCloudKey reports whether the cloud needs the value of this key in a credentials file.
func (l *loader) usesCloudKey(key string) bool {
	provider, found := cloud.Find(l.externalCloud())
	spec := l.cluster.CloudProvider
	if found && slices.Contains(referencedCredentials(spec.CloudConfig+spec.CSIConfig), key) {
		return true
	}
	if !found || key == configKey || key == storageKey && provider.HasStorageConfig {
		return found
	}
	return slices.ContainsFunc(provider.Variables, func(v cloud.Variable) bool {
		return slices.Contains(variableNames(v.Name), key)
	})
}

// variableNames returns the names under which a credential is looked up: the first one is for the controller manager
// alone.
func variableNames(name string) []string { return []string{"CCM_" + name, name} }

// readCloud adds the Secrets and Helm releases of an external cloud to the operator's addons and releases.
func (l *loader) readCloud() {
	name := l.externalCloud()
	if name == "" || !l.ReadAddons {
		return
	}
	provider, found := cloud.Find(name)
	if !found {
		l.warnOfMissingManager(name)
		return
	}
	in := l.cloudInput(provider)
	if l.hasErrors() {
		return
	}
	isReplaced := slices.ContainsFunc(l.addons.Custom, func(a addons.CustomAddon) bool {
		return a.Name == desired.CloudAddon
	})
	if objects := provider.Objects(in); len(objects) > 0 && !isReplaced {
		l.addons.Custom = slices.Insert(l.addons.Custom, 0, addons.CustomAddon{Name: desired.CloudAddon, Objects: objects})
	}
	l.addCloudReleases(provider.Releases(in))
}

// addCloudReleases puts the releases of a cloud before those in the manifest. A release in the manifest that has the
// same namespace and name replaces one.
func (l *loader) addCloudReleases(releases []cloud.Release) {
	var added []addons.HelmRelease
	for _, r := range releases {
		release := addons.HelmRelease{
			Name: r.Chart.Name, Namespace: cloud.Namespace, Chart: r.Chart, Values: r.Values, Timeout: defaultHelmTimeout,
			CloudManager: r.Manager,
		}
		i := slices.IndexFunc(l.addons.Releases, func(own addons.HelmRelease) bool { return own.Key() == release.Key() })
		if i < 0 {
			added = append(added, release)
		} else {
			l.addons.Releases[i].CloudManager = r.Manager
		}
	}
	l.addons.Releases = append(added, l.addons.Releases...)
}

// cloudInput collects what the cloud's values and Secrets are made from. It reports what is missing.
func (l *loader) cloudInput(provider cloud.Provider) cloud.Input {
	c := l.cluster
	in := cloud.Input{
		ClusterName: c.Name, KubernetesVersion: c.Versions.Kubernetes, PodSubnet: c.ClusterNetwork.PodSubnet,
		Registry: newRegistry(c.RegistryConfiguration), Config: l.cloudConfig(provider), Credentials: map[string]string{},
		NoStorage: c.CloudProvider.DisableBundledCSIDrivers,
	}
	if provider.HasStorageConfig && !in.NoStorage {
		in.StorageConfig = l.filledConfig(storageKey, c.CloudProvider.CSIConfig)
	}
	if h := c.CloudProvider.Hetzner; h != nil {
		in.Network = h.NetworkID
	}
	for _, v := range provider.Variables {
		if value := l.cloudCredential(v.Name); value != "" {
			in.Credentials[v.Name] = value
		}
	}
	var missing []string
	for _, v := range provider.Variables {
		isNeeded := !v.Optional || provider.AllOrNone && len(in.Credentials) > 0
		if isNeeded && in.Credentials[v.Name] == "" {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) > 0 {
		l.reportPath("cloudProvider."+provider.Name, Error, "set them in the environment, or in the file of --credentials",
			"needs the credentials "+strings.Join(missing, ", "))
	}
	return in
}

// cloudCredential returns a credential from the credentials file, else from the environment.
func (l *loader) cloudCredential(name string) string {
	for _, from := range []func(string) string{func(key string) string { return l.cloudKeys[key] }, l.Getenv} {
		for _, key := range variableNames(name) {
			if value := from(key); value != "" {
				return value
			}
		}
	}
	return ""
}

// filledConfig returns a configuration file with its credentials: from the credentials file, else the text in the
// manifest.
func (l *loader) filledConfig(key, text string) string {
	return l.fillConfig("cloudProvider."+key, cmp.Or(l.cloudKeys[key], text))
}

// cloudConfig returns the configuration file of the cloud.
func (l *loader) cloudConfig(provider cloud.Provider) string {
	const path = "cloudProvider." + configKey
	text := l.filledConfig(configKey, l.cluster.CloudProvider.CloudConfig)
	switch {
	case text == "" && provider.NeedsConfig:
		l.reportPath(path, Error, "set it here or in the file of --credentials",
			fmt.Sprintf("is required for %s with external", provider.Name))
	case text != "" && provider.CheckConfig != nil:
		if problem := provider.CheckConfig(text); problem != "" {
			l.reportPath(path, Error, "let it name the Secret kube-system/vsphere-ccm-credentials, which kubeone creates",
				problem)
		}
	}
	return text
}

// credentialReference is the only template that a cloud's configuration can contain.
var credentialReference = pattern.Lazy(`\{\{-?\s*\.Credentials\.([A-Za-z][A-Za-z0-9_]*)\s*-?\}\}`)

// referencedCredentials returns the names of the credentials that a configuration refers to.
func referencedCredentials(text string) []string {
	var out []string
	for _, match := range credentialReference().FindAllStringSubmatch(text, -1) {
		out = append(out, match[1])
	}
	return out
}

// fillConfig replaces references to credentials in a cloud's configuration, as KubeOne does.
func (l *loader) fillConfig(path, text string) string {
	var missing []string
	filled := credentialReference().ReplaceAllStringFunc(text, func(reference string) string {
		name := referencedCredentials(reference)[0]
		value := l.cloudCredential(name)
		if value == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		l.reportPath(path, Error, "set them in the environment, or in the file of --credentials",
			"refers to the missing credentials "+strings.Join(missing, ", "))
	}
	if strings.Contains(credentialReference().ReplaceAllString(text, ""), "{{") {
		l.reportPath(path, Error, "write the value itself", "contains a template other than {{ .Credentials.NAME }}")
	}
	return filled
}

// warnOfMissingManager warns if nothing in the manifest can be the controller manager of a cloud that has no chart.
func (l *loader) warnOfMissingManager(name string) {
	if len(l.addons.Custom)+len(l.addons.Releases) == 0 {
		l.reportPath("cloudProvider.external", Warning, "apply it from a subfolder of addons.path, or with helmReleases",
			fmt.Sprintf("kubeone has no controller manager for %s, and Nodes accept no pods without one", name))
	}
}
