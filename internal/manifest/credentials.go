package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"go.yaml.in/yaml/v3"
	"io"
	"io/fs"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/text/pattern"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxCredentials is the maximum size of a credentials file in bytes.
const maxCredentials = 1 << 20

// credentialsFile is a credentials file in the format of KubeOne.
type credentialsFile struct {
	// RegistriesAuth is a YAML document as text; see registriesAuth.
	RegistriesAuth string `json:"registriesAuth,omitempty" secret:"true"`
	// CustomSecrets are values for the templates of all addons.
	CustomSecrets map[string]string `json:"customSecrets,omitempty" secret:"true"`
	// AddonParams are secret parameters of addons, by addon.
	AddonParams map[string]map[string]string `json:"addonParams,omitempty" secret:"true"`
}

// registriesAuth is the document in RegistriesAuth: a ContainerRuntimeContainerd with only the credentials.
type registriesAuth struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Registries map[string]registryAuth `json:"registries"`
}

type registryAuth struct {
	Auth *v1beta2.ContainerdRegistryAuthConfig `json:"auth,omitempty" secret:"true"`
}

// registriesKind is the kind of the document registriesAuth.
const registriesKind = "ContainerRuntimeContainerd"

// cloudCredentials matches keys for clouds in credentials files for KubeOne. Those of other clouds are ignored.
var cloudCredentials = pattern.Lazy(`^(cloudConfig|csiConfig|` +
	`((MC|CCM|OSM)_)?(AWS|ARM|DIGITALOCEAN|GOOGLE|HCLOUD|KUBEVIRT|NUTANIX|OS|METAL|PACKET|VSPHERE|VCD)_[0-9A-Z_]+)$`)

// readCredentials reads the registry credentials from the credentials file. They take precedence over those in the
// manifest.
func (l *loader) readCredentials() {
	if l.CredentialsPath == "" {
		return
	}
	l.registries = map[string]v1beta2.ContainerdRegistryAuthConfig{}
	data, err := readPrivateFile(l.CredentialsPath)
	if err != nil {
		l.reportCredentialsFile(err)
		return
	}
	root, ok := l.parseCredentials(data, 0)
	if !ok || root == nil {
		return
	}
	text := fieldValue(root, "registriesAuth")
	l.takeCloudKeys(root)
	file := credentialsFile{}
	l.credentialsDecoder("key of a credentials file", file).
		decodeValue(place{node: root}, root, reflect.ValueOf(&file).Elem())
	l.customSecrets, l.secretParams = file.CustomSecrets, file.AddonParams
	if file.RegistriesAuth != "" {
		l.readRegistries(text, file.RegistriesAuth)
	}
}

func (l *loader) reportCredentialsFile(err error) {
	hint := "use --credentials to name the file"
	if errors.Is(err, errNotPrivate) {
		hint = "chmod 600 " + l.CredentialsPath
	}
	l.reportFile(l.CredentialsPath, hint, fmt.Errorf("read the credentials: %w", err))
}

var errNotPrivate = errors.New("users other than its owner can read or write the file")

// readPrivateFile reads a file and fails if users other than its owner can access it.
func readPrivateFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%w (mode %04o)", errNotPrivate, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err == nil && len(data) > maxCredentials {
		err = fmt.Errorf("the file is larger than %d KiB", maxCredentials>>10)
	}
	return data, err
}

// parseCredentials parses a YAML document that begins after the given number of lines in the file. It returns nil and
// true if the text is empty, and false after it reported a problem. The problems do not contain messages of the parser,
// which may quote a secret.
func (l *loader) parseCredentials(data []byte, before int) (*yaml.Node, bool) {
	var doc, second yaml.Node
	read := yaml.NewDecoder(bytes.NewReader(data))
	err := read.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	p := Problem{File: l.CredentialsPath, Severity: Error, Message: "not valid YAML",
		Hint: "put values with characters other than letters and digits in quotes"}
	switch {
	case err != nil:
		var line int
		if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
			_, _ = fmt.Sscan(m[1], &line) // the expression matches digits only
			p.Line = before + line
		}
		l.found = append(l.found, p)
		return nil, false
	case !errors.Is(read.Decode(&second), io.EOF):
		p.Line, p.Message, p.Hint = before+second.Line, "contains more than one document", "remove the other documents"
		l.found = append(l.found, p)
		return nil, false
	case len(doc.Content) == 0 || isNull(doc.Content[0]):
		return nil, true
	case doc.Content[0].Kind != yaml.MappingNode:
		p.Line, p.Message, p.Hint = before+doc.Content[0].Line, "expected keys and values", "for example registriesAuth: |"
		l.found = append(l.found, p)
		return nil, false
	}
	if before > 0 {
		shiftLines(doc.Content[0], before)
	}
	return doc.Content[0], true
}

// shiftLines moves the nodes of an embedded document to their lines in the file. It clears their columns, which are not
// known.
func shiftLines(n *yaml.Node, lines int) {
	n.Line, n.Column = n.Line+lines, 0
	for _, below := range n.Content {
		shiftLines(below, lines)
	}
}

// takeCloudKeys removes the keys for clouds, and keeps the values that the external cloud needs. It warns about others.
func (l *loader) takeCloudKeys(root *yaml.Node) {
	l.cloudKeys = map[string]string{}
	for i := 0; i+1 < len(root.Content); {
		key, value := root.Content[i], root.Content[i+1]
		if !cloudCredentials().MatchString(key.Value) && !l.usesCloudKey(key.Value) {
			i += 2
			continue
		}
		p := Problem{File: l.CredentialsPath, Line: key.Line, Column: key.Column, Path: key.Value, Severity: Warning}
		switch {
		case !l.usesCloudKey(key.Value):
			p.Message = "is not used by this version"
		case value.Kind != yaml.ScalarNode:
			p.Severity, p.Message = Error, "expected text, got "+describeNode(value, true)
		default:
			l.cloudKeys[key.Value] = value.Value
		}
		if p.Message != "" {
			l.found = append(l.found, p)
		}
		root.Content = slices.Delete(root.Content, i, i+2)
	}
}

func (l *loader) credentialsDecoder(what string, root any) *decoder {
	l.credentialsPositions = positions{}
	return &decoder{
		loader: l, file: l.CredentialsPath, where: l.credentialsPositions, what: what, nulls: true,
		root: reflect.TypeOf(root),
	}
}

// readRegistries reads the registry credentials from the embedded document.
func (l *loader) readRegistries(at *yaml.Node, text string) {
	before := at.Line - 1
	if at.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		before = at.Line
	}
	root, ok := l.parseCredentials([]byte(text), before)
	if !ok || root == nil {
		return
	}
	doc := registriesAuth{}
	l.credentialsDecoder("field of registriesAuth, which contains only credentials", doc).
		decodeValue(place{path: "registriesAuth", node: root}, root, reflect.ValueOf(&doc).Elem())
	l.checkCredentialsField("registriesAuth.apiVersion", doc.APIVersion, v1beta2.APIVersion)
	l.checkCredentialsField("registriesAuth.kind", doc.Kind, registriesKind)
	for _, name := range slices.Sorted(maps.Keys(doc.Registries)) {
		path := v1beta2.Child("registriesAuth.registries", name)
		auth := doc.Registries[name].Auth
		if message, hint := v1beta2.RegistryProblem(name); message != "" {
			l.reportCredentials(path, hint, message)
			continue
		}
		if auth == nil {
			l.reportCredentials(path, "add auth: with username and password", "contains no credentials")
			continue
		}
		if slices.ContainsFunc(l.explained, func(known string) bool { return isAtOrBelow(known, path+".auth") }) {
			continue
		}
		if field, message, hint := auth.Problem(); message != "" {
			l.reportCredentials(path+".auth"+field, hint, message)
			continue
		}
		l.registries[name] = *auth
	}
}

func (l *loader) checkCredentialsField(path, value, want string) {
	if value != want && !slices.Contains(l.explained, path) {
		l.reportCredentials(path, "write "+want, fmt.Sprintf("%q is not supported", value))
	}
}

func (l *loader) reportCredentials(path, hint, message string) {
	at := l.credentialsPositions.findPosition(path)
	l.found = append(l.found, Problem{
		File: l.CredentialsPath, Line: at.Line, Column: at.Column, Path: path, Message: message, Hint: hint,
		Severity: Error,
	})
}

// decodeScalar decodes a string, number or boolean.
func (d *decoder) decodeScalar(at place, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.addError(at, "", "expected %s, got %s", kindName(v.Kind()), describeNode(n, at.secret))
		return
	}
	switch v.Kind() {
	case reflect.String:
		// Numbers and booleans keep their spelling: "1.30" stays 1.30, and labels need no quotes.
		v.SetString(n.Value)
	case reflect.Bool:
		d.decodeBool(at, n, v)
	case reflect.Int, reflect.Int32, reflect.Int64:
		d.decodeInteger(at, n, v)
	default:
		d.addError(at, "", "cannot be set")
	}
}

func (d *decoder) decodeBool(at place, n *yaml.Node, v reflect.Value) {
	switch {
	case n.ShortTag() == "!!bool":
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case slices.Contains([]string{"yes", "on", "true"}, strings.ToLower(n.Value)):
		d.addError(at, "write true, without quotes", "expected true or false, got %s", describeNode(n, at.secret))
	case slices.Contains([]string{"no", "off", "false"}, strings.ToLower(n.Value)):
		d.addError(at, "write false, without quotes", "expected true or false, got %s", describeNode(n, at.secret))
	default:
		d.addError(at, "", "expected true or false, got %s", describeNode(n, at.secret))
	}
}

func (d *decoder) decodeInteger(at place, n *yaml.Node, v reflect.Value) {
	number, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
	switch {
	case n.ShortTag() == "!!int" && (err != nil || v.OverflowInt(number)):
		d.addError(at, "", "%s is too large", n.Value)
	case n.ShortTag() == "!!int":
		v.SetInt(number)
	case err == nil:
		d.addError(at, "write "+n.Value+" without quotes", "expected a number, got %s", describeNode(n, at.secret))
	default:
		d.addError(at, "", "expected a whole number, got %s", describeNode(n, at.secret))
	}
}

func (d *decoder) decodeAnyScalar(at place, n *yaml.Node, v reflect.Value) {
	var value any
	if err := n.Decode(&value); err != nil {
		d.addError(at, "", "cannot be decoded as %s", n.ShortTag())
		return
	}
	switch value.(type) {
	case nil:
	case bool, string, int, int64, uint64, float64:
		v.Set(reflect.ValueOf(value))
	default: // times and bytes do not exist in JSON
		v.Set(reflect.ValueOf(n.Value))
	}
}

// describeNode describes a node for messages: its type and, unless it is long or secret, its value.
func describeNode(n *yaml.Node, secret bool) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return describeNode(n.Alias, secret)
	}
	kind := map[string]string{
		"!!int":   "the number",
		"!!float": "the number",
		"!!bool":  "the boolean",
		"!!null":  "nothing",
	}[n.ShortTag()]
	text := " " + n.Value
	if kind == "" {
		kind, text = "the text", fmt.Sprintf(" %q", n.Value)
	}
	if secret || len(n.Value) > 40 || n.ShortTag() == "!!null" {
		text = ""
	}
	return kind + text
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}
