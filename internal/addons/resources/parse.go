package resources

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
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

// Parse returns the objects of the YAML documents in a text. Lists are replaced with their items. Mistakes are a
// *FileError.
func Parse(path, text string) ([]Object, error) {
	var out []Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, &FileError{Path: path, Err: fmt.Errorf("document %d: %w", n, err)}
		}
		var object Object
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
func expandList(o Object) ([]Object, error) {
	items, isList := o["items"].([]any)
	if kind, _ := o["kind"].(string); !isList || !strings.HasSuffix(kind, "List") {
		return []Object{o}, checkObject(o)
	}
	var out []Object
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

func checkObject(o Object) error {
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
