package cloud

import (
	"encoding/json"
	"strconv"

	"kubeone/internal/addons/resources"
	"kubeone/internal/text/pattern"
)

// controlPlaneNodes selects the control-plane hosts.
func controlPlaneNodes() map[string]any {
	return map[string]any{"node-role.kubernetes.io/control-plane": ""}
}

const (
	awsKeyID     = "AWS_ACCESS_KEY_ID"
	awsSecretKey = "AWS_SECRET_ACCESS_KEY" // #nosec G101 -- a name
)

// newAWS returns the row of AWS. Without keys, the pods use the role of the instance.
//
// Values: https://github.com/kubernetes/cloud-provider-aws/tree/master/charts/aws-cloud-controller-manager
// and https://github.com/kubernetes-sigs/aws-ebs-csi-driver/tree/master/charts/aws-ebs-csi-driver
func newAWS() Provider {
	return Provider{
		Name: "aws", Variables: []Variable{{awsKeyID, true}, {awsSecretKey, true}}, AllOrNone: true,
		objects: func(in Input) []resources.Object {
			out := credentialsOf(in)
			if in.Config != "" {
				out = append(out, secretOf(configSecret, map[string]string{configFile: in.Config}))
			}
			return out
		},
		manager: awsManager,
		storage: func(in Input) Release {
			values := map[string]any{"controller": map[string]any{"k8sTagClusterId": in.ClusterName}}
			if in.Credentials[awsKeyID] != "" {
				values["awsAccessSecret"] = map[string]any{
					"name": CredentialsSecret, "keyId": awsKeyID, "accessKey": awsSecretKey,
				}
			}
			return Release{
				Chart:  repository("https://kubernetes-sigs.github.io/aws-ebs-csi-driver", "aws-ebs-csi-driver", "^2.66.0"),
				Values: values,
			}
		},
	}
}

// awsImageTag returns the newest image of AWS's controller manager for a minor of Kubernetes. The chart has one tag for
// all versions. There is no image for Kubernetes 1.36 yet; one minor older is allowed.
func awsImageTag(kubernetes string) string {
	return "v1." + strconv.FormatUint(uint64(min(minorOf(kubernetes), 35)), 10) + ".0"
}

func awsManager(in Input) Release {
	args := []any{
		"--v=2", "--cloud-provider=aws", "--cluster-name=" + in.ClusterName,
		"--configure-cloud-routes=false", // the network plugin routes between pods
	}
	values := map[string]any{
		"image": map[string]any{
			"repository": imageOf(in.Registry, "registry.k8s.io", "provider-aws/cloud-controller-manager"),
			"tag":        awsImageTag(in.KubernetesVersion),
		},
		"hostNetworking": true, // works before the network plugin, and reaches the instance's metadata
		"nodeSelector":   controlPlaneNodes(),
		"tolerations":    tolerations(),
	}
	if in.Credentials[awsKeyID] != "" {
		values["env"] = []any{
			map[string]any{"name": awsKeyID, "valueFrom": keyOf(awsKeyID)},
			map[string]any{"name": awsSecretKey, "valueFrom": keyOf(awsSecretKey)},
		}
	}
	if in.Config != "" {
		const folder = "/etc/cloud"
		args = append(args, "--cloud-config="+folder+"/"+configFile)
		values["extraVolumes"] = []any{map[string]any{
			"name": configSecret, "secret": map[string]any{"secretName": configSecret},
		}}
		values["extraVolumeMounts"] = []any{map[string]any{
			"name": configSecret, "mountPath": folder, "readOnly": true,
		}}
	}
	values["args"] = args
	return Release{
		Chart:  repository("https://kubernetes.github.io/cloud-provider-aws", "aws-cloud-controller-manager", "~0.0.10"),
		Values: values,
	}
}

// newAzure returns the row of Azure. Both charts read the configuration from the Secret azure-cloud-provider.
//
// Values: https://github.com/kubernetes-sigs/cloud-provider-azure/tree/master/helm/cloud-provider-azure
func newAzure() Provider {
	const repo = "https://raw.githubusercontent.com/kubernetes-sigs/"
	const secret, key = "azure-cloud-provider", "cloud-config"
	return Provider{
		Name: "azure", NeedsConfig: true,
		objects: func(in Input) []resources.Object {
			return []resources.Object{secretOf(secret, map[string]string{key: in.Config})}
		},
		manager: func(in Input) Release {
			manager := map[string]any{
				"allocateNodeCidrs": "false", "configureCloudRoutes": "false", "clusterCIDR": in.PodSubnet,
				// Without a file, the configuration comes from the Secret, and is read again when that changes.
				"cloudConfig": "", "cloudConfigSecretName": secret, "enableDynamicReloading": "true",
			}
			node := map[string]any{}
			if in.Registry.Overwrite != "" {
				manager["imageRepository"] = in.Registry.Overwrite + "/oss/kubernetes"
				node["imageRepository"] = manager["imageRepository"]
			}
			return Release{
				Chart: repository(repo+"cloud-provider-azure/master/helm/repo", "cloud-provider-azure",
					followMinor(1, in.KubernetesVersion)),
				Values: map[string]any{
					"infra":                  map[string]any{"clusterName": in.ClusterName},
					"cloudControllerManager": manager, "cloudNodeManager": node,
				},
			}
		},
		storage: func(Input) Release {
			config := map[string]any{"cloudConfigSecretName": secret, "cloudConfigSecretNamespace": Namespace}
			return Release{
				Chart:  repository(repo+"azuredisk-csi-driver/master/charts", "azuredisk-csi-driver", "^1.31.0"),
				Values: map[string]any{"controller": config, "node": config},
			}
		},
	}
}

// hcloudToken and hcloudNetwork are keys of the Secret of Hetzner.
const (
	hcloudToken   = "HCLOUD_TOKEN" // #nosec G101 -- a name
	hcloudNetwork = "HCLOUD_NETWORK"
)

// newHetzner returns the row of Hetzner Cloud.
//
// Values: https://github.com/hetznercloud/hcloud-cloud-controller-manager/tree/main/chart
// and https://github.com/hetznercloud/csi-driver/tree/main/chart
func newHetzner() Provider {
	const repo = "https://charts.hetzner.cloud"
	return Provider{
		Name: "hetzner", Variables: []Variable{{hcloudToken, false}},
		objects: func(in Input) []resources.Object {
			values := map[string]string{hcloudToken: in.Credentials[hcloudToken]}
			if in.Network != "" {
				values[hcloudNetwork] = in.Network
			}
			return []resources.Object{secretOf(CredentialsSecret, values)}
		},
		manager: func(in Input) Release {
			env := map[string]any{
				hcloudToken: map[string]any{"valueFrom": keyOf(hcloudToken)},
				// The network plugin routes between pods. The chart's own networking would add routes.
				"HCLOUD_NETWORK_ROUTES_ENABLED": map[string]any{"value": "false"},
			}
			if in.Network != "" {
				env[hcloudNetwork] = map[string]any{"valueFrom": keyOf(hcloudNetwork)}
			}
			values := map[string]any{
				"env": env,
				"image": map[string]any{
					"repository": imageOf(in.Registry, "docker.io", "hetznercloud/hcloud-cloud-controller-manager"),
				},
				"nodeSelector": controlPlaneNodes(),
			}
			return Release{Chart: repository(repo, "hcloud-cloud-controller-manager", "^1.37.0"), Values: values}
		},
		storage: func(Input) Release {
			token := map[string]any{"existingSecret": map[string]any{"name": CredentialsSecret, "key": hcloudToken}}
			return Release{
				Chart:  repository(repo, "hcloud-csi", "^2.23.0"),
				Values: map[string]any{"controller": map[string]any{"hcloudToken": token}},
			}
		},
	}
}

// newNutanix returns the row of Nutanix. Its storage driver needs settings that the manifest does not have.
//
// Values: https://github.com/nutanix/helm/tree/master/charts/nutanix-cloud-provider
func newNutanix() Provider {
	const endpoint, port, insecure = "NUTANIX_ENDPOINT", "NUTANIX_PORT", "NUTANIX_INSECURE"
	const user, password = "NUTANIX_USERNAME", "NUTANIX_PASSWORD"
	return Provider{
		Name:      "nutanix",
		Variables: []Variable{{endpoint, false}, {user, false}, {password, false}, {port, true}, {insecure, true}},
		objects: func(in Input) []resources.Object {
			central := map[string]any{"username": in.Credentials[user], "password": in.Credentials[password]}
			text, _ := json.Marshal([]any{map[string]any{ // strings can always be encoded
				"type": "basic_auth", "data": map[string]any{"prismCentral": central, "prismElements": nil},
			}})
			return []resources.Object{secretOf(CredentialsSecret, map[string]string{"credentials": string(text)})}
		},
		manager: func(in Input) Release {
			number, err := strconv.Atoi(in.Credentials[port])
			if err != nil {
				number = 9440
			}
			return Release{
				Chart: repository("https://nutanix.github.io/helm/", "nutanix-cloud-provider", ">=0.4.0 <1.0.0"),
				Values: map[string]any{
					"createSecret": false, "secretName": CredentialsSecret,
					"prismCentralEndPoint": in.Credentials[endpoint], "prismCentralPort": number,
					"prismCentralInsecure": in.Credentials[insecure] == "true",
					"image": map[string]any{
						"repository": imageOf(in.Registry, "ghcr.io", "nutanix-cloud-native/cloud-provider-nutanix/controller"),
					},
				},
			}
		},
	}
}

// newOpenstack returns the row of OpenStack. The configuration contains the credentials.
//
// Values: https://github.com/kubernetes/cloud-provider-openstack/tree/master/charts
func newOpenstack() Provider {
	const repo = "https://kubernetes.github.io/cloud-provider-openstack"
	return Provider{
		Name: "openstack", NeedsConfig: true,
		objects: func(in Input) []resources.Object {
			return []resources.Object{secretOf(configSecret, map[string]string{configFile: in.Config})}
		},
		manager: func(in Input) Release {
			return Release{
				Chart: repository(repo, "openstack-cloud-controller-manager", followMinor(2, in.KubernetesVersion)),
				Values: map[string]any{
					"cluster": map[string]any{"name": in.ClusterName},
					"secret":  map[string]any{"enabled": true, "create": false, "name": configSecret},
					"image": map[string]any{
						"repository": imageOf(in.Registry, "registry.k8s.io", "provider-os/openstack-cloud-controller-manager"),
					},
					// The network plugin routes between pods.
					"enabledControllers": []any{"cloud-node", "cloud-node-lifecycle", "service"},
					"nodeSelector":       controlPlaneNodes(),
					"tolerations":        tolerations(),
					"dnsPolicy":          "Default", // cluster DNS waits for this pod
				},
			}
		},
		storage: func(in Input) Release {
			return Release{
				Chart: repository(repo, "openstack-cinder-csi", followMinor(2, in.KubernetesVersion)),
				Values: map[string]any{
					"clusterID": in.ClusterName,
					"secret": map[string]any{
						"enabled": true, "create": false, "name": configSecret, "filename": configFile,
					},
				},
			}
		},
	}
}

// passwordLine matches a password in the configuration of vSphere.
var passwordLine = pattern.Lazy(`(?im)^\s*"?password"?\s*[:=]`)

// vsphereStorage returns the namespace of vSphere's storage driver and the Secret with its configuration, under the
// names that the manifest of the driver's project has. Its project publishes no chart.
//
// Names: https://github.com/kubernetes-sigs/vsphere-csi-driver/tree/master/manifests/vanilla
func vsphereStorage(config string) []resources.Object {
	const namespace = "vmware-system-csi"
	secret := secretOf("vsphere-config-secret", map[string]string{"csi-vsphere.conf": config})
	secret["metadata"].(map[string]any)["namespace"] = namespace
	return []resources.Object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}},
		secret,
	}
}

// newVsphere returns the row of vSphere.
//
// Values: https://github.com/kubernetes/cloud-provider-vsphere/tree/master/charts/vsphere-cpi
func newVsphere() Provider {
	const server, user, password = "VSPHERE_SERVER", "VSPHERE_USER", "VSPHERE_PASSWORD"
	return Provider{
		Name: "vsphere", NeedsConfig: true, HasStorageConfig: true,
		Variables: []Variable{{server, false}, {user, false}, {password, false}},
		CheckConfig: func(text string) string {
			if passwordLine().MatchString(text) {
				return "contains a password, but the chart reads it from a ConfigMap"
			}
			return ""
		},
		objects: func(in Input) []resources.Object {
			host := in.Credentials[server]
			out := []resources.Object{
				secretOf("vsphere-ccm-credentials", map[string]string{
					host + ".username": in.Credentials[user], host + ".password": in.Credentials[password],
				}),
				{
					"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"vsphere.conf": in.Config},
					"metadata": map[string]any{"name": configSecret, "namespace": Namespace},
				},
			}
			if in.StorageConfig != "" && !in.NoStorage {
				out = append(out, vsphereStorage(in.StorageConfig)...)
			}
			return out
		},
		manager: func(in Input) Release {
			daemonSet := map[string]any{
				"nodeSelector": controlPlaneNodes(), "tolerations": tolerations(), "dnsPolicy": "Default",
			}
			if in.Registry.Overwrite != "" {
				daemonSet["image"] = in.Registry.Overwrite + "/cloud-pv-vsphere/cloud-provider-vsphere"
			}
			return Release{
				Chart: repository("https://kubernetes.github.io/cloud-provider-vsphere", "vsphere-cpi",
					followMinor(1, in.KubernetesVersion)),
				Values: map[string]any{"config": map[string]any{"enabled": false}, "daemonset": daemonSet},
			}
		},
	}
}
