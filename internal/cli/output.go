package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"kubeone/internal/view"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// The formats in which a result is printed. The templates are those of kubectl.
const (
	formatText       = "text"
	formatJSON       = "json"
	formatYAML       = "yaml"
	formatJSONPath   = "jsonpath="
	formatGoTemplate = "go-template="
	formatMarkdown   = "markdown" // of a plan: a comment on a pull request
)

// resultFormats are the formats of every command that prints a result.
func resultFormats() []string {
	return []string{formatText, formatJSON, formatYAML, formatJSONPath, formatGoTemplate}
}

// outputFlag adds -o to a command that prints a result: the formats of all results, and others of its own.
func outputFlag(cmd *cobra.Command, into *string, own ...string) {
	formatFlag(cmd, into, append(resultFormats(), own...), "output format")
}

// objectFlag adds -o to a command that prints objects, as YAML unless told otherwise.
func objectFlag(cmd *cobra.Command, into *string) {
	formatFlag(cmd, into, []string{formatYAML, formatJSON, formatJSONPath, formatGoTemplate}, "output format")
}

// eventsFlag adds -o to a command that carries a plan out.
func eventsFlag(cmd *cobra.Command, into *string) {
	formatFlag(cmd, into, []string{formatText, formatJSON}, "output format (json is a stream of events)")
}

func formatFlag(cmd *cobra.Command, into *string, formats []string, usage string) {
	*into = formats[0]
	value := &formatValue{into, formats}
	cmd.Flags().VarP(value, "output", "o", usage+": "+value.joinFormats())
	completeFlag(cmd, "output", formats...)
}

// formatValue is a flag's value that is refused, before any host is asked, unless it is a format of the command.
type formatValue struct {
	value   *string
	formats []string
}

// String is the value.
func (f *formatValue) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// Set takes a value; table is another name for text.
func (f *formatValue) Set(value string) error {
	if value == "table" && slices.Contains(f.formats, formatText) {
		value = formatText
	}
	if !slices.ContainsFunc(f.formats, func(format string) bool {
		return format == value || strings.HasSuffix(format, "=") && strings.HasPrefix(value, format)
	}) {
		return fmt.Errorf("--output is %s, not %q", f.joinFormats(), value)
	}
	if _, err := templateOf(value); err != nil {
		return fmt.Errorf("--output %s: %w", value, err)
	}
	*f.value = value
	return nil
}

// Type is shown in the help.
func (*formatValue) Type() string { return "FORMAT" }

// joinFormats is what the value may be, in words.
func (f *formatValue) joinFormats() string {
	names := slices.Clone(f.formats)
	for i, name := range names {
		if strings.HasSuffix(name, "=") {
			names[i] = name + "TEMPLATE"
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// templateOf is the printer of a format that is a template; nil for another format.
func templateOf(format string) (printers.ResourcePrinter, error) {
	if text, ok := strings.CutPrefix(format, formatJSONPath); ok {
		p, err := printers.NewJSONPathPrinter(text)
		if err != nil {
			return nil, err
		}
		p.AllowMissingKeys(true) // as kubectl does: a field that may be absent is absent when it is empty
		return p, nil
	}
	if text, ok := strings.CutPrefix(format, formatGoTemplate); ok {
		return printers.NewGoTemplatePrinter([]byte(text))
	}
	return nil, nil //nolint:nilnil // not a template
}

// printResult prints a command's result in a format of resultFormats: as text, or the document that docs/json.md
// describes. The document is made only where it is printed.
func printResult(out io.Writer, format string, document func() ([]byte, error), text func(io.Writer) error) error {
	if format == formatText {
		return text(out)
	}
	doc, err := document()
	if err != nil {
		return err
	}
	switch format {
	case formatJSON:
	case formatYAML:
		if doc, err = yaml.JSONToYAML(doc); err != nil {
			return err
		}
	default:
		return printTemplate(out, format, doc)
	}
	_, err = out.Write(doc)
	return err
}

// printTemplate fills a template. What goes wrong there is a mistake in the command line.
func printTemplate(out io.Writer, format string, doc []byte) error {
	printer, err := templateOf(format)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(doc, &fields); err != nil {
		return err
	}
	var object runtime.Object = &unstructured.Unstructured{Object: fields}
	var text bytes.Buffer
	if err := printer.PrintObj(object, &text); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return &classError{view.ExitConfig, fmt.Errorf("--output: %s", line)}
	}
	_, err = out.Write(text.Bytes())
	return err
}

// documentOf is a value as an indented JSON document; <, > and & stand for themselves.
func documentOf(value any) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err := encoder.Encode(value)
		return b.Bytes(), err
	}
}
