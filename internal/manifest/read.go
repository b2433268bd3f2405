package manifest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"go.yaml.in/yaml/v3"
	"io"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/text/pattern"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxFileSize is the maximum size of a manifest or Terraform output in bytes. A state with a thousand machines has a
// few megabytes.
const maxFileSize = 64 << 20

var errTooLarge = fmt.Errorf("the file is larger than %d MiB", maxFileSize>>20)

// readManifest reads and decodes the manifest. It returns false if no further checks are possible.
func (l *loader) readManifest() bool {
	data, err := l.readManifestFile()
	if err != nil {
		l.reportFile(l.ManifestPath, "use --manifest to name the manifest", fmt.Errorf("read the manifest: %w", err))
		return false
	}
	documents, ok := l.parseYAML(data)
	if !ok {
		return false
	}
	if slices.ContainsFunc(documents, isObject) {
		return l.readObjects(documents)
	}
	root, ok := l.checkOneDocument(documents)
	if !ok || !l.checkTypeMeta(root) {
		return false
	}
	l.decodeManifest(root)
	return true
}

// decodeManifest decodes the manifest into the cluster.
func (l *loader) decodeManifest(root *yaml.Node) {
	d := &decoder{
		loader: l, file: l.ManifestPath, where: l.where, what: "field of a manifest", nulls: true,
		root: reflect.TypeFor[v1beta2.KubeOneCluster](),
	}
	d.decodeValue(place{node: root}, root, reflect.ValueOf(l.cluster).Elem())
}

func (l *loader) readManifestFile() ([]byte, error) {
	switch {
	case l.ManifestReader != nil:
		return readAll(l.ManifestReader)
	case l.ManifestPath == "-" && l.TerraformPath == "-":
		return nil, errors.New("the manifest and the Terraform output cannot both be read from standard input")
	case l.ManifestPath == "-":
		return l.readStdin()
	}
	return readFile(l.ManifestPath)
}

func (l *loader) readStdin() ([]byte, error) {
	if l.Stdin == nil {
		return nil, errors.New("there is no standard input")
	}
	return readAll(l.Stdin)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileSize {
		return nil, errTooLarge
	}
	return decodeText(data), nil
}

// decodeText returns the text of a file in UTF-8 without a byte order mark. Some shells write UTF-16 to files.
func decodeText(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	units := make([]uint16, 0, len(data)/2)
	for at := 2; at+1 < len(data); at += 2 {
		units = append(units, order.Uint16(data[at:]))
	}
	return []byte(string(utf16.Decode(units)))
}

// parseYAML returns the root nodes of the documents. It reports a problem and returns false if the text is not valid
// YAML.
func (l *loader) parseYAML(data []byte) ([]*yaml.Node, bool) {
	var found []*yaml.Node
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return found, true
		}
		if err != nil {
			l.reportYAML(err)
			return nil, false
		}
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 && doc.Content[0].ShortTag() != "!!null" {
			root := doc.Content[0]
			root.HeadComment, root.FootComment = doc.HeadComment+root.HeadComment, root.FootComment+doc.FootComment
			found = append(found, root)
		}
	}
}

// checkOneDocument returns the only document. It reports a problem and returns false if there are none or several.
func (l *loader) checkOneDocument(documents []*yaml.Node) (*yaml.Node, bool) {
	switch len(documents) {
	case 0:
		l.found = append(l.found, Problem{
			File:     l.ManifestPath,
			Message:  "the file does not contain a manifest",
			Hint:     "kubeone config print prints an example",
			Severity: Error,
		})
	case 1:
		return documents[0], true
	default:
		second := documents[1]
		l.found = append(l.found,
			Problem{File: l.ManifestPath, Line: second.Line, Column: second.Column, Severity: Error,
				Message: fmt.Sprintf("the file contains %d documents, but a manifest is one document", len(documents)),
				Hint:    "remove the other documents and the --- separators"})
	}
	return nil, false
}

var yamlLine = pattern.Lazy(`^yaml: line (\d+): `)

// reportYAML reports an error of the YAML parser. The line number is only in the text of the error.
func (l *loader) reportYAML(err error) {
	p := Problem{
		File:     l.ManifestPath,
		Message:  "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: "),
		Severity: Error,
		cause:    err,
	}
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1]) // the expression matches digits only
		p.Message = "not valid YAML: " + strings.TrimPrefix(err.Error(), m[0])
		p.Hint = "the cause may be on the previous line"
	}
	if strings.Contains(p.Message, "cannot start any token") {
		p.Hint = "indent with spaces, not tabs"
	}
	l.found = append(l.found, p)
}

// checkTypeMeta checks apiVersion and kind. It runs before decoding, because the fields of another kind would only
// produce misleading problems.
func (l *loader) checkTypeMeta(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		l.found = append(l.found, Problem{File: l.ManifestPath, Line: root.Line, Column: root.Column, Severity: Error,
			Message: "expected fields, got " + describeNode(root, false),
			Hint:    "a manifest starts with apiVersion: " + v1beta2.APIVersion})
		return false
	}
	version := l.checkConstant(root, "apiVersion", v1beta2.APIVersion)
	return l.checkConstant(root, "kind", v1beta2.Kind) && version
}

// checkConstant reports a problem and returns false unless the field has the only supported value.
func (l *loader) checkConstant(root *yaml.Node, name, want string) bool {
	p := Problem{File: l.ManifestPath, Line: root.Line, Column: root.Column, Path: name, Severity: Error,
		Message: "is required", Hint: "write " + name + ": " + want}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key, value := root.Content[i], root.Content[i+1]; key.Value == name {
			if value.Value == want {
				return true
			}
			p.Line, p.Column = value.Line, value.Column
			p.Message = fmt.Sprintf("%q is not supported", value.Value)
			break
		} else if near := suggestName(key.Value, []string{name}); near != "" {
			p.Line, p.Column, p.Hint = key.Line, key.Column,
				fmt.Sprintf("did you misspell it? write %s: %s", name, want)
		}
	}
	l.found = append(l.found, p)
	return false
}

// readCABundle copies the content of certificateAuthority.file into certificateAuthority.bundle, so that later stages
// do not need the file.
func (l *loader) readCABundle() {
	ca := &l.cluster.CertificateAuthority
	if ca.File == "" {
		return
	}
	const path = "certificateAuthority.file"
	at := l.where.findPosition(path)
	at.Path = path
	l.where[path] = at
	var data []byte
	err := l.refuseFile()
	if err == nil {
		data, err = readFile(l.absolutePath(ca.File))
	}
	switch {
	case err != nil:
		l.reportPath(path, Error, "the path is relative to the manifest directory", err.Error())
	case ca.Bundle != "":
		l.reportPath(path, Error, "keep one of them", "cannot be set together with certificateAuthority.bundle")
	default:
		ca.Bundle, ca.File = string(data), ""
		l.where["certificateAuthority.bundle"] = at
	}
}

// refuseFile returns an error if the manifest must not name files.
func (l *loader) refuseFile() error {
	if l.NoFiles {
		return errors.New("is a file on another machine: write its content into the manifest instead")
	}
	return nil
}

// absolutePath returns the absolute form of a path in the manifest: "~/" is the home directory, and other relative
// paths are relative to the directory of the manifest. It returns "" for "".
func (l *loader) absolutePath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && l.Home != "" {
		return filepath.Join(l.Home, rest)
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.dir, path)
}

// Severity says whether a problem stops the run.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	// Note marks a valid field that this version does not support.
	Note Severity = "note"
)

// Problem is one problem in an input file, and its position.
type Problem struct {
	File     string   `json:"file"`             // as the operator named it
	Line     int      `json:"line,omitempty"`   // from 1; 0 means the whole file
	Column   int      `json:"column,omitempty"` // from 1
	Path     string   `json:"path,omitempty"`   // "controlPlane.hosts[1].sshPort", as the file names it
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do: "did you mean sshPort?"
	Severity Severity `json:"severity"`
	cause    error
}

// String returns the problem on one line: file:line:column: severity: path: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	fmt.Fprintf(&b, ": %s: ", p.Severity)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is the error for an unusable manifest. It lists all problems, including warnings, by file and line.
type Problems struct {
	List []Problem
}

// Error returns one line for each problem.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, problem := range p.List {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the underlying errors, such as those from the file system, Terraform or the context.
func (p *Problems) Unwrap() []error {
	var causes []error
	for _, problem := range p.List {
		if problem.cause != nil {
			causes = append(causes, problem.cause)
		}
	}
	return causes
}

// reportPath adds a problem at a path in the manifest. If the value comes from another file, the problem has the
// position and path in that file.
func (l *loader) reportPath(path string, severity Severity, hint, message string) {
	at := l.where.findPosition(path)
	if at.File == "" {
		at.File = l.ManifestPath
	}
	if at.Path != "" {
		path = at.Path
	} else if l.sources != nil {
		path = l.pathInObject(path)
	}
	l.found = append(l.found, Problem{
		File: at.File, Line: at.Line, Column: at.Column, Path: path,
		Message: message, Hint: hint, Severity: severity,
	})
}

// reportFile adds an error about a whole file.
func (l *loader) reportFile(file, hint string, cause error) {
	l.found = append(l.found, Problem{File: file, Message: cause.Error(), Hint: hint, Severity: Error, cause: cause})
}

func (l *loader) hasErrors() bool { return HasErrors(l.found) }

// HasErrors reports whether at least one problem has the severity Error.
func HasErrors(list []Problem) bool {
	return slices.ContainsFunc(list, func(p Problem) bool { return p.Severity == Error })
}

// unsupportedFieldNotes returns a note for each unsupported field that is set. The severity is Error for security
// settings, which apply refuses.
func (l *loader) unsupportedFieldNotes() []Problem {
	before := len(l.found)
	security := l.cluster.SecurityNotCarriedOut()
	for _, path := range l.cluster.NotCarriedOut() {
		if slices.Contains(security, path) {
			l.reportPath(path, Error, "remove it",
				"is not supported by this version; apply does not run while it is set")
		} else {
			l.reportPath(path, Note, "", "is not supported by this version")
		}
	}
	notes := slices.Clone(l.found[before:])
	l.found = l.found[:before]
	l.sortProblems(notes)
	return notes
}

// sortedProblems returns all problems by file and line, those in the manifest first.
func (l *loader) sortedProblems() *Problems {
	l.sortProblems(l.found)
	// A problem in a Terraform host group is found once for each of its hosts.
	l.found = slices.CompactFunc(l.found, func(a, b Problem) bool { return a.String() == b.String() })
	return &Problems{List: l.found}
}

func (l *loader) sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(
			l.fileRank(a.File)-l.fileRank(b.File),
			strings.Compare(a.File, b.File),
			a.Line-b.Line,
			a.Column-b.Column,
			strings.Compare(a.Path, b.Path),
		)
	})
}

func (l *loader) fileRank(file string) int {
	if file == l.ManifestPath {
		return 0
	}
	return 1
}

// isExplained reports whether a reported problem is the cause of a finding: one at or above the path of the finding or,
// for a missing field, also below it.
func (l *loader) isExplained(f v1beta2.Finding) bool {
	return slices.ContainsFunc(l.explained, func(known string) bool {
		return isAtOrBelow(f.Path, known) || f.Missing && isAtOrBelow(known, f.Path)
	})
}
