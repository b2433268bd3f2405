package v1beta2

import (
	"reflect"

	"kubeone/internal/model/distro"
)

// limits returns Validate's rules for single fields, by "Type.Field". A test in package manifest checks that Validate
// has the same limits.
func limits() map[string]schema {
	least := func(n int) schema { return schema{"minimum": n} }
	version := versionForm()
	period := schema{"type": []string{"string", "null"}, "pattern": `^` + span + `$|^$`}
	return map[string]schema{
		"KubeOneCluster.APIVersion":                 {"const": APIVersion},
		"KubeOneCluster.Kind":                       {"const": Kind},
		"VersionConfig.Kubernetes":                  {"type": []string{"string"}, "pattern": version},
		"HostVersions.Kubernetes":                   {"pattern": version + `|^\s*$`},
		"APIEndpoint.Port":                          between(0, lastPort),
		"SSHConfig.SSHPort":                         between(0, lastPort),
		"SSHConfig.BastionPort":                     between(0, lastPort),
		"HostConfig.OperatingSystem":                choice(anyOf(distro.ManifestNames())...),
		"Taint.Key":                                 {"minLength": 1},
		"Taint.Effect":                              {"enum": []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}},
		"KubeletConfig.SystemReserved":              keys(reservedResources()),
		"KubeletConfig.KubeReserved":                keys(reservedResources()),
		"KubeletConfig.EvictionHard":                keys(evictionSignals()),
		"KubeletConfig.MaxPods":                     least(1),
		"KubeletConfig.PodPidsLimit":                or(-1, 1),
		"KubeletConfig.ImageGCHighThresholdPercent": between(1, 100), // the low one is less
		"KubeletConfig.ImageGCLowThresholdPercent":  between(0, 99),
		"LoggingConfig.ContainerLogMaxFiles":        or(0, 2),
		"ClusterNetworkConfig.IPFamily":             choice(ipFamilyIPv4, ipFamilyDualStack),
		"ClusterNetworkConfig.NodeCIDRMaskSizeIPv4": between(1, narrowestNodeSubnet),
		"CanalSpec.MTU":                             least(0),
		"CiliumSpec.KubeProxyReplacement":           choice("strict", "disabled", "true", "false", true, false),
		"IPVSConfig.Scheduler":                      choice(anyOf(ipvsSchedulers())...),
		"Conntrack.MaxPerCore":                      least(0),
		"Conntrack.Min":                             least(0),
		"EtcdConfig.QuotaBackendBytes":              or(0, smallestQuota),
		"EtcdConfig.AutoCompactionMode":             choice("periodic", "revision"),
		"CoreDNS.Replicas":                          least(1),
		"DynamicWorkerConfig.Name":                  {"minLength": 1},
		"DynamicWorkerConfig.Replicas":              least(0),
		"NodeSet.Name":                              {"minLength": 1},
		"HelmRelease.Namespace":                     {"minLength": 1},
		"UpgradeConfig.MaxParallel":                 least(0),
		"UpgradeConfig.MaxUnavailable": {
			"type": []string{"string", "integer", "null"}, "minimum": 1, "maximum": 99999,
			"pattern": share.String() + "|^$",
		},
		"DrainConfig.Timeout":   period,
		"DrainConfig.OnTimeout": choice(DrainStop, DrainSkip, DrainForce),
		"BackupConfig.Keep":     least(1),
		"Hook.Before":           choice(anyOf(hookActivities())...),
		"Hook.After":            choice(anyOf(hookActivities())...),
		"Hook.RunOn":            choice(HookOnOperator, HookOnHost),
		"Hook.Timeout":          period,

		"CertificateAuthorityConfig.CertificateValidityPeriod":   period,
		"CertificateAuthorityConfig.CACertificateValidityPeriod": period,

		"KubeOneCluster.Hardening": choice(HardeningBaseline, HardeningNone),
		"KubeOneCluster.Firewall":  choice(FirewallManage, FirewallDisable, FirewallIgnore),
	}
}

// alternatives returns the types where at most one of some fields may be set. cloudProvider needs one, but Terraform's
// output may name it.
func alternatives() map[reflect.Type][]string {
	var providers []string
	for f := range reflect.TypeFor[CloudProviderSpec]().Fields() {
		if f.Type.Kind() == reflect.Pointer {
			providers = append(providers, JSONName(f))
		}
	}
	return map[reflect.Type][]string{
		reflect.TypeFor[CloudProviderSpec](): providers,
		reflect.TypeFor[CNI]():               CNINames(),
		reflect.TypeFor[KubeProxyConfig]():   {"iptables", "ipvs", "nftables"},
	}
}
