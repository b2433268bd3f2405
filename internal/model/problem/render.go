package problem

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fill puts the parameters into the places of a text: {name}. {host} is the ID of the problem's host where no parameter
// has that name.
func fill(text, host string, parameters Parameters) string {
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
		b.WriteString(write(value))
		text = after
	}
}

// write writes a value as a sentence has it.
func write(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case []string:
		return list(v)
	}
	return "unknown"
}

// list writes names as a sentence has them: "a", "a and b", "a, b and c".
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// List writes names as a sentence has them.
func List(names []string) string { return list(names) }

// Some are so many of the names at most, followed by how many more there are.
func Some(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
}

// Check says what is wrong with a problem's or a step's values: a code that the table does not have, a parameter that
// its texts need and that is missing, one that they do not use, or one of another type.
func Check(code Code, parameters Parameters) error {
	r := find(code)
	if r.code != code {
		return fmt.Errorf("no code %q", code)
	}
	texts := r.what + r.do
	for _, name := range places(texts) {
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

// Takes reports whether the texts of a code have a place for the parameter.
func Takes(code Code, name string) bool {
	r := find(code)
	return strings.Contains(r.what+r.do, "{"+name+"}")
}

// places are the names of the parameters of a text, each once, in order.
func places(text string) []string {
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

// describe writes a code and its parameters for tests and logs: "PortTaken(port=6443, process=haproxy)".
func describe(code Code, parameters Parameters) string {
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
