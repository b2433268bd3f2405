package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
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
		at := l.where.find(named)
		at.Path = named
		l.where[named] = at
		if *f.text != "" {
			l.report(named, Error, "keep one of them", "cannot be set together with "+content)
			return
		}
		data, err := readFeatureFile(l.absolute(*f.file))
		if err != nil {
			l.report(named, Error, "the path is relative to the manifest's folder", err.Error())
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
		l.report(content, Error, "", m.message)
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
