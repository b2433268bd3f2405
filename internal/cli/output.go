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

// Output formats. Templates work as in kubectl.
const (
	formatText       = "text"
	formatJSON       = "json"
	formatYAML       = "yaml"
	formatJSONPath   = "jsonpath="
	formatGoTemplate = "go-template="
	formatMarkdown   = "markdown" // plans only: a comment for a pull request
)

// resultFormats returns the formats that every command with a result supports.
func resultFormats() []string {
	return []string{formatText, formatJSON, formatYAML, formatJSONPath, formatGoTemplate}
}

// outputFlag adds -o to a command that prints a result. more are additional formats.
func outputFlag(cmd *cobra.Command, into *string, more ...string) {
	formatFlag(cmd, into, append(resultFormats(), more...), "")
}

// objectFlag adds -o to a command that prints objects; the default is YAML.
func objectFlag(cmd *cobra.Command, into *string) {
	formatFlag(cmd, into, []string{formatYAML, formatJSON, formatJSONPath, formatGoTemplate}, "")
}

// eventsFlag adds -o to a command that carries out a plan.
func eventsFlag(cmd *cobra.Command, into *string) {
	formatFlag(cmd, into, []string{formatText, formatJSON}, " (json prints a stream of events)")
}

// formatFlag adds -o with these formats. The first format is the default. The help text ends with note.
func formatFlag(cmd *cobra.Command, into *string, formats []string, note string) {
	*into = formats[0]
	value := &formatValue{into, formats}
	cmd.Flags().VarP(value, "output", "o", "output format: "+value.joinFormats()+note)
	completeFlag(cmd, "output", formats...)
}

// formatValue is a flag value that must be one of formats. Other values are rejected when the command line is parsed,
// before any host is contacted.
type formatValue struct {
	value   *string
	formats []string
}

// String returns the value.
func (f *formatValue) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// Set parses the value; table is an alias of text.
func (f *formatValue) Set(value string) error {
	if value == "table" && slices.Contains(f.formats, formatText) {
		value = formatText
	}
	if !slices.ContainsFunc(f.formats, func(format string) bool {
		return format == value || strings.HasSuffix(format, "=") && strings.HasPrefix(value, format)
	}) {
		return fmt.Errorf("--output must be %s, not %q", f.joinFormats(), value)
	}
	if _, err := newTemplatePrinter(value); err != nil {
		return fmt.Errorf("--output %s: %w", value, err)
	}
	*f.value = value
	return nil
}

// Type returns the placeholder in the help.
func (*formatValue) Type() string { return "FORMAT" }

// joinFormats returns the formats as a phrase, such as "text, json or yaml".
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

// newTemplatePrinter returns a printer for a template format, or nil for other formats. It fails if the template is not
// valid.
func newTemplatePrinter(format string) (printers.ResourcePrinter, error) {
	if text, ok := strings.CutPrefix(format, formatJSONPath); ok {
		p, err := printers.NewJSONPathPrinter(text)
		if err != nil {
			return nil, err
		}
		p.AllowMissingKeys(true) // as in kubectl, because empty optional fields are left out
		return p, nil
	}
	if text, ok := strings.CutPrefix(format, formatGoTemplate); ok {
		return printers.NewGoTemplatePrinter([]byte(text))
	}
	return nil, nil //nolint:nilnil // not a template
}

// printResult prints a result as text, or as a document in another of resultFormats. It calls text or document, but not
// both. docs/json.md describes the documents.
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

// printTemplate executes a template. If the template fails, the exit status is that of a mistake in the command line.
func printTemplate(out io.Writer, format string, doc []byte) error {
	printer, err := newTemplatePrinter(format)
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

// jsonEncoder returns a function for printResult that encodes value as indented JSON without escaping <, > and &.
func jsonEncoder(value any) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err := encoder.Encode(value)
		return b.Bytes(), err
	}
}
