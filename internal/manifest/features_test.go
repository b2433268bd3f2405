package manifest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

const featureHead = `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: demo
versions: {kubernetes: 1.36.3}
cloudProvider: {none: {}}
clusterNetwork: {cni: {flannel: {}}}
controlPlane: {hosts: [{publicAddress: 10.0.0.1}]}
`

const webhookFeature = `features:
  webhookAuditLog:
    enable: true
    config:
      policy: "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}"
      configFilePath: webhook.conf
      mode: batch
      initialBackOff: 5s
      batch: {bufferSize: 9, maxSize: 8, maxWait: 7s, throttle: {disable: true, burst: 6, QPS: 2.5}}
      truncate: {enable: true, maxBatchSize: 5, maxEventSize: 4}
`

func loadFeatures(t *testing.T, text string, files map[string]string) manifest.Loaded {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), []byte(content))
	}
	loaded, err := manifest.Load(context.Background(), manifest.Options{
		ManifestPath: filepath.Join(dir, "kubeone.yaml"), ManifestReader: strings.NewReader(text),
	})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// shortened removes digests from paths in the flags of a feature.
func shortened(e desired.Extra) map[string]string {
	out := map[string]string{}
	for name, value := range e.Flags {
		for _, f := range e.Files {
			value = strings.ReplaceAll(value, f.Digest[:16], "DIGEST")
		}
		out[name] = strings.TrimPrefix(value, desired.ComponentDir(desired.APIServer)+"/")
	}
	return out
}

// featureCase is the features of a manifest and their effect on the API server.
type featureCase struct {
	text        string
	files       map[string]string
	flags       map[string]string
	directories []string
	plugins     []string
}

func featureCases() map[string]featureCase {
	return map[string]featureCase{
		"nothing that is switched off": {text: "features: {staticAuditLog: {enable: false}, alwaysPullImages: {}}\n"},
		"an audit log": {
			text: "features:\n  staticAuditLog:\n    enable: true\n" +
				"    config: {policyFilePath: p.yaml, logMaxAge: 7}\n",
			files: map[string]string{
				"p.yaml": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n",
			},
			flags: map[string]string{
				"audit-policy-file": "audit-policy-DIGEST.yaml", "audit-log-path": "/var/log/kubernetes/audit.log",
				"audit-log-maxage": "7", "audit-log-maxbackup": "3", "audit-log-maxsize": "100",
			},
			directories: []string{"/var/log/kubernetes"},
		},
		"a webhook": {
			text:  webhookFeature,
			files: map[string]string{"webhook.conf": "clusters: [{cluster: {server: https://a}}]\n"},
			flags: map[string]string{
				"audit-policy-file": "audit-policy-DIGEST.yaml", "audit-webhook-mode": "batch",
				"audit-webhook-config-file":     "audit-webhook-DIGEST.kubeconfig",
				"audit-webhook-initial-backoff": "5s", "audit-webhook-batch-buffer-size": "9",
				"audit-webhook-batch-max-size": "8", "audit-webhook-batch-max-wait": "7s",
				"audit-webhook-batch-throttle-enable": "false", "audit-webhook-batch-throttle-burst": "6",
				"audit-webhook-batch-throttle-qps": "2.5", "audit-webhook-truncate-enabled": "true",
				"audit-webhook-truncate-max-batch-size": "5", "audit-webhook-truncate-max-event-size": "4",
			},
		},
		"an OpenID provider with the defaults": {
			text: "features: {openidConnect: {enable: true, config: {issuerUrl: 'https://id.example.com'}}}\n",
			flags: map[string]string{
				"oidc-issuer-url": "https://id.example.com", "oidc-client-id": "kubernetes",
				"oidc-username-claim":  "sub",
				"oidc-username-prefix": "oidc:", "oidc-groups-claim": "groups", "oidc-groups-prefix": "oidc:",
				"oidc-signing-algs": "RS256",
			},
		},
		"admission plugins": {
			text:  "features: {alwaysPullImages: {enable: true}}\n",
			flags: map[string]string{}, plugins: []string{"AlwaysPullImages"},
		},
	}
}

func TestFeaturesBecomeFlagsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for name, c := range featureCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var flags map[string]string
			var directories, plugins []string
			for _, e := range loadFeatures(t, featureHead+c.text, c.files).Cluster.Extras {
				flags, directories = shortened(e), e.Directories
				for _, p := range e.Plugins {
					plugins = append(plugins, p.Name)
				}
			}
			if diff := cmp.Diff(c.flags, flags); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.directories, directories); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.plugins, plugins); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The credentials for a server of audit events appear in no output. The stored manifest describes the same cluster
// without them.
func TestTheKubeconfigOfAWebhookIsASecret(t *testing.T) {
	t.Parallel()
	const kubeconfig = "clusters: [{cluster: {server: https://a}}]\nusers: [{user: {token: geheim}}]\n"
	loaded := loadFeatures(t, featureHead+webhookFeature, map[string]string{"webhook.conf": kubeconfig})
	cluster, err := json.Marshal(loaded.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"the manifest": string(loaded.ManifestText), "the cluster": string(cluster),
		"what is printed": fmt.Sprintf("%v %#v", loaded.Secrets, loaded.Secrets),
	} {
		if strings.Contains(text, "geheim") {
			t.Errorf("%s has it: %s", what, text)
		}
	}
	if len(loaded.Secrets.Files) != 1 {
		t.Errorf("%d files are to be brought to hosts", len(loaded.Secrets.Files))
	}
	for name, content := range loaded.Secrets.Files {
		if string(content) != kubeconfig || !strings.HasPrefix(name, "audit-webhook-") {
			t.Errorf("%s is %q", name, content)
		}
	}
	again := loadFeatures(t, string(loaded.ManifestText), nil)
	if diff := cmp.Diff(loaded.Cluster, again.Cluster); diff != "" {
		t.Errorf("the kept manifest makes another cluster: %s", diff)
	}
	other := loadFeatures(t, featureHead+webhookFeature, map[string]string{"webhook.conf": kubeconfig + "x: y\n"})
	if other.Cluster.Digest == loaded.Cluster.Digest {
		t.Error("other credentials are the same cluster")
	}
}

func TestAnAuthorityBesideTheManifestIsBroughtToHosts(t *testing.T) {
	t.Parallel()
	const provider = "features:\n  openidConnect:\n    enable: true\n    config: {issuerUrl: 'https://id.example.com', "
	onHosts := loadFeatures(t, featureHead+provider+"caFile: /etc/kubernetes/pki/oidc.crt}\n", nil).Cluster.Extras[0]
	if len(onHosts.Files) != 0 || onHosts.Flags["oidc-ca-file"] != "/etc/kubernetes/pki/oidc.crt" {
		t.Errorf("%+v", onHosts)
	}
	_, err := manifest.Load(context.Background(), manifest.Options{
		ManifestPath:   filepath.Join(t.TempDir(), "kubeone.yaml"),
		ManifestReader: strings.NewReader(featureHead + provider + "caFile: oidc.crt}\n"),
	})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestFilesOfFeaturesAreBounded(t *testing.T) {
	t.Parallel()
	for what, content := range map[string]string{
		"larger than": strings.Repeat("#", 300<<10), "not UTF-8 text": "\xff\xfe", "is empty": " \n",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "p.yaml"), []byte(content))
		_, err := manifest.Load(context.Background(), manifest.Options{
			ManifestPath: filepath.Join(dir, "kubeone.yaml"),
			ManifestReader: strings.NewReader(featureHead +
				"features: {staticAuditLog: {enable: true, config: {policyFilePath: p.yaml}}}\n"),
		})
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "is required") {
			t.Errorf("%q: %v", what, err)
		}
	}
}

// Unsupported security settings stop a run; other unsupported fields are only reported.
func TestSecurityThatIsNotCarriedOutIsToldApart(t *testing.T) {
	t.Parallel()
	for feature, want := range map[string][]string{
		"podSecurityPolicy: {enable: false}": nil,
		"encryptionProviders: {enable: true, customEncryptionConfiguration: x}": {
			"features.encryptionProviders.customEncryptionConfiguration",
		},
		"nodeLocalDNS: {deploy: true}": nil,
	} {
		got := loadFeatures(t, demo+"features: {"+feature+"}\n", nil).Cluster.SecurityNotCarriedOut
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", feature, got, want)
		}
	}
}
