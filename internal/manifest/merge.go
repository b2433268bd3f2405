package manifest

import (
	"fmt"
	"maps"
	"slices"

	"kubeone/api/kubeone/v1beta2"
)

// merge brings Terraform's output into the cluster:
//
//   - the endpoint and its alternative names replace the manifest's;
//   - the cluster's name and the cloud provider are taken where the manifest has none;
//   - the control-plane hosts replace the manifest's, but a host in both keeps the manifest's settings;
//   - static workers are added, but a host in both is one host, with the manifest's settings;
//   - worker machines are added; of one in both, the cloud's specification is filled up;
//   - the proxy is filled up.
func (l *loader) merge(out *terraformOutput) {
	l.mergeAPI(out)
	l.mergeName(out)
	l.mergeProvider(out)
	l.mergeControlPlane(out)
	l.mergeStatic(out)
	l.mergeWorkers(out)
	l.mergeProxy(out)
}

// at is the position of a value in the output, by its path below the outputs.
func (out *terraformOutput) at(path string) position {
	if out.above != "" {
		path = out.above + "." + path
	}
	where := out.where.find(path)
	where.File, where.Path = out.file, path
	return where
}

func (l *loader) mergeAPI(out *terraformOutput) {
	if out.api.Endpoint != "" {
		l.cluster.APIEndpoint.Host = out.api.Endpoint
		l.where["apiEndpoint.host"] = out.at("kubeone_api.value.endpoint")
	}
	if names := out.api.AlternativeNames; len(names) > 0 {
		l.cluster.APIEndpoint.AlternativeNames = names
		l.where.cut("apiEndpoint.alternativeNames")
		for i := range names {
			l.where[v1beta2.Item("apiEndpoint.alternativeNames",
				i)] = out.at(v1beta2.Item("kubeone_api.value.apiserver_alternative_names", i))
		}
	}
}

// mergeName refuses the output of another cluster: its hosts would be made members of this one.
func (l *loader) mergeName(out *terraformOutput) {
	const path = controlPlaneOutput + ".cluster_name"
	theirs := out.hosts.ControlPlane.ClusterName
	switch {
	case theirs == "" || theirs == l.cluster.Name:
	case l.cluster.Name == "":
		l.cluster.Name = theirs
		l.where["name"] = out.at(path)
	default:
		at := out.at(path)
		l.report("name", Error, fmt.Sprintf("use the output that belongs to this manifest, or correct the name here "+
			"or on line %d of %s", at.Line, at.File),
			fmt.Sprintf("Terraform's output is for cluster %q, the manifest says %q", theirs, l.cluster.Name))
	}
}

func (l *loader) mergeProvider(out *terraformOutput) {
	const path = controlPlaneOutput + ".cloud_provider"
	cp, p := out.hosts.ControlPlane, &l.cluster.CloudProvider
	ours := p.Providers()
	switch {
	case cp.CloudProvider == "" || slices.Contains(ours, cp.CloudProvider):
	case len(ours) > 0:
		l.reportAt(out.at(path), Warning, "",
			fmt.Sprintf("%q is not used: the manifest says %q", cp.CloudProvider, ours[0]))
	case !p.Choose(cp.CloudProvider):
		l.reportAt(out.at(path), Error, "", fmt.Sprintf("%q is not a cloud provider", cp.CloudProvider))
		l.explain = append(l.explain, "cloudProvider")
	default:
		l.where["cloudProvider"] = out.at(path)
	}
	if p.Hetzner != nil && p.Hetzner.NetworkID == "" {
		p.Hetzner.NetworkID = cp.NetworkID
	}
	if v := p.VMwareCloudDirector; v != nil {
		fillString(&v.VApp, cp.VAppName)
		fillString(&v.StorageProfile, cp.StorageProfile)
	}
}

func (l *loader) mergeProxy(out *terraformOutput) {
	for _, field := range []struct {
		name   string
		ours   *string
		theirs string
	}{
		{"http", &l.cluster.Proxy.HTTP, out.proxy.HTTP},
		{"https", &l.cluster.Proxy.HTTPS, out.proxy.HTTPS},
		{"noProxy", &l.cluster.Proxy.NoProxy, out.proxy.NoProxy},
	} {
		if *field.ours == "" && field.theirs != "" {
			*field.ours = field.theirs
			l.where["proxy."+field.name] = out.at("proxy.value." + field.name)
		}
	}
}

// mergeWorkers adds worker machines in the order of their names.
func (l *loader) mergeWorkers(out *terraformOutput) {
	for _, name := range slices.Sorted(maps.Keys(out.workers)) {
		theirs := out.workers[name]
		i := slices.IndexFunc(l.cluster.DynamicWorkers, func(w v1beta2.DynamicWorkerConfig) bool {
			return w.Name == name
		})
		if i < 0 {
			theirs.Name = name
			l.where[v1beta2.Item("dynamicWorkers",
				len(l.cluster.DynamicWorkers))] = out.at(v1beta2.Child("kubeone_workers.value", name))
			l.cluster.DynamicWorkers = append(l.cluster.DynamicWorkers, theirs)
			continue
		}
		spec := &l.cluster.DynamicWorkers[i].ProviderSpec.CloudProviderSpec
		if *spec == nil {
			*spec = v1beta2.Raw{}
		}
		for key, value := range theirs.ProviderSpec.CloudProviderSpec {
			if _, set := (*spec)[key]; !set && !isEmpty(value) {
				(*spec)[key] = value
			}
		}
	}
}

// isEmpty reports whether Terraform has nothing to say about a value.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func fillString(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// reportAt adds a problem about a place in Terraform's output.
func (l *loader) reportAt(at position, severity Severity, hint, message string) {
	l.found = append(l.found, Problem{
		File: at.File, Line: at.Line, Column: at.Column, Path: at.Path, Message: message, Hint: hint,
		Severity: severity,
	})
}
