package v1beta2

import (
	"reflect"
	"strings"
	"testing"
)

// TestEveryTextIsChecked puts a line break into each text, and expects a finding at its path, unless the field may have
// several lines.
func TestEveryTextIsChecked(t *testing.T) {
	t.Parallel()
	c := &KubeOneCluster{}
	several := map[string]bool{}
	twoLines("", reflect.ValueOf(c).Elem(), false, several)
	f := &findings{}
	f.checkControlCharacters(c)
	found := map[string]bool{}
	for _, finding := range f.list {
		found[finding.Path] = true
		if several[finding.Path] {
			t.Errorf("%s may have several lines", finding.Path)
		}
		if !strings.Contains(finding.Message, "U+000A") {
			t.Errorf("%s: %s", finding.Path, finding.Message)
		}
	}
	for _, path := range []string{
		"name", "proxy.noProxy", "controlPlane.hosts[0].hostname", "staticWorkers.hosts[0].labels.key",
		"controlPlane.hosts[0].taints[0].value", "containerRuntime.containerd.registries.key.mirrors[0]",
		"apiEndpoint.alternativeNames[0]", "controlPlaneComponents.apiServer.flags.key",
	} {
		if !found[path] {
			t.Errorf("%s is not checked", path)
		}
	}
	for _, path := range []string{"caBundle", "certificateAuthority.bundle", "addons.globalParams.key"} {
		if !several[path] {
			t.Errorf("%s is to have several lines", path)
		}
	}
	if len(found) < 100 {
		t.Errorf("only %d texts were found", len(found))
	}
	escape := &findings{}
	escape.controls("caBundle", "a\n\x1b[2J", true)
	if len(escape.list) != 1 {
		t.Errorf("an escape sequence in a text of several lines: %v", escape.list)
	}
}

// twoLines gives every string two lines, and every pointer, list and map a value.
func twoLines(path string, v reflect.Value, lines bool, several map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		twoLines(path, v.Elem(), lines, several)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case field.Anonymous:
				twoLines(path, v.Field(i), false, several)
			case field.IsExported() && name != "" && name != "-":
				twoLines(Child(path, name), v.Field(i), field.Tag.Get("lines") == "yes", several)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			twoLines(Item(path, 0), v.Index(0), lines, several)
		}
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		twoLines(Child(path, "key"), item, lines, several)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), item)
	case reflect.String:
		v.SetString("a\nb")
		several[path] = lines
	default:
	}
}

func TestRegistriesAreHosts(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"docker.io": true, "registry.example.com:5000": true, "[fd00::1]:5000": true, "localhost": true,
		"10.0.0.1": true, "..": false, "../../etc/cron.d": false, "a/b": false, "": false, "a b": false,
		"a:b": false, "-": false,
	} {
		if registryHost(name) != good {
			t.Errorf("%q is a registry: %t, want %t", name, !good, good)
		}
	}
	f := &findings{}
	if f.registry(RegistryConfiguration{OverwriteRegistry: "../x", InsecureRegistry: true}); len(f.list) == 0 {
		t.Error("../x is taken as a registry")
	}
}
