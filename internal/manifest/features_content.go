package manifest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/text/pattern"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
)

// auditPolicy is a Policy in audit.k8s.io/v1, with all its fields.
type auditPolicy struct {
	APIVersion        string         `yaml:"apiVersion"`
	Kind              string         `yaml:"kind"`
	Metadata          map[string]any `yaml:"metadata"`
	Rules             []auditRule    `yaml:"rules"`
	OmitStages        []string       `yaml:"omitStages"`
	OmitManagedFields *bool          `yaml:"omitManagedFields"`
}

type auditRule struct {
	Level             string           `yaml:"level"`
	Users             []string         `yaml:"users"`
	UserGroups        []string         `yaml:"userGroups"`
	Verbs             []string         `yaml:"verbs"`
	Resources         []auditResources `yaml:"resources"`
	Namespaces        []string         `yaml:"namespaces"`
	NonResourceURLs   []string         `yaml:"nonResourceURLs"`
	OmitStages        []string         `yaml:"omitStages"`
	OmitManagedFields *bool            `yaml:"omitManagedFields"`
}

type auditResources struct {
	Group         string   `yaml:"group"`
	Resources     []string `yaml:"resources"`
	ResourceNames []string `yaml:"resourceNames"`
}

func auditPolicyMistakes(text string) []mistake {
	var p auditPolicy
	if found := decodeStrictYAML(text, &p); found != nil {
		return found
	}
	if p.APIVersion != "audit.k8s.io/v1" || p.Kind != "Policy" {
		return []mistake{{message: fmt.Sprintf("is not a Policy of audit.k8s.io/v1: kind is %s, apiVersion is %s",
			quoteOrNotSet(p.Kind), quoteOrNotSet(p.APIVersion))}}
	}
	out := stageMistakes("omitStages", p.OmitStages)
	if len(p.Rules) == 0 {
		out = append(out, mistake{message: "has no rules, so nothing would be logged"})
	}
	for i, r := range p.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		if !slices.Contains([]string{"None", "Metadata", "Request", "RequestResponse"}, r.Level) {
			out = append(out, mistake{message: fmt.Sprintf("%s.level must be None, Metadata, Request or "+
				"RequestResponse, not %q", at, r.Level)})
		}
		if len(r.NonResourceURLs) > 0 && len(r.Resources)+len(r.Namespaces) > 0 {
			out = append(out, mistake{message: at + " combines nonResourceURLs with resources or namespaces"})
		}
		out = append(out, stageMistakes(at+".omitStages", r.OmitStages)...)
	}
	return out
}

func stageMistakes(at string, stages []string) []mistake {
	var out []mistake
	for _, stage := range stages {
		if !slices.Contains([]string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}, stage) {
			out = append(out, mistake{message: fmt.Sprintf("%s contains %q, which is not a request stage", at, stage)})
		}
	}
	return out
}

func quoteOrNotSet(s string) string {
	if s == "" {
		return "not set"
	}
	return strconv.Quote(s)
}

func nodeSelectorMistakes(text string) []mistake {
	var c struct {
		Selectors map[string]string `yaml:"podNodeSelectorPluginConfig"`
	}
	if found := decodeStrictYAML(text, &c); found != nil {
		return found
	}
	if len(c.Selectors) == 0 {
		return []mistake{{message: "podNodeSelectorPluginConfig is missing"}}
	}
	var out []mistake
	for _, namespace := range slices.Sorted(maps.Keys(c.Selectors)) {
		if _, err := labels.ConvertSelectorToLabelsMap(c.Selectors[namespace]); err != nil {
			out = append(out, mistake{message: fmt.Sprintf("the selector for %s is not a list of key=value pairs: %q",
				namespace, c.Selectors[namespace])})
		}
	}
	return out
}

func eventRateMistakes(text string) []mistake {
	var c struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Limits     []struct {
			Type      string `yaml:"type"`
			QPS       int32  `yaml:"qps"`
			Burst     int32  `yaml:"burst"`
			CacheSize int32  `yaml:"cacheSize"`
		} `yaml:"limits"`
	}
	if found := decodeStrictYAML(text, &c); found != nil {
		return found
	}
	const version = "eventratelimit.admission.k8s.io/v1alpha1"
	if c.APIVersion != version || c.Kind != "Configuration" {
		return []mistake{{message: fmt.Sprintf("is not a Configuration of %[3]s: kind is %[1]s, apiVersion is %[2]s",
			quoteOrNotSet(c.Kind), quoteOrNotSet(c.APIVersion), version)}}
	}
	var out []mistake
	if len(c.Limits) == 0 {
		out = append(out, mistake{message: "has no limits"})
	}
	for i, limit := range c.Limits {
		if !slices.Contains([]string{"Server", "Namespace", "User", "SourceAndObject"}, limit.Type) {
			out = append(out, mistake{message: fmt.Sprintf("limits[%d].type must be Server, Namespace, "+
				"User or SourceAndObject, not %q", i, limit.Type)})
		}
		if limit.QPS <= 0 || limit.Burst <= 0 || limit.CacheSize < 0 {
			out = append(out, mistake{message: fmt.Sprintf("limits[%d]: qps and burst must be greater than 0", i)})
		}
	}
	return out
}

// authenticationConfiguration is an AuthenticationConfiguration in apiserver.config.k8s.io/v1, with all its fields.
type authenticationConfiguration struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	JWT        []struct {
		Issuer struct {
			URL                  string   `yaml:"url"`
			DiscoveryURL         string   `yaml:"discoveryURL"`
			CertificateAuthority string   `yaml:"certificateAuthority"`
			Audiences            []string `yaml:"audiences"`
			AudienceMatchPolicy  string   `yaml:"audienceMatchPolicy"`
			EgressSelectorType   string   `yaml:"egressSelectorType"`
		} `yaml:"issuer"`
		ClaimValidationRules any `yaml:"claimValidationRules"`
		ClaimMappings        struct {
			Username *claimMapping `yaml:"username"`
			Groups   *claimMapping `yaml:"groups"`
			UID      any           `yaml:"uid"`
			Extra    any           `yaml:"extra"`
		} `yaml:"claimMappings"`
		UserValidationRules any `yaml:"userValidationRules"`
	} `yaml:"jwt"`
	Anonymous *struct {
		Enabled    bool `yaml:"enabled"`
		Conditions []struct {
			Path string `yaml:"path"`
		} `yaml:"conditions"`
	} `yaml:"anonymous"`
}

// claimMapping says which token claim becomes the user name or the groups.
type claimMapping struct {
	Claim      string  `yaml:"claim"`
	Prefix     *string `yaml:"prefix"`
	Expression string  `yaml:"expression"`
}

// hasReservedPrefix reports whether the issuer can assign user names or groups that are reserved for Kubernetes.
func (m *claimMapping) hasReservedPrefix() bool {
	return m != nil && m.Prefix != nil && strings.HasPrefix(*m.Prefix, "system:")
}

// authenticationMistakes returns mistakes that would prevent the API server from starting or from reaching an issuer.
// It does not check claim rules.
func authenticationMistakes(text string) []mistake {
	var c authenticationConfiguration
	if found := decodeStrictYAML(text, &c); found != nil {
		return found
	}
	const group = "apiserver.config.k8s.io/"
	known := c.APIVersion == group+"v1" || c.APIVersion == group+"v1beta1"
	if !known || c.Kind != "AuthenticationConfiguration" {
		return []mistake{{message: fmt.Sprintf("is not an AuthenticationConfiguration of %[3]sv1: "+
			"kind is %[1]s, apiVersion is %[2]s",
			quoteOrNotSet(c.Kind), quoteOrNotSet(c.APIVersion), group)}}
	}
	var out []mistake
	issuers := map[string]bool{}
	for i, jwt := range c.JWT {
		at := fmt.Sprintf("jwt[%d].issuer.", i)
		if !strings.HasPrefix(jwt.Issuer.URL, "https://") {
			out = append(out, mistake{message: fmt.Sprintf("%surl must start with https://, not %q", at,
				jwt.Issuer.URL)})
		}
		if issuers[jwt.Issuer.URL] {
			out = append(out, mistake{message: fmt.Sprintf("%surl %q is listed twice", at, jwt.Issuer.URL)})
		}
		issuers[jwt.Issuer.URL] = true
		if len(jwt.Issuer.Audiences) == 0 {
			out = append(out, mistake{message: at + "audiences must list at least one"})
		}
		if jwt.ClaimMappings.Username == nil {
			out = append(out, mistake{message: fmt.Sprintf("jwt[%d].claimMappings.username is missing", i)})
		}
		if jwt.ClaimMappings.Username.hasReservedPrefix() || jwt.ClaimMappings.Groups.hasReservedPrefix() {
			out = append(out,
				mistake{message: fmt.Sprintf("jwt[%d].claimMappings must not use the prefix system:, which "+
					"would give users of the issuer the names of built-in cluster users", i)})
		}
	}
	return out
}

// kubeconfigMistakes returns what makes a kubeconfig unusable for an API server. The messages quote nothing from it,
// because it contains secrets.
func kubeconfigMistakes(text string) []mistake {
	var c struct {
		Clusters []struct {
			Cluster struct {
				Server    string `yaml:"server"`
				Authority string `yaml:"certificate-authority"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User struct {
				Certificate string `yaml:"client-certificate"`
				Key         string `yaml:"client-key"`
				TokenFile   string `yaml:"tokenFile"`
				Exec        any    `yaml:"exec"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return []mistake{{message: "is not a kubeconfig"}}
	}
	if len(c.Clusters) == 0 || !strings.Contains(c.Clusters[0].Cluster.Server, "://") {
		return []mistake{{message: "is not a kubeconfig with a server"}}
	}
	for _, cluster := range c.Clusters {
		if cluster.Cluster.Authority != "" {
			return []mistake{{message: "names a file in certificate-authority, but only this file is uploaded to hosts; " +
				"use certificate-authority-data"}}
		}
	}
	for _, u := range c.Users {
		if u.User.Certificate+u.User.Key+u.User.TokenFile != "" || u.User.Exec != nil {
			return []mistake{{message: "names other files or programs, but only this file is uploaded to hosts; use " +
				"client-certificate-data, client-key-data and token"}}
		}
	}
	return nil
}

// decodeStrictYAML decodes a single document into a value. It returns a mistake for each unknown field or syntax error,
// and nil on success.
func decodeStrictYAML(text string, into any) []mistake {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(into)
	if err == nil {
		if err = d.Decode(&yaml.Node{}); errors.Is(err, io.EOF) {
			return nil
		}
		return []mistake{{message: "contains more than one document"}}
	}
	if errors.Is(err, io.EOF) {
		return []mistake{{message: "is empty"}}
	}
	lines := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		lines = typed.Errors
	}
	out := make([]mistake, 0, len(lines))
	for _, line := range lines {
		out = append(out, newMistake(line))
	}
	return out
}

var (
	numbered = pattern.Lazy(`^line (\d+): (.*)$`)
	goType   = pattern.Lazy(` (in type|into) \S.*$`)
)

// newMistake converts a message of the YAML library. It extracts the line number and removes the names of Go types.
func newMistake(message string) mistake {
	out := mistake{message: message}
	if m := numbered().FindStringSubmatch(message); m != nil {
		out.line, _ = strconv.Atoi(m[1])
		out.message = m[2]
	}
	out.message = goType().ReplaceAllString(out.message, "")
	if field, ok := strings.CutSuffix(strings.TrimPrefix(out.message, "field "), " not found"); ok {
		out.message = strconv.Quote(field) + " is not a known field"
	}
	return out
}
