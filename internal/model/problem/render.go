package problem

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fillPlaceholders replaces each {name} in the text with its parameter. Without a parameter "host", {host} is the ID of
// the problem's host.
func fillPlaceholders(text, host string, parameters Parameters) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		value, given := parameters[name]
		if !given && name == "host" {
			value = host
		}
		b.WriteString(formatValue(value))
		text = after
	}
}

// formatValue formats a value for a sentence.
func formatValue(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case []string:
		return joinNames(v)
	}
	return "unknown"
}

// joinNames joins names for a sentence: "a", "a and b", "a, b and c".
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// List joins names for a sentence: "a, b and c".
func List(names []string) string { return joinNames(names) }

// Some returns at most the given number of names, followed by "N more" if there are more.
func Some(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
}

// Check returns an error for an unknown code, or for a parameter that is missing, unused or of the wrong type.
func Check(code Code, parameters Parameters) error {
	r := findRow(code)
	if r.code != code {
		return fmt.Errorf("no code %q", code)
	}
	texts := r.what + r.do
	for _, name := range placeholders(texts) {
		if _, given := parameters[name]; !given && name != "host" {
			return fmt.Errorf("%s lacks the parameter %s", code, name)
		}
	}
	for name, value := range parameters {
		if !strings.Contains(texts, "{"+name+"}") {
			return fmt.Errorf("%s has no use for the parameter %s", code, name)
		}
		switch value.(type) {
		case string, int, []string:
		default:
			return fmt.Errorf("%s: the parameter %s is a %T", code, name, value)
		}
	}
	return nil
}

// Takes reports whether the texts of a code use the parameter.
func Takes(code Code, name string) bool {
	r := findRow(code)
	return strings.Contains(r.what+r.do, "{"+name+"}")
}

// placeholders returns the names of the parameters of a text, each once, in order.
func placeholders(text string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(text, "{")
		if !found {
			return out
		}
		name, after, _ := strings.Cut(rest, "}")
		if !strings.Contains(" "+strings.Join(out, " ")+" ", " "+name+" ") {
			out = append(out, name)
		}
		text = after
	}
}

// formatCode formats a code and its parameters for tests and logs: "PortTaken(port=6443, process=haproxy)".
func formatCode(code Code, parameters Parameters) string {
	if len(parameters) == 0 {
		return string(code)
	}
	var values []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[name]
		if words, ok := value.([]string); ok {
			value = strings.Join(words, "+")
		}
		values = append(values, fmt.Sprintf("%s=%v", name, value))
	}
	return string(code) + "(" + strings.Join(values, ", ") + ")"
}
