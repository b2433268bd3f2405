package v1beta2

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
)

// WithoutSecrets returns a copy without the values that never leave the operator's machine in clear text: fields marked
// as secret, the user and password of a proxy's URL, and in the parts whose fields belong to someone else (those tagged
// secret:"keys") every value whose key looks like a secret's.
func (c *KubeOneCluster) WithoutSecrets() (*KubeOneCluster, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("copy the manifest: %w", err)
	}
	out := &KubeOneCluster{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("copy the manifest: %w", err)
	}
	walkFields(reflect.ValueOf(out).Elem(), "", func(_ string, v reflect.Value, f reflect.StructField) bool {
		switch f.Tag.Get("secret") {
		case "true":
			v.SetZero()
			return false
		case "keys":
			hideSecrets(v.Interface())
		}
		return true
	})
	out.Proxy.HTTP = WithoutUser(out.Proxy.HTTP)
	out.Proxy.HTTPS = WithoutUser(out.Proxy.HTTPS)
	return out, nil
}

// WithoutUser returns the URL without its user and password; what is no URL is returned as it is.
func WithoutUser(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw
	}
	u.User = nil
	return u.String()
}

// hideSecrets removes, at any depth of a map or list, the entries whose key looks like a secret's.
func hideSecrets(v any) {
	switch v := v.(type) {
	case Raw:
		hideSecrets(map[string]any(v))
	case map[string]any:
		for key, value := range v {
			if looksSecret(key) {
				delete(v, key)
				continue
			}
			hideSecrets(value)
		}
	case map[string]string:
		for key := range v {
			if looksSecret(key) {
				delete(v, key)
			}
		}
	case []any:
		for _, item := range v {
			hideSecrets(item)
		}
	}
}

// looksSecret reports whether a value under that key is likely to be a secret. Too many is better than one too few.
func looksSecret(key string) bool {
	key = strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(key))
	for _, word := range []string{
		"password", "passwd", "secret", "token", "credential", "apikey", "accesskey", "privatekey", "kubeconfig",
	} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
