// Package redact takes secrets out of text before it leaves the operator's machine or is kept where others read it.
//
// It is the last line of defence: what is collected should hold no secret to begin with. So it errs on the side of
// removing too much: private keys, tokens, credentials in URLs and headers, the values of keys that sound like
// secrets, and long base64, whatever it encodes. Digests, addresses, names and versions stay, because they are what
// a reader needs.
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

// Removed stands where a secret was.
const Removed = "[removed]"

// shortest is the length from which a known secret is looked for: a shorter one would be found in every word.
const shortest = 4

// Redactor removes secrets. It is immutable and safe for concurrent use; the zero value knows no secret by its value.
type Redactor struct {
	known *strings.Replacer
}

// New returns a Redactor that also removes these values wherever they stand: as they are, in base64, in a URL and in
// JSON. Values of less than four characters are ignored.
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
	// A Replacer takes the first pair that matches at a place: the longest must stand first.
	sort.Slice(ordered, func(i, j int) bool {
		return len(ordered[i]) > len(ordered[j]) || len(ordered[i]) == len(ordered[j]) && ordered[i] < ordered[j]
	})
	var pairs []string
	for _, form := range ordered {
		pairs = append(pairs, form, Removed)
	}
	return &Redactor{known: strings.NewReplacer(pairs...)}
}

// formsOf are the ways in which a value may be written.
func formsOf(value string) []string {
	if len(value) < shortest {
		return nil
	}
	quoted, _ := json.Marshal(value) // a string always can be
	return []string{
		value, strings.Trim(string(quoted), `"`), url.QueryEscape(value), url.PathEscape(value),
		base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
}

// Text returns a text without secrets. Only private keys are looked for across lines.
func (r *Redactor) Text(text string) string {
	return byLine(removePrivateKeys(r.replaceSecrets(text)))
}

func (r *Redactor) replaceSecrets(text string) string {
	if r.known == nil {
		return text
	}
	return r.known.Replace(text)
}

// JSON returns a JSON document without secrets: each string is treated as a text, and the strings under a key that
// sounds like a secret are removed. What is no JSON document is treated as lines of JSON.
func (r *Redactor) JSON(doc []byte) []byte {
	if out, ok := r.redactDocument(doc, "  "); ok {
		return append(out, '\n')
	}
	return r.JSONLines(doc)
}

// JSONLines treats each line as a JSON document of its own. Lines that are none are treated as text.
func (r *Redactor) JSONLines(lines []byte) []byte {
	// A key that was printed line by line has its parts in several documents.
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

// redactDocument treats exactly one JSON value, and reports whether the text is one.
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

// redactValue treats a JSON value; secret says that it stands under a key that sounds like a secret.
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
