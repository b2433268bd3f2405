package folder

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"kubeone/internal/addons/resources"
)

const (
	maxRendered = 32 << 20 // bytes of one rendered file
	maxObjects  = 5000     // of one addon
)

// Render returns the objects of an addon in the order of its files, with resources.AddonLabel. Lists are replaced with
// their items. Equal arguments give equal objects: a template whose text differs between two executions is refused,
// because its objects would change with every run. Mistakes in a file are a *resources.FileError.
func Render(a Addon, v Values) ([]resources.Object, error) {
	var out []resources.Object
	for _, f := range a.Files {
		text := f.Text
		if !a.DisableTemplating {
			var err error
			if text, err = fillTemplate(f, v.withParams(a.Params)); err != nil {
				return nil, err
			}
		}
		objects, err := resources.Parse(f.Path, text)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
		if len(out) > maxObjects {
			return nil, &resources.FileError{Path: f.Path, Err: fmt.Errorf("the addon has more than %d objects", maxObjects)}
		}
	}
	for _, o := range out {
		setLabel(o, a.Name)
	}
	return out, nil
}

// fillTemplate executes a file as a template, twice.
func fillTemplate(f File, v Values) (string, error) {
	parsed, err := template.New(f.Path).Option("missingkey=zero").Funcs(templateFunctions(v)).Parse(f.Text)
	if err != nil {
		return "", templateError(f.Path, err)
	}
	first, err := executeTemplate(parsed, v)
	if err != nil {
		return "", templateError(f.Path, err)
	}
	second, err := executeTemplate(parsed, v)
	if err != nil {
		return "", templateError(f.Path, err)
	}
	if first != second {
		return "", &resources.FileError{Path: f.Path,
			Err: errors.New("renders another text each time; remove functions that " +
				"depend on chance or time, such as randAlphaNum, genCA or now")}
	}
	return first, nil
}

func executeTemplate(t *template.Template, v Values) (string, error) {
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

// templateError returns a *resources.FileError with the line that text/template names: "template: NAME:LINE: …".
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
	return &resources.FileError{Path: path, Line: line, Err: errors.New(text)}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func setLabel(o resources.Object, name string) {
	metadata, _ := o["metadata"].(map[string]any)
	labels, ok := metadata["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[resources.AddonLabel] = name
}
