package v1beta2

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// WithoutSecrets returns a copy without the values that must not leave the operator's machine in clear text: fields
// tagged secret:"true", the user and password of a proxy's URL, and in fields tagged secret:"keys" all values whose key
// looks like a secret's.
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

// WithoutUser returns the URL without its user and password. It returns other strings unchanged.
func WithoutUser(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw
	}
	u.User = nil
	return u.String()
}

// hideSecrets removes the entries whose key looks like a secret's, at any depth of a map or list. From all other
// strings it removes private keys and passwords in URLs.
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
			v[key] = hidden(value)
		}
	case map[string]string:
		for key, value := range v {
			if looksSecret(key) {
				delete(v, key)
				continue
			}
			v[key] = withoutSecret(value)
		}
	case []any:
		for i, item := range v {
			v[i] = hidden(item)
		}
	case []string:
		for i, item := range v {
			v[i] = withoutSecret(item)
		}
	}
}

// hidden returns a value without its secrets. It changes maps and lists in place.
func hidden(value any) any {
	if text, ok := value.(string); ok {
		return withoutSecret(text)
	}
	hideSecrets(value)
	return value
}

// userOfURL matches the user and password in any URL, including those of databases.
var userOfURL = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'<>]*@`)

// withoutSecret returns a text without users and passwords of URLs, and "" for a private key.
func withoutSecret(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		return ""
	}
	return userOfURL.ReplaceAllString(text, "$1")
}

// looksSecret reports whether a key suggests that its value is a secret. Hiding too much is better than too little.
func looksSecret(key string) bool {
	words := wordsOf(key)
	if len(words) == 0 {
		return false
	}
	if slices.Contains([]string{"key", "auth", "pin", "pw"}, words[len(words)-1]) {
		return true
	}
	for _, word := range words {
		if slices.Contains([]string{"pass", "pwd", "psk"}, word) {
			return true
		}
	}
	joined := strings.Join(words, "")
	for _, part := range []string{
		"passw", "passphrase", "secret", "token", "credential", "cookie", "apikey", "accesskey", "privatekey",
		"kubeconfig", "dockercfg", "dockerconfig",
	} {
		if strings.Contains(joined, part) {
			return true
		}
	}
	return false
}

// wordsOf returns the words of a key in lower case: dbPass, DB_PASS, db-pass and db.pass have the same two.
func wordsOf(key string) []string {
	var out []string
	small := false // the previous letter is lower case
	for _, r := range key {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			out, small = append(out, ""), false
			continue
		case len(out) == 0 || unicode.IsUpper(r) && small:
			out = append(out, "")
		}
		out[len(out)-1] += string(unicode.ToLower(r))
		small = unicode.IsLower(r)
	}
	return slices.DeleteFunc(out, func(word string) bool { return word == "" })
}
