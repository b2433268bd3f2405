package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/model/observed"
)

// whole returns the data of a valid record, and the decoded record.
func whole() (map[string]string, *Record) {
	return map[string]string{
			"cluster": "demo", "manifestDigest": "abc", "manifest": "name: demo\n", "runID": "run-1",
			"hardening": "none", "nodes": `{"10.0.0.1":"cp-1","fd00::1":"fd00::1"}`, "addons": `{"flannel":"d1"}`,
			"history":         `[{"id":"run-1","result":"done"}]`,
			"formerEndpoints": "old.example.com 192.0.2.7 fd00::7 *.example.com",
		}, &Record{
			Cluster: "demo", ManifestDigest: "abc", Manifest: "name: demo\n", RunID: "run-1", Hardening: "none",
			Nodes:           map[string]string{"10.0.0.1": "cp-1", "fd00::1": "fd00::1"},
			Addons:          map[string]string{"flannel": "d1"},
			History:         []Run{{ID: "run-1", Result: Done}},
			FormerEndpoints: []string{"old.example.com", "192.0.2.7", "fd00::7", "*.example.com"},
		}
}

// bad returns invalid texts by key.
func bad() map[string][]string {
	return map[string][]string{
		"cluster":        {"de mo", "x\x1b[2J"},
		"manifestDigest": {"a b", strings.Repeat("a", 300)},
		"manifest":       {"name: [", "x", "- a\n"},
		"runID":          {"run 1"},
		"hardening":      {"Baseline", "off"},
		"nodes":          {"x", "[]", `{"a":1}`, `{"a":"b c"}`, `{"a":"b"} ` + "{}"},
		"addons":         {"x", `{"flannel":{}}`, `{"flannel":"a\nb"}`},
		"history":        {"x", "{}", `[{"started":1}]`},
		"formerEndpoints": {
			"old.example.com not_a_name", "a,b", "fe80::1%eth0", "https://old.example.com", "-x",
			strings.Repeat("a.example.com ", 257),
		},
	}
}

func TestAKeyThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	data, want := whole()
	if diff := cmp.Diff(want, Decode(data)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for key, texts := range bad() {
		for _, text := range texts {
			data, want := whole()
			delete(data, key)
			missing := Decode(data)
			data[key] = text
			got := Decode(data)
			if why := got.Unreadable[key]; why == "" || len(got.Unreadable) > 1 {
				t.Errorf("%s %q: unreadable are %v", key, text, got.Unreadable)
			}
			got.Unreadable = nil
			if diff := cmp.Diff(missing, got); diff != "" {
				t.Errorf("%s %q, other than missing (-missing +got):\n%s", key, text, diff)
			}
			if cmp.Diff(want, got) == "" {
				t.Errorf("%s %q is read as what it should be", key, text)
			}
		}
	}
}

// An update keeps the text of an unreadable key, unless it sets that key.
func TestAnUpdateLosesNoOtherKey(t *testing.T) {
	t.Parallel()
	for key, texts := range bad() {
		data, _ := whole()
		data[key] = texts[0]
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: "kube-system"}, Data: data}
		c, _ := faked(t, held)
		read := func() map[string]string {
			found, err := c.Kubernetes.CoreV1().ConfigMaps("kube-system").Get(t.Context(), Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return found.Data
		}
		if err := c.UpdateRecord(t.Context(), func(r *Record) error {
			r.AddRun(Run{ID: "run-2", Result: Done})
			return nil
		}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		got, before := read(), Decode(data)
		if key != "history" && got[key] != texts[0] {
			t.Errorf("%s is %q now", key, got[key])
		}
		after := Decode(got)
		if len(after.History) != len(before.History)+1 || after.IsUnreadable("history") {
			t.Errorf("%s: history %+v, %v", key, after.History, after.Unreadable)
		}
		after.History, before.History = nil, nil
		if key == "history" {
			before.Unreadable = nil
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s (-before +after):\n%s", key, diff)
		}
		if err := c.UpdateRecord(t.Context(), func(r *Record) error {
			r.MarkRepaired(key)
			return nil
		}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if left := Decode(read()).Unreadable; len(left) > 0 {
			t.Errorf("%s is not repaired: %v", key, left)
		}
	}
}

// Otherwise the digests of the other addons would be lost.
func TestNoAddonIsNotedBesideThoseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	data, _ := whole()
	data["addons"] = "x"
	c, api := faked(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: "kube-system"}, Data: data,
	})
	err := c.UpdateRecord(t.Context(), func(r *Record) error {
		r.Addons["coredns"] = "d2"
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "the key "+observed.RecordAddons+" in ConfigMap") {
		t.Errorf("got %v", err)
	}
	found, err := api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), Name, metav1.GetOptions{})
	if err != nil || found.Data["addons"] != "x" {
		t.Errorf("%v, %v", found.Data, err)
	}
}
