package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go.yaml.in/yaml/v3"
	"slices"
	"sort"
	"strings"
)

// parseJSON parses JSON into YAML nodes. The YAML parser is not suitable, because it does not accept all JSON escapes
// and its messages would refer to YAML.
func parseJSON(data []byte) (*yaml.Node, *jsonError) {
	lines := newLines(data)
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		at := len(data)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = int(syntax.Offset)
		}
		line, column := lines.lineAndColumn(max(at-1, 0))
		return nil, &jsonError{line: line, column: column, err: err}
	}
	r := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), lines: lines}
	r.dec.UseNumber()
	node, err := r.readNode(0)
	if err != nil {
		return nil, &jsonError{line: 1, column: 1, err: err}
	}
	return node, nil
}

// jsonError is a syntax error in JSON, and its position.
type jsonError struct {
	line, column int
	err          error
}

type jsonReader struct {
	data  []byte
	dec   *json.Decoder
	lines lines
}

// readNode reads the next value.
func (r *jsonReader) readNode(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("is nested too deeply")
	}
	start := r.tokenStart()
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{}
	n.Line, n.Column = r.lines.lineAndColumn(start)
	switch t := token.(type) {
	case json.Delim:
		return n, r.readChildren(n, t, depth)
	case string:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!str", t
	case bool:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!bool", fmt.Sprint(t)
	case nil:
		n.Kind, n.Tag = yaml.ScalarNode, "!!null"
	case json.Number:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!int", t.String()
		if strings.ContainsAny(t.String(), ".eE") {
			n.Tag = "!!float"
		}
	}
	return n, nil
}

// readChildren reads the elements of an object or array and its closing delimiter.
func (r *jsonReader) readChildren(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for r.dec.More() {
		child, err := r.readNode(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, child)
	}
	_, err := r.dec.Token()
	return err
}

// tokenStart returns the offset of the next token.
func (r *jsonReader) tokenStart() int {
	at := int(r.dec.InputOffset())
	for at < len(r.data) && slices.Contains([]byte(" \t\r\n,:"), r.data[at]) {
		at++
	}
	return at
}

// lines holds the offsets at which lines begin.
type lines []int

func newLines(data []byte) lines {
	l := lines{0}
	for i, b := range data {
		if b == '\n' {
			l = append(l, i+1)
		}
	}
	return l
}

// lineAndColumn returns the line and column of an offset, both from 1.
func (l lines) lineAndColumn(offset int) (line, column int) {
	line = sort.SearchInts(l, offset+1)
	return line, offset - l[line-1] + 1
}
