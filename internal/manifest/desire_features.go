package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
	"maps"
	"path"
	"sigs.k8s.io/yaml"
	"slices"
	"strconv"
	"strings"
)

// addExtras adds the flags, files and plugins that enabled features need in the API server. It reports API server flags
// in the manifest that contradict them.
func (l *loader) addExtras() {
	f := l.cluster.Features
	l.addAuditLog(f.StaticAuditLog)
	l.addAuditWebhook(f.WebhookAuditLog)
	l.addAdmissionPlugin("alwaysPullImages", "AlwaysPullImages", f.AlwaysPullImages, "")
	if p := f.PodNodeSelector; p != nil {
		l.addAdmissionPlugin("podNodeSelector", desired.NodeSelectorPlugin, &v1beta2.Switch{Enable: p.Enable},
			p.Config.Configuration)
	}
	if e := f.EventRateLimit; e != nil {
		l.addAdmissionPlugin("eventRateLimit", "EventRateLimit", &v1beta2.Switch{Enable: e.Enable}, e.Config.Configuration)
	}
	l.addOpenID(f.OpenIDConnect)
	l.addAuthentication(f.AuthenticationConfiguration)
	if c := l.cluster.ControlPlaneComponents; c != nil && c.APIServer != nil {
		for _, e := range l.extras {
			l.reportContradictions(e, c.APIServer.Flags)
		}
	}
}

func (l *loader) addExtra(e desired.Extra) {
	e.Component = desired.APIServer
	l.extras = append(l.extras, e)
}

func (l *loader) addAuditLog(a *v1beta2.StaticAuditLog) {
	if a == nil || !a.Enable {
		return
	}
	policy := newAuditPolicyFile(a.Config.Policy)
	l.addExtra(desired.Extra{
		Name: "staticAuditLog", Files: []desired.ComponentFile{policy},
		Directories: []string{path.Dir(a.Config.LogPath)},
		Flags: map[string]string{
			"audit-policy-file":   policy.Path,
			"audit-log-path":      a.Config.LogPath,
			"audit-log-maxage":    strconv.Itoa(a.Config.LogMaxAge),
			"audit-log-maxbackup": strconv.Itoa(a.Config.LogMaxBackup),
			"audit-log-maxsize":   strconv.Itoa(a.Config.LogMaxSize),
		},
	})
}

func newAuditPolicyFile(text string) desired.ComponentFile {
	return desired.NewComponentFile(desired.APIServer, "audit-policy.yaml", text)
}

func (l *loader) addAuditWebhook(w *v1beta2.WebhookAuditLog) {
	if w == nil || !w.Enable {
		return
	}
	c := w.Config
	policy, kubeconfig := newAuditPolicyFile(c.Policy), newWebhookKubeconfig(c)
	if kubeconfig.Content != "" {
		public, content := kubeconfig.Secretly()
		kubeconfig, l.files = public, map[string][]byte{public.Base(): []byte(content)}
	}
	flags := map[string]string{
		"audit-policy-file": policy.Path, "audit-webhook-config-file": kubeconfig.Path,
	}
	const name = "audit-webhook-"
	for flag, value := range map[string]string{
		"initial-backoff": c.InitialBackOff, "mode": c.Mode, "version": c.Version, "batch-max-wait": c.Batch.MaxWait,
		"batch-throttle-qps": c.Batch.Throttle.QPS,
	} {
		if value != "" {
			flags[name+flag] = value
		}
	}
	for flag, value := range map[string]int{
		"batch-buffer-size": c.Batch.BufferSize, "batch-max-size": c.Batch.MaxSize,
		"batch-throttle-burst":    c.Batch.Throttle.Burst,
		"truncate-max-batch-size": c.Truncate.MaxBatchSize, "truncate-max-event-size": c.Truncate.MaxEventSize,
	} {
		if value != 0 {
			flags[name+flag] = strconv.Itoa(value)
		}
	}
	if c.Batch.Throttle.Disable {
		flags[name+"batch-throttle-enable"] = "false"
	}
	if c.Truncate.Enable {
		flags[name+"truncate-enabled"] = "true"
	}
	l.addExtra(desired.Extra{Name: "webhookAuditLog", Files: []desired.ComponentFile{policy, kubeconfig}, Flags: flags})
}

// addAdmissionPlugin enables an admission plugin, with its configuration unless that is "".
func (l *loader) addAdmissionPlugin(name, plugin string, s *v1beta2.Switch, configuration string) {
	if s == nil || !s.Enable {
		return
	}
	p := desired.AdmissionPlugin{Name: plugin}
	if configuration != "" {
		f := desired.NewComponentFile(desired.APIServer, strings.ToLower(plugin)+".yaml", configuration)
		p.Config = &f
	}
	l.addExtra(desired.Extra{Name: name, Plugins: []desired.AdmissionPlugin{p}})
}

func (l *loader) addOpenID(o *v1beta2.OpenIDConnect) {
	if o == nil || !o.Enable {
		return
	}
	c := o.Config
	e := desired.Extra{Name: "openidConnect", Flags: map[string]string{}}
	for flag, value := range map[string]string{
		"issuer-url": c.IssuerURL, "client-id": c.ClientID, "username-claim": c.UsernameClaim,
		"username-prefix": c.UsernamePrefix, "groups-claim": c.GroupsClaim, "groups-prefix": c.GroupsPrefix,
		"required-claim": c.RequiredClaim, "signing-algs": c.SigningAlgs, "ca-file": c.CAFile,
	} {
		if value != "" {
			e.Flags["oidc-"+flag] = value
		}
	}
	if c.CA != "" {
		ca := desired.NewComponentFile(desired.APIServer, "oidc-ca.crt", c.CA)
		e.Files, e.Flags["oidc-ca-file"] = []desired.ComponentFile{ca}, ca.Path
	}
	l.addExtra(e)
}

func (l *loader) addAuthentication(a *v1beta2.AuthenticationConfiguration) {
	if a == nil || !a.Enable {
		return
	}
	f := desired.NewComponentFile(desired.APIServer, "authentication.yaml", a.Config.Configuration)
	l.addExtra(desired.Extra{
		Name: "authenticationConfiguration", Files: []desired.ComponentFile{f},
		Flags: map[string]string{"authentication-config": f.Path},
	})
}

// reportContradictions reports API server flags in the manifest that contradict a feature.
func (l *loader) reportContradictions(e desired.Extra, flags map[string]string) {
	report := func(flag, message string) {
		l.reportPath(v1beta2.Child("controlPlaneComponents.apiServer.flags", flag), Error,
			"remove the flag, or disable features."+e.Name, message)
	}
	for _, flag := range slices.Sorted(maps.Keys(e.Flags)) {
		if value, set := flags[flag]; set && value != e.Flags[flag] {
			report(flag, "features."+e.Name+" sets a different value")
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if excludesFlag(e.Name, flag) {
			report(flag, "cannot be combined with features."+e.Name)
		}
	}
	for _, p := range e.Plugins {
		if enabled, set := flags["enable-admission-plugins"]; set && !slices.Contains(commaList(enabled), p.Name) {
			report("enable-admission-plugins", fmt.Sprintf("must include %[2]s, which features.%[1]s needs", e.Name,
				p.Name))
		}
		if slices.Contains(commaList(flags["disable-admission-plugins"]), p.Name) {
			report("disable-admission-plugins", fmt.Sprintf("must not include %[2]s, which features.%[1]s needs", e.Name,
				p.Name))
		}
		if _, set := flags["admission-control-config-file"]; set && p.Config != nil {
			report("admission-control-config-file", "features."+e.Name+" sets a different file")
		}
	}
}

// excludesFlag reports whether the API server cannot start with both the feature and the flag, because they configure
// authentication in different ways.
func excludesFlag(feature, flag string) bool {
	switch feature {
	case "openidConnect":
		return flag == "authentication-config"
	case "authenticationConfiguration":
		return flag == "anonymous-auth" || strings.HasPrefix(flag, "oidc-")
	}
	return false
}

// commaList splits a comma-separated flag value.
func commaList(value string) []string {
	items := strings.Split(value, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

func marshalManifest(c *v1beta2.KubeOneCluster) ([]byte, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write the manifest as YAML: %w", err)
	}
	return text, nil
}

// computeDigest returns the SHA-256 of the manifest in hex. It does not depend on the order and the IDs of hosts.
func computeDigest(c *v1beta2.KubeOneCluster) (string, error) {
	ordered := *c
	ordered.ControlPlane.Hosts = normalizeHosts(c.ControlPlane.Hosts)
	ordered.StaticWorkers.Hosts = normalizeHosts(c.StaticWorkers.Hosts)
	text, err := marshalManifest(&ordered)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// normalizeHosts returns a copy of the hosts, sorted by address and without their IDs.
func normalizeHosts(hosts []v1beta2.HostConfig) []v1beta2.HostConfig {
	out := slices.Clone(hosts)
	for i := range out {
		out[i].ID = ""
	}
	slices.SortStableFunc(out, func(a, b v1beta2.HostConfig) int {
		return cmp.Compare(a.PublicAddress, b.PublicAddress)
	})
	return out
}
