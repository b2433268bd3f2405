package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
)

// writeFiles writes files below a new directory and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func loadAddons(t *testing.T, addons string, files map[string]string) (manifest.Loaded, error) {
	t.Helper()
	files["kubeone.yaml"] = demo + addons
	dir := writeFiles(t, files)
	o := manifest.Options{
		ManifestPath: filepath.Join(dir, "kubeone.yaml"), ReadAddons: true,
		Getenv: func(name string) string { return map[string]string{"TOKEN": "t0p"}[name] },
	}
	if files["credentials.yaml"] != "" {
		o.CredentialsPath = filepath.Join(dir, "credentials.yaml")
	}
	return manifest.Load(t.Context(), o)
}

func configMapOf(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {" + data + "}\n"
}

// folderFiles is a folder with four addons.
func folderFiles() map[string]string {
	return map[string]string{
		"addons/alpha/a.yaml": configMapOf("alpha", `size: "{{ .Params.size }}", tier: "{{ .Params.tier }}"`),
		"addons/raw/a.yaml":   configMapOf("raw", `rule: "{{ $labels.pod }}"`),
		"addons/zeta/a.yaml": configMapOf("zeta",
			`token: "{{ .Params.token }}", version: "{{ .Config.Versions.Kubernetes }}"`),
		"addons/last.yaml": configMapOf("last", `cluster: "{{ .CCMClusterName }}"`),
	}
}

// dataOf returns the data of the addons' ConfigMaps in order.
func dataOf(t *testing.T, loaded manifest.Loaded) []string {
	t.Helper()
	var out []string
	for _, a := range loaded.Addons.Custom {
		for _, o := range a.Objects {
			data, _ := o["data"].(map[string]any)
			line := a.Name + ":"
			for _, key := range []string{"cluster", "rule", "size", "tier", "token", "version"} {
				if text, found := data[key].(string); found {
					line += " " + key + "=" + text
				}
			}
			out = append(out, line)
		}
	}
	return out
}

func TestAddonsOfAManifest(t *testing.T) {
	t.Parallel()
	const listed = `
addons:
  path: ./addons
  globalParams: {size: "1", tier: all}
  addons:
  - {name: zeta, params: {token: "env:TOKEN"}}
  - {name: raw, disableTemplating: true}
  - {name: alpha, params: {size: "3"}}
  - {name: old, delete: true}
`
	all := []string{"zeta: token=t0p version=1.36.3", "raw: rule={{ $labels.pod }}", "alpha: size=3 tier=all",
		"root: cluster=demo"}
	loaded, err := loadAddons(t, listed, folderFiles())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, dataOf(t, loaded)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"old"}, loaded.Addons.Delete); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(loaded.ManifestText), "t0p") {
		t.Error("the manifest for the record contains the value of an environment variable")
	}
	off, err := loadAddons(t, strings.Replace(listed, "addons:\n", "addons:\n  enable: false\n", 1), folderFiles())
	if err != nil || off.Addons == nil || len(off.Addons.Custom) > 0 {
		t.Errorf("switched off: %v, %v", off.Addons, err)
	}
	files := folderFiles()
	delete(files, "addons/raw/a.yaml")
	other, err := loadAddons(t, "addons: {path: addons}\n", files)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"alpha: size= tier=", "zeta: token= version=1.36.3", "root: cluster=demo"}
	if diff := cmp.Diff(want, dataOf(t, other)); diff != "" {
		t.Error(diff)
	}
}

func TestSecretParametersOfAddons(t *testing.T) {
	t.Parallel()
	files := folderFiles()
	files["addons/raw/a.yaml"] = configMapOf("raw", `token: "{{ .CustomCredentials.shared }}"`)
	files["credentials.yaml"] = "customSecrets: {shared: s1}\naddonParams: {zeta: {token: s2}, alpha: {size: s3}}\n"
	loaded, err := loadAddons(t, "addons: {path: addons}\n", files)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"alpha: size=s3 tier=", "raw: token=s1", "zeta: token=s2 version=1.36.3", "root: cluster=demo"}
	if diff := cmp.Diff(want, dataOf(t, loaded)); diff != "" {
		t.Error(diff)
	}
	_, err = loadAddons(t, "addons: {path: addons, addons: [{name: zeta, params: {token: a}}]}\n", files)
	if err == nil || !strings.Contains(err.Error(), "params.token: is also in addonParams of the credentials file") {
		t.Errorf("%v", err)
	}
}

func TestAddonsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ addons, file, text, says string }{
		"no folder": {"{path: nowhere}", "", "", "addons.path: "},
		"unknown": {"{path: addons, addons: [{name: alpa}]}", "", "",
			`"alpa" is not a known addon: addons has no subfolder of that name with manifests (did you mean alpha?)`},
		"without a path": {"{addons: [{name: own}]}", "", "", `addons.path is not set`},
		"twice": {"{path: addons, addons: [{name: alpha}, {name: alpha}]}", "", "",
			`addons.addons[1].name: "alpha" is listed twice`},
		"variable": {"{path: addons, globalParams: {a: 'env:UNSET'}}", "", "",
			"addons.globalParams.a: the environment variable UNSET is not set"},
		"template": {"{path: addons}", "addons/alpha/a.yaml", "a: 1\n{{ nope }}",
			`addons/alpha/a.yaml:2: error: addons: function "nope" not defined`},
		"name": {"{path: addons}", "addons/Upper/a.yaml", "", `addons.path: "Upper" is not a valid addon name`},
		"no object": {"{path: addons}", "addons/alpha/b.yaml", "a: 1",
			"addons/alpha/b.yaml: error: addons: document 1: apiVersion is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := folderFiles()
			delete(files, "addons/raw/a.yaml")
			if c.file != "" {
				files[c.file] = c.text
			}
			_, err := loadAddons(t, "addons: "+c.addons+"\n", files)
			var problems *manifest.Problems
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAddonsOfKubeOneAreRefused(t *testing.T) {
	t.Parallel()
	for name, instead := range map[string]string{
		"machinecontroller":  "remove the entry: machineController",
		"cluster-autoscaler": "install its chart", "backups-restic": "remove the entry: control-plane hosts take",
	} {
		_, err := loadAddons(t, "addons: {addons: [{name: "+name+"}]}\n", folderFiles())
		if err == nil || !strings.Contains(err.Error(), "addon of KubeOne that kubeone does not have ("+instead) {
			t.Errorf("%s: %v", name, err)
		}
		loaded, err := loadAddons(t, "addons: {addons: [{name: "+name+", delete: true}]}\n", folderFiles())
		if err != nil || !slices.Contains(loaded.Addons.Delete, name) {
			t.Errorf("%s is not deleted: %v", name, err)
		}
	}
}

func TestEmbeddedAddonsOfAManifest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manifest string
		folder   string // with an addon of that name
		metrics  *bool
		custom   []string
		images   []string
		problem  string
	}{
		"nothing": {},
		"on": {
			manifest: "features: {metricsServer: {enable: true}}\n", metrics: new(true), images: []string{"metrics-server"},
		},
		"off": {manifest: "features: {metricsServer: {enable: false}}\n", metrics: new(false)},
		"listed": {
			manifest: "addons: {addons: [{name: metrics-server}]}\n", metrics: new(true), images: []string{"metrics-server"},
		},
		"deleted": {manifest: "addons: {addons: [{name: metrics-server, delete: true}]}\n", metrics: new(false)},
		"listed and off": {
			manifest: "features: {metricsServer: {enable: false}}\naddons: {addons: [{name: metrics-server}]}\n",
			metrics:  new(false),
		},
		"a subfolder of the name": {
			manifest: "features: {metricsServer: {enable: true}}\naddons: {path: addons}\n", folder: "metrics-server",
			metrics: new(true), custom: []string{"metrics-server"},
		},
		"StorageClass": {
			manifest: "addons: {addons: [{name: default-storage-class}]}\n", custom: []string{"default-storage-class"},
			images: []string{"default-storage-class"},
		},
		"StorageClass of a subfolder": {
			manifest: "addons: {path: addons, addons: [{name: default-storage-class}]}\n", folder: "default-storage-class",
			custom: []string{"default-storage-class"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			if c.folder != "" {
				files["addons/"+c.folder+"/a.yaml"] = configMapOf("a", "a: b")
			}
			loaded, err := loadAddons(t, c.manifest, files)
			if err != nil {
				t.Fatal(err)
			}
			var custom []string
			for _, a := range loaded.Addons.Custom {
				custom = append(custom, a.Name)
			}
			if diff := cmp.Diff(c.metrics, loaded.Cluster.MetricsServer) + cmp.Diff(c.custom, custom) +
				cmp.Diff(c.images, loaded.Cluster.AddonsWithImages()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTimersOnHostsOfAManifest(t *testing.T) {
	t.Parallel()
	defrag := desired.DefaultHostAddon(desired.EtcdDefragAddon)
	upgrades := desired.DefaultHostAddon(desired.UnattendedUpgradesAddon)
	sunday := desired.HostAddon{
		Name: "etcd-defrag", Schedule: desired.Calendar{Days: []time.Weekday{0}, Minute: 150}, Threshold: 45,
	}
	for addons, c := range map[string]struct {
		want []desired.HostAddon
		says string
	}{
		"[{name: etcd-defrag}]": {want: []desired.HostAddon{defrag}},
		"[{name: unattended-upgrades}, {name: etcd-defrag}]": {
			want: []desired.HostAddon{upgrades, defrag},
		},
		"[{name: etcd-defrag, delete: true}]":                                     {},
		"[{name: unattended-upgrades, delete: true}]":                             {},
		`[{name: etcd-defrag, params: {schedule: "Sun 02:30", threshold: "45"}}]`: {want: []desired.HostAddon{sunday}},
		`[{name: etcd-defrag, params: {schedule: daily}}]`: {
			says: `addons.addons[0].params.schedule: "daily" is not a time such as 03:00`},
		`[{name: etcd-defrag, params: {schedule: "3:00"}}]`:          {says: `"3:00" is not a time`},
		`[{name: etcd-defrag, params: {schedule: "24:00"}}]`:         {says: `"24:00" is not a time`},
		`[{name: etcd-defrag, params: {schedule: "sun 03:00"}}]`:     {says: `"sun" is not one of Sun, Mon`},
		`[{name: etcd-defrag, params: {schedule: "Sun,Sun 1:00"}}]`:  {says: "is not a time"},
		`[{name: etcd-defrag, params: {schedule: "Sun,Sun 01:00"}}]`: {says: "Sun is listed twice"},
		`[{name: etcd-defrag, params: {threshold: "100"}}]`:          {says: `"100" is not a percentage from 1 to 99`},
		`[{name: etcd-defrag, params: {threshold: "x"}}]`:            {says: "is not a percentage"},
		`[{name: etcd-defrag, params: {rule: "x"}}]`:                 {says: "addon etcd-defrag has no such parameter"},
		`[{name: unattended-upgrades, params: {threshold: "9"}}]`:    {says: "unattended-upgrades has no such parameter"},
	} {
		loaded, err := loadAddons(t, "addons: {addons: "+addons+"}\n", map[string]string{})
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", addons, err)
			}
			continue
		}
		if err != nil || len(loaded.Addons.Custom)+len(loaded.Addons.Delete) > 0 {
			t.Errorf("%s: %v, %+v", addons, err, loaded.Addons)
		}
		if diff := cmp.Diff(c.want, loaded.Cluster.HostAddons); diff != "" {
			t.Errorf("%s: %s", addons, diff)
		}
	}
	files := map[string]string{"addons/etcd-defrag/a.yaml": configMapOf("a", "a: b")}
	loaded, err := loadAddons(t, "addons: {path: addons, addons: [{name: etcd-defrag, params: {rule: x}}]}\n", files)
	if err != nil || len(loaded.Addons.Custom) != 1 || loaded.Cluster.HostAddons != nil {
		t.Errorf("a subfolder of the name: %v, %v", err, loaded.Cluster.HostAddons)
	}
}

func TestTheDefaultStorageClassIsForTheCloud(t *testing.T) {
	t.Parallel()
	load := func(cloud string) (manifest.Loaded, error) {
		dir := writeFiles(t, map[string]string{
			"kubeone.yaml": strings.Replace(demo, "none: {}", cloud+": {}", 1) +
				"addons: {addons: [{name: default-storage-class}]}\n",
		})
		return manifest.Load(t.Context(), manifest.Options{
			ManifestPath: filepath.Join(dir, "kubeone.yaml"), ReadAddons: true,
		})
	}
	loaded, err := load("hetzner")
	if err != nil {
		t.Fatal(err)
	}
	class := loaded.Addons.Custom[0].Objects[0]
	if class["kind"] != "StorageClass" || class["provisioner"] != "csi.hetzner.cloud" ||
		len(loaded.Cluster.AddonsWithImages()) > 0 {
		t.Errorf("%v, images of %q", class, loaded.Cluster.AddonsWithImages())
	}
	const problem = "default-storage-class is not supported with cloudProvider.nutanix (apply a StorageClass"
	if _, err := load("nutanix"); err == nil || !strings.Contains(err.Error(), problem) {
		t.Errorf("%v", err)
	}
}
