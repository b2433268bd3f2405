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

// Output formats. The templates are those of kubectl.
const (
	formatText       = "text"
	formatJSON       = "json"
	formatYAML       = "yaml"
	formatJSONPath   = "jsonpath="
	formatGoTemplate = "go-template="
	formatMarkdown   = "markdown" // of a plan: a comment on a pull request
)

// resultFormats returns the formats of every command that prints a result.
func resultFormats() []string {
	return []string{formatText, formatJSON, formatYAML, formatJSONPath, formatGoTemplate}
}

// outputFlag adds -o to a command that prints a result; own are additional formats.
func outputFlag(cmd *cobra.Command, into *string, own ...string) {
	formatFlag(cmd, into, append(resultFormats(), own...), "")
}

// objectFlag adds -o to a command that prints objects; the default is YAML.
func objectFlag(cmd *cobra.Command, into *string) {
	formatFlag(cmd, into, []string{formatYAML, formatJSON, formatJSONPath, formatGoTemplate}, "")
}

// eventsFlag adds -o to a command that carries out a plan.
func eventsFlag(cmd *cobra.Command, into *string) {
	formatFlag(cmd, into, []string{formatText, formatJSON}, " (json prints a stream of events)")
}

// formatFlag adds -o with these formats; the first one is the default. The note ends the help.
func formatFlag(cmd *cobra.Command, into *string, formats []string, note string) {
	*into = formats[0]
	value := &formatValue{into, formats}
	cmd.Flags().VarP(value, "output", "o", "output format: "+value.joinFormats()+note)
	completeFlag(cmd, "output", formats...)
}

// formatValue is a flag value that must be one of formats. Parsing the command line refuses others, before any host is
// contacted.
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
	if _, err := templateOf(value); err != nil {
		return fmt.Errorf("--output %s: %w", value, err)
	}
	*f.value = value
	return nil
}

// Type returns the placeholder in the help.
func (*formatValue) Type() string { return "FORMAT" }

// joinFormats returns the formats as a phrase.
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

// templateOf returns the printer of a template format, or nil for another format.
func templateOf(format string) (printers.ResourcePrinter, error) {
	if text, ok := strings.CutPrefix(format, formatJSONPath); ok {
		p, err := printers.NewJSONPathPrinter(text)
		if err != nil {
			return nil, err
		}
		p.AllowMissingKeys(true) // like kubectl: empty optional fields are absent
		return p, nil
	}
	if text, ok := strings.CutPrefix(format, formatGoTemplate); ok {
		return printers.NewGoTemplatePrinter([]byte(text))
	}
	return nil, nil //nolint:nilnil // not a template
}

// printResult prints a result in one of resultFormats: as text, or as the document in docs/json.md. The document is
// created only if it is printed.
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

// printTemplate executes a template. Errors are mistakes in the command line.
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

// documentOf returns a function that encodes value as indented JSON without escaping <, > and &.
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
