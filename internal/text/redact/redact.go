// Package redact removes secrets from text that leaves the operator's machine or that other users can read.
//
// It is the last line of defence: collected text should not contain secrets at all. It therefore removes too much
// rather than too little: private keys, tokens, credentials in URLs and headers, values of keys that sound secret, and
// long base64. Digests, addresses, names and versions stay, because readers need them.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"sort"
	"strings"
)

// Removed replaces a secret.
const Removed = "[removed]"

// shortest is the minimum length of a known secret. Shorter values would match parts of ordinary words.
const shortest = 4

// Redactor removes secrets. It is immutable and safe for concurrent use. The zero value knows no secret values.
type Redactor struct {
	known *strings.Replacer
}

// New returns a Redactor that also removes these values everywhere: verbatim, in base64, in URLs and in JSON. Values of
// less than four characters are ignored.
func New(known ...string) *Redactor {
	forms := map[string]bool{}
	for _, value := range known {
		for _, form := range formsOf(strings.TrimSpace(value)) {
			if len(form) >= shortest {
				forms[form] = true
			}
		}
	}
	if len(forms) == 0 {
		return &Redactor{}
	}
	ordered := make([]string, 0, len(forms))
	for form := range forms {
		ordered = append(ordered, form)
	}
	// A Replacer uses the first pair that matches, so the longest must come first.
	sort.Slice(ordered, func(i, j int) bool {
		return len(ordered[i]) > len(ordered[j]) || len(ordered[i]) == len(ordered[j]) && ordered[i] < ordered[j]
	})
	var pairs []string
	for _, form := range ordered {
		pairs = append(pairs, form, Removed)
	}
	return &Redactor{known: strings.NewReplacer(pairs...)}
}

// formsOf returns the encodings of a value.
func formsOf(value string) []string {
	if len(value) < shortest {
		return nil
	}
	quoted, _ := json.Marshal(value) // strings never fail
	return []string{
		value, strings.Trim(string(quoted), `"`), url.QueryEscape(value), url.PathEscape(value),
		base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
}

// Text returns a text without secrets. Only private keys are found across lines.
func (r *Redactor) Text(text string) string {
	return byLine(removePrivateKeys(r.replaceSecrets(text)))
}

func (r *Redactor) replaceSecrets(text string) string {
	if r.known == nil {
		return text
	}
	return r.known.Replace(text)
}

// JSON returns a JSON document without secrets. Strings are treated as text, and strings under a key that sounds secret
// are removed. Invalid documents are treated as lines of JSON.
func (r *Redactor) JSON(doc []byte) []byte {
	if out, ok := r.redactDocument(doc, "  "); ok {
		return append(out, '\n')
	}
	return r.JSONLines(doc)
}

// JSONLines treats each line as a JSON document. Invalid lines are treated as text.
func (r *Redactor) JSONLines(lines []byte) []byte {
	// A key printed line by line is spread over several documents.
	text := removePrivateKeys(r.replaceSecrets(string(lines)))
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		if out, ok := r.redactDocument([]byte(line), ""); ok {
			b.Write(out)
			b.WriteByte('\n')
			continue
		}
		b.WriteString(byLine(line))
	}
	return b.Bytes()
}

// redactDocument redacts exactly one JSON value, and reports whether the text is one.
func (r *Redactor) redactDocument(doc []byte, indent string) ([]byte, bool) {
	in := json.NewDecoder(bytes.NewReader(doc))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return nil, false
	}
	if _, err := in.Token(); err != io.EOF { // Token returns it bare
		return nil, false
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", indent)
	if err := out.Encode(r.redactValue(value, false)); err != nil {
		return nil, false
	}
	return bytes.TrimRight(b.Bytes(), "\n"), true
}

// redactValue redacts a JSON value; secret means that it is under a key that sounds secret.
func (r *Redactor) redactValue(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret && v != "" {
			return Removed
		}
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.redactValue(v[i], secret)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, below := range v {
			out[r.Text(key)] = r.redactValue(below, soundsSecret(key))
		}
		return out
	}
	return v
}
