package v1beta2

import (
	"reflect"
	"strings"
	"unicode"
)

// checkControlCharacters finds control characters in all strings of the manifest. A string may be written to a file on
// a host, a command line or a terminal, where an additional line would be another setting. Fields with several lines
// have the tag lines:"yes".
func (f *findings) checkControlCharacters(c *KubeOneCluster) {
	walkFields(reflect.ValueOf(c).Elem(), "", func(path string, v reflect.Value, field reflect.StructField) bool {
		f.checkText(path, v, field.Tag.Get("lines") == "yes")
		return true
	})
}

// checkText checks a string, a pointer to one, the strings of a list, and the keys and string values of a map.
func (f *findings) checkText(path string, v reflect.Value, lines bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.String {
			f.checkText(path, v.Elem(), lines)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			for i := range v.Len() {
				f.checkText(Item(path, i), v.Index(i), lines)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			at := Child(path, key.String())
			f.checkText(at, key, false)
			if value := v.MapIndex(key); value.Kind() == reflect.String {
				f.checkText(at, value, lines)
			}
		}
	case reflect.String:
		f.controls(path, v.String(), lines)
	default:
	}
}

// controls does not repeat the value, which may be a secret.
func (f *findings) controls(path, s string, lines bool) {
	for _, r := range s {
		if unicode.IsControl(r) && (!lines || !strings.ContainsRune("\n\r\t", r)) {
			f.errorf(path, "write it on one line, without control characters", "contains the character %U", r)
			return
		}
	}
}
