package cli

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/view"
)

// fieldsOf returns the fields of a type by their names in docs/json.md: "members[].id".
func fieldsOf(of reflect.Type, prefix string) []string {
	var out []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			name, inner = name+"[]", inner.Elem()
		}
		out = append(out, prefix+name)
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			out = append(out, fieldsOf(inner, prefix+name+".")...)
		}
	}
	return out
}

func TestTheJSONOfEtcdAndBackupIsDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	item := regexp.MustCompile("(?m)^- (`[^`]+`(?:,\\s+`[^`]+`)*)(?::|$)")
	for heading, document := range map[string]any{
		"Etcd members": view.MembersDocument{}, "Etcd snapshot": view.SnapshotDocument{},
		"Etcd defragment": view.DefragmentDocument{}, "Failure": view.FailureDocument{},
		"Etcd disarm": view.DisarmDocument{}, "Backup": BackupDocument{}, "Backup inspect": BackupReadDocument{},
		"Certificates status": view.CertificatesDocument{}, "Manifest": view.ManifestDocument{},
		"Bundle create": BundleDocument{}, "Host list": view.PoolDocument{},
	} {
		_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
		if !found {
			t.Errorf("there is no section %q", heading)
			continue
		}
		below, _, _ = strings.Cut(below, "\n## ")
		var described []string
		for _, m := range item.FindAllStringSubmatch(below, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				described = append(described, strings.Trim(name, "` \n"))
			}
		}
		want := slices.DeleteFunc(fieldsOf(reflect.TypeOf(document), ""), func(name string) bool {
			return name == "format" || name == "cluster" || // described in the introduction
				strings.HasPrefix(name, "metadata.snapshot.") || // described under Etcd snapshot
				strings.HasPrefix(name, "metadata.") && heading == "Backup inspect" // described under Backup
		})
		slices.Sort(want)
		slices.Sort(described)
		if diff := cmp.Diff(want, described); diff != "" {
			t.Errorf("section %s (-fields of the program +described):\n%s", heading, diff)
		}
	}
}
