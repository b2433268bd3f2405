package folder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"kubeone/internal/addons/resources"
)

const (
	maxRendered = 32 << 20 // bytes of one rendered file
	maxObjects  = 5000     // of one addon
)

// A FileError is a mistake in a file of an addon.
type FileError struct {
	Path string // below the folder
	Line int    // from 1; 0 if unknown
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Render returns the objects of an addon in the order of its files, with resources.AddonLabel. Lists are replaced with
// their items. Equal arguments give equal objects: a template whose text differs between two executions is refused,
// because its objects would change with every run. Mistakes in a file are a *FileError.
func Render(a Addon, v Values) ([]resources.Object, error) {
	var out []resources.Object
	for _, f := range a.Files {
		text := f.Text
		if !a.DisableTemplating {
			var err error
			if text, err = fill(f, v.with(a.Params)); err != nil {
				return nil, err
			}
		}
		objects, err := parse(f.Path, text)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
		if len(out) > maxObjects {
			return nil, &FileError{Path: f.Path, Err: fmt.Errorf("the addon has more than %d objects", maxObjects)}
		}
	}
	for _, o := range out {
		setLabel(o, a.Name)
	}
	return out, nil
}

// fill executes a file as a template, twice.
func fill(f File, v Values) (string, error) {
	parsed, err := template.New(f.Path).Option("missingkey=zero").Funcs(functions(v)).Parse(f.Text)
	if err != nil {
		return "", templateError(f.Path, err)
	}
	first, err := execute(parsed, v)
	if err != nil {
		return "", templateError(f.Path, err)
	}
	second, err := execute(parsed, v)
	if err != nil {
		return "", templateError(f.Path, err)
	}
	if first != second {
		return "", &FileError{Path: f.Path, Err: errors.New("renders another text each time; remove functions that " +
			"depend on chance or time, such as randAlphaNum, genCA or now")}
	}
	return first, nil
}

func execute(t *template.Template, v Values) (string, error) {
	out := &limitedBuffer{left: maxRendered}
	err := t.Execute(out, v)
	return out.String(), err
}

// limitedBuffer fails when more is written than left.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

var errTooLarge = fmt.Errorf("renders more than %d MiB", maxRendered>>20)

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// templateError returns a *FileError with the line that text/template names: "template: NAME:LINE: …".
func templateError(path string, err error) error {
	text := strings.TrimPrefix(err.Error(), "template: "+path+":")
	var line int
	if number, rest, found := strings.Cut(text, ":"); found {
		if n, bad := fmt.Sscanf(number, "%d", &line); n == 1 && bad == nil {
			if column, after, found := strings.Cut(rest, ":"); found && isNumber(column) { // "LINE:COLUMN: "
				rest = after
			}
			text = strings.TrimSpace(rest)
		}
	}
	return &FileError{Path: path, Line: line, Err: errors.New(text)}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// parse returns the objects of the YAML documents in a text.
func parse(path, text string) ([]resources.Object, error) {
	var out []resources.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, &FileError{Path: path, Err: fmt.Errorf("document %d: %w", n, err)}
		}
		var object resources.Object
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return nil, &FileError{Path: path, Err: fmt.Errorf("document %d: %w", n, err)}
		}
		if len(object) == 0 {
			continue
		}
		objects, err := expandList(object)
		if err != nil {
			return nil, &FileError{Path: path, Err: fmt.Errorf("document %d: %w", n, err)}
		}
		out = append(out, objects...)
	}
}

// expandList returns the items of a List, or the object itself. It checks that each object can be applied.
func expandList(o resources.Object) ([]resources.Object, error) {
	items, isList := o["items"].([]any)
	if kind, _ := o["kind"].(string); !isList || !strings.HasSuffix(kind, "List") {
		return []resources.Object{o}, checkObject(o)
	}
	var out []resources.Object
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is not an object", i)
		}
		if err := checkObject(object); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		out = append(out, object)
	}
	return out, nil
}

func checkObject(o resources.Object) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := o[field].(string); !ok || text == "" {
			return fmt.Errorf("%s is missing", field)
		}
	}
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata is missing")
	}
	if name, ok := metadata["name"].(string); !ok || name == "" {
		return fmt.Errorf("metadata.name is missing in the %s; generateName is not supported", o["kind"])
	}
	if namespace, found := metadata["namespace"]; found {
		if _, ok := namespace.(string); !ok {
			return fmt.Errorf("metadata.namespace of the %s is not a text", o["kind"])
		}
	}
	return nil
}

func setLabel(o resources.Object, name string) {
	metadata, _ := o["metadata"].(map[string]any)
	labels, ok := metadata["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[resources.AddonLabel] = name
}
