package redact

import (
	"regexp"
	"strings"

	"kubeone/internal/text/pattern"
)

// rule replaces matches of a pattern in a line. Logs are long and secrets rare, so a quick test decides whether to try
// the pattern.
type rule struct {
	may   func(line, lower string) bool
	finds func() *regexp.Regexp
	with  func(found string) string
}

var (
	// A PEM private key, also with its beginning or end cut off.
	wholeKey = pattern.Lazy(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?` +
		`(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)`)
	endOfKey = pattern.Lazy(`(?s)\A.*-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`)

	ageKey         = pattern.Lazy(`(?i)AGE-SECRET-KEY-[0-9A-Z-]+`)
	jwt            = pattern.Lazy(`eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`)
	bootstrapToken = pattern.Lazy(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	awsKey         = pattern.Lazy(`\bA[KS]IA[0-9A-Z]{16}\b`)
	urlUser        = pattern.Lazy(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s"'<>\\]*@`)
	authorization  = pattern.Lazy(`(?i)authorization\\*["']?\s*[:=]\s*[\\"'\[]*[^"'\\\]\r\n]+`)
	bearer         = pattern.Lazy(`(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	keyed          = pattern.Lazy(`(?i)([\w.-]*(?:` + secretWords + `)[\w.-]*)(\\*["']?\s*[:=]\s*)` +
		`(\\*"(?:[^"\\]|\\[^"])*\\*"|\\*'[^']*'|[^\s"',;{}\[\]\\]+)`)
	dockerAuth = pattern.Lazy(`"auth\\*"\s*:\s*\\*"[^"\\]+`) // a user and a password, in base64
	flag       = pattern.Lazy(`(?i)(--?[\w-]*(?:` + secretWords + `)[\w-]*)(\s+)("[^"]*"|'[^']*'|[^\s"'-]\S*)`)
	longBase64 = pattern.Lazy(`[A-Za-z0-9+/=_-]{60,}`)
)

// secretWords are parts of keys and flags with secret values.
const secretWords = `password|passwd|passphrase|(?:\b|[_.-])(?:pass|pwd)\b|secret|token|credential|cookie|` +
	`api[-_.]?key|access[-_.]?key|private[-_.]?key|certificate[-_.]?key|encryption[-_.]?key|` +
	`client[-_]key[-_]data|client[-_]certificate[-_]data|` +
	`certificate[-_]authority[-_]data`

// harmless are endings of keys that only name or describe a secret.
var harmless = pattern.Lazy(
	`(?i)(?:file|path|name|names|ref|refs|namespace|class|ttl|hash|type|count|kind|version|dir|s_total|expiration)$`)

// soundsSecret reports whether a key probably has a secret value.
func soundsSecret(key string) bool {
	return secretKey().MatchString(key) && !harmless().MatchString(key)
}

var secretKey = pattern.Lazy(`(?i)(?:` + secretWords + `)|^auth$`)

// removePrivateKeys removes private keys, which may span several lines.
func removePrivateKeys(text string) string {
	if !strings.Contains(text, "PRIVATE KEY") {
		return text
	}
	text = wholeKey().ReplaceAllLiteralString(text, Removed)
	return endOfKey().ReplaceAllLiteralString(text, Removed)
}

// rules are applied in this order.
var rules = []rule{
	{containsAny("age-secret-key"), ageKey, removeAll},
	{containsAny("eyj"), jwt, removeAll},
	{containsAny("akia", "asia"), awsKey, removeAll},
	{containsAny("://"), urlUser,
		func(found string) string { return found[:strings.Index(found, "://")+3] + Removed + "@" }},
	{containsAny("authorization"), authorization, afterSeparator},
	{containsAny("bearer", "basic"), bearer, removeCredentials},
	{hasSecretWord, keyed, keyedValue},
	{hasSecretWord, flag, flagValue},
	{containsAny("auth"), dockerAuth, afterSeparator},
	{hasRun(16, ".", lowerOrDigit), bootstrapToken, removeAll},
	{hasRun(60, "", base64Letter), longBase64, removeBase64},
}

func removeAll(string) string { return Removed }

// hasSecretWord reports whether a line may contain one of secretWords.
func hasSecretWord(line, lower string) bool {
	return containsAny("pass", "pwd", "secret", "token", "credential", "cookie", "key", "-data", "_data")(line, lower)
}

func containsAny(words ...string) func(line, lower string) bool {
	return func(_, lower string) bool {
		for _, word := range words {
			if strings.Contains(lower, word) {
				return true
			}
		}
		return false
	}
}

// hasRun reports whether a line has n consecutive letters of a kind after a text; "" means anywhere.
func hasRun(n int, after string, kind func(c byte) bool) func(line, lower string) bool {
	return func(line, _ string) bool {
		if !strings.Contains(line, after) {
			return false
		}
		count := 0
		for i := range len(line) {
			if !kind(line[i]) {
				count = 0
				continue
			}
			if count++; count >= n {
				return true
			}
		}
		return false
	}
}

func lowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func base64Letter(c byte) bool {
	return lowerOrDigit(c) || c >= 'A' && c <= 'Z' || strings.IndexByte("+/=_-", c) >= 0
}

// byLine applies the rules to each line of a text.
func byLine(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		b.WriteString(inLine(line))
	}
	return b.String()
}

func inLine(line string) string {
	lower := strings.ToLower(line)
	for _, rule := range rules {
		if rule.may(line, lower) {
			line = rule.finds().ReplaceAllStringFunc(line, rule.with)
			lower = strings.ToLower(line)
		}
	}
	return line
}

// afterSeparator keeps the text before the first colon or equals sign.
func afterSeparator(found string) string {
	at := strings.IndexAny(found, ":=")
	return found[:at+1] + " " + Removed
}

// removeCredentials removes the word after Bearer, and after Basic unless it is a plain word ("basic authentication").
func removeCredentials(found string) string {
	kind, value, _ := strings.Cut(found, " ")
	if strings.EqualFold(kind, "basic") && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz") == "" {
		return found
	}
	return kind + " " + Removed
}

func keyedValue(found string) string {
	part := keyed().FindStringSubmatch(found)
	switch value := strings.ToLower(strings.Trim(part[3], `\"'`)); {
	case value == "", value == "true", value == "false", value == "null", value == "nil",
		harmless().MatchString(part[1]):
		return found
	}
	quote := ""
	if strings.ContainsAny(part[3], `"'`) {
		quote = part[3][:strings.IndexAny(part[3], `"'`)+1]
	}
	return part[1] + part[2] + quote + Removed + quote
}

func flagValue(found string) string {
	part := flag().FindStringSubmatch(found)
	if harmless().MatchString(part[1]) {
		return found
	}
	return part[1] + part[2] + Removed
}

// removeBase64 removes base64: text with uppercase letters, lowercase letters and digits. Digests are hexadecimal;
// paths and names rarely look like that.
func removeBase64(found string) string {
	var upper, lower, digit int
	for _, c := range found {
		switch {
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		case c >= '0' && c <= '9':
			digit++
		}
	}
	if upper < 3 || lower < 3 || digit < 1 {
		return found
	}
	return Removed
}
