package manifest

import (
	"errors"
	"fmt"
	"io"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFeatureFile bounds a file that a feature names. etcd takes no larger object, and a script has these files in it.
const maxFeatureFile = 256 << 10

// featureFile is a file that a feature names, and the field that has its content instead.
type featureFile struct {
	feature       string  // "features.staticAuditLog"
	name, content string  // the fields, below the feature's config
	file, text    *string // their values
	secret        bool    // nothing of it may be repeated
	check         func(text string) []mistake
}

// mistake is something that is wrong with a file's content.
type mistake struct {
	line    int // from 1; 0 is the whole file
	message string
}

// featureFiles are those of the features that are switched on.
func featureFiles(f *v1beta2.Features) []featureFile {
	var out []featureFile
	if a := f.StaticAuditLog; a != nil && a.Enable {
		out = append(out, featureFile{
			feature: "features.staticAuditLog", name: "policyFilePath", content: "policy",
			file: &a.Config.PolicyFilePath, text: &a.Config.Policy, check: auditPolicyMistakes,
		})
	}
	if w := f.WebhookAuditLog; w != nil && w.Enable {
		out = append(out, featureFile{
			feature: "features.webhookAuditLog", name: "policyFilePath", content: "policy",
			file: &w.Config.PolicyFilePath, text: &w.Config.Policy, check: auditPolicyMistakes,
		}, featureFile{
			feature: "features.webhookAuditLog", name: "configFilePath", content: "kubeconfig",
			file: &w.Config.ConfigFilePath, text: &w.Config.Kubeconfig, check: kubeconfigMistakes, secret: true,
		})
	}
	if p := f.PodNodeSelector; p != nil && p.Enable {
		out = append(out, featureFile{
			feature: "features.podNodeSelector", name: "configFilePath", content: "configuration",
			file: &p.Config.ConfigFilePath, text: &p.Config.Configuration, check: nodeSelectorMistakes,
		})
	}
	if e := f.EventRateLimit; e != nil && e.Enable {
		out = append(out, featureFile{
			feature: "features.eventRateLimit", name: "configFilePath", content: "configuration",
			file: &e.Config.ConfigFilePath, text: &e.Config.Configuration, check: eventRateMistakes,
		})
	}
	if a := f.AuthenticationConfiguration; a != nil && a.Enable {
		out = append(out, featureFile{
			feature: "features.authenticationConfiguration", name: "configFilePath", content: "configuration",
			file: &a.Config.ConfigFilePath, text: &a.Config.Configuration, check: authenticationMistakes,
		})
	}
	if o := f.OpenIDConnect; o != nil && o.Enable && !filepath.IsAbs(o.Config.CAFile) {
		out = append(out, featureFile{
			feature: "features.openidConnect", name: "caFile", content: "ca",
			file: &o.Config.CAFile, text: &o.Config.CA, check: func(string) []mistake { return nil },
		})
	}
	return out
}

// readFeatures reads the files that features name into the manifest, so that nothing later depends on them, and says
// what is wrong with what they have in them.
func (l *loader) readFeatures() {
	for _, f := range featureFiles(&l.cluster.Features) {
		l.readFeature(f)
	}
	if w := l.cluster.Features.WebhookAuditLog; w != nil && w.Enable && w.Config.Kubeconfig != "" {
		w.Config.KubeconfigDigest = kubeconfigFile(w.Config).Digest
	}
}

func (l *loader) readFeature(f featureFile) {
	named, content := f.feature+".config."+f.name, f.feature+".config."+f.content
	var inFile string
	if *f.file != "" {
		at := l.where.findPosition(named)
		at.Path = named
		l.where[named] = at
		if *f.text != "" {
			l.reportPath(named, Error, "keep one of them", "cannot be set together with "+content)
			return
		}
		data, err := readFeatureFile(l.absolutePath(*f.file))
		if err != nil {
			l.reportPath(named, Error, "the path is relative to the manifest's folder", err.Error())
			l.explain = append(l.explain, named)
			return
		}
		inFile, *f.text, *f.file = *f.file, string(data), ""
		l.where[content] = at
	}
	if *f.text == "" {
		return
	}
	for _, m := range f.check(*f.text) {
		if inFile != "" {
			l.found = append(l.found, Problem{
				File: inFile, Line: m.line, Path: named, Message: m.message, Severity: Error,
			})
			continue
		}
		if m.line > 0 {
			m.message = fmt.Sprintf("line %d: %s", m.line, m.message)
		}
		l.reportPath(content, Error, "", m.message)
	}
}

// readFeatureFile reads a text, as scripts can hold one.
func readFeatureFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFeatureFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFeatureFile:
		return nil, fmt.Errorf("%s is larger than %d KiB", path, maxFeatureFile>>10)
	case !utf8.Valid(data):
		return nil, errors.New(path + " is no text in UTF-8")
	case strings.TrimSpace(string(data)) == "":
		return nil, errors.New(path + " is empty")
	}
	return data, nil
}

// kubeconfigFile is the file with the credentials for the server of audit events. Of a manifest that has only the
// digest, the digest alone is known.
func kubeconfigFile(c v1beta2.WebhookAuditLogConfig) desired.ComponentFile {
	const name = "audit-webhook.kubeconfig"
	if c.Kubeconfig == "" {
		return desired.SecretComponentFile(desired.APIServer, name, c.KubeconfigDigest)
	}
	return desired.NewComponentFile(desired.APIServer, name, c.Kubeconfig)
}

// Secrets are the manifest's values that are nowhere else: not in the Cluster, its digest or the manifest's text.
// Printing a Secrets prints none of them.
type Secrets struct {
	// Registries is credentials by registry host, of the file with credentials and of the manifest.
	Registries map[string]v1beta2.ContainerdRegistryAuthConfig
	// AllRegistries says that registries that are not among them are to have no credentials on hosts: there is a file,
	// or the manifest has some itself. Otherwise it may be that somebody did not name the file.
	AllRegistries bool
	// Helm is credentials for chart repositories, by release name.
	Helm map[string]v1beta2.HelmAuth
	// HTTPProxy and HTTPSProxy are the proxies' URLs where they have a user and password in them.
	HTTPProxy, HTTPSProxy string
	// Files are the secret ones of Cluster.Extras, by name.
	Files map[string][]byte
}

// String hides the secrets from %v and %s.
func (Secrets) String() string { return "[secrets]" }

// GoString hides the secrets from %#v.
func (Secrets) GoString() string { return "[secrets]" }

// MarshalJSON hides the secrets from JSON.
func (Secrets) MarshalJSON() ([]byte, error) { return []byte(`"[secrets]"`), nil }

// secretValues are those of the manifest and of the file with credentials, which goes before the manifest.
func (l *loader) secretValues() Secrets {
	s := secretsOf(l.cluster)
	maps.Copy(s.Registries, l.registries)
	s.AllRegistries = l.registries != nil || len(s.Registries) > 0
	return s
}

func secretsOf(c *v1beta2.KubeOneCluster) Secrets {
	s := Secrets{Registries: map[string]v1beta2.ContainerdRegistryAuthConfig{}, Helm: map[string]v1beta2.HelmAuth{}}
	if r := c.ContainerRuntime.Containerd; r != nil {
		for host, registry := range r.Registries {
			if registry.Auth != nil {
				s.Registries[host] = *registry.Auth
			}
		}
	}
	for _, r := range c.HelmReleases {
		if r.Auth != nil {
			s.Helm[releaseName(r)] = *r.Auth
		}
	}
	if c.Proxy.HTTP != v1beta2.WithoutUser(c.Proxy.HTTP) {
		s.HTTPProxy = c.Proxy.HTTP
	}
	if c.Proxy.HTTPS != v1beta2.WithoutUser(c.Proxy.HTTPS) {
		s.HTTPSProxy = c.Proxy.HTTPS
	}
	return s
}

func releaseName(r v1beta2.HelmRelease) string {
	if r.ReleaseName != "" {
		return r.ReleaseName
	}
	return r.Chart
}

// suggestName returns the known name that was probably meant, because it is nearly the same, or begins like it; "" if
// there is none.
func suggestName(name string, known []string) string {
	name = foldName(name)
	best, bestDistance := "", 2+min(len(name)/4, 2)
	for _, k := range known {
		if d := editDistance(name, foldName(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	for _, k := range known {
		shorter, longer := name, foldName(k)
		if len(shorter) > len(longer) {
			shorter, longer = longer, shorter
		}
		if best == "" && len(shorter) >= 5 && strings.HasPrefix(longer, shorter) {
			best = k
		}
	}
	return best
}

// foldName makes names that differ only in their way of joining words equal: sshPort, ssh_port, SSHPort.
func foldName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// editDistance is the least number of insertions, deletions, replacements and swaps of neighbours that turn a into b
// (optimal string alignment).
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// otherPaths returns the paths, at most three, at which a type has a field of exactly that name; nil if there are more,
// because then none of them is a hint.
func otherPaths(root reflect.Type, name string) []string {
	var found []string
	var walk func(t reflect.Type, path string, depth int)
	walk = func(t reflect.Type, path string, depth int) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			if t.Kind() == reflect.Slice {
				path += "[]"
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || depth == 0 {
			return
		}
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous {
				continue
			}
			at := v1beta2.Child(path, v1beta2.JSONName(f))
			if foldName(v1beta2.JSONName(f)) == foldName(name) {
				found = append(found, at)
			}
			walk(f.Type, at, depth-1)
		}
	}
	walk(root, "", 4)
	if len(found) > 3 {
		return nil
	}
	slices.Sort(found)
	return found
}
