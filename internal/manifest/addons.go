package manifest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons"
	"kubeone/internal/addons/embedded"
	"kubeone/internal/addons/folder"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/phrase"
)

// replacements are the addons that KubeOne has built in and kubeone does not, with what to do instead. A subfolder with
// the name of one of them is an addon of the operator.
var replacements = map[string]string{
	"backups-restic": "remove the entry: control-plane hosts take snapshots (backup.schedule), and kubeone backup " +
		"stores encrypted backups elsewhere",
	"cluster-autoscaler":        "install its chart with helmReleases, or scale MachineDeployments with kubectl scale",
	"csi-external-snapshotter":  "apply its objects from a subfolder of that name",
	"csi-vault-secret-provider": "install its chart with helmReleases",
	"machinecontroller":         "remove the entry: machineController.deploy installs the controllers of kubeone",
	"nodelocaldns-cilium":       "list nodelocaldns instead",
	"operating-system-manager":  "remove the entry: Machines of kubeone use hosts that have an operating system",
	"secrets-store-csi-driver":  "install its chart with helmReleases",
}

// envPrefix begins a parameter whose value is that of an environment variable.
const envPrefix = "env:"

// readAddons reads and renders the operator's own addons, if the caller wants them.
func (l *loader) readAddons() {
	if !l.ReadAddons {
		return
	}
	a := l.cluster.Addons
	l.addons = &addons.Sources{Declared: a != nil}
	if a == nil || a.Enable != nil && !*a.Enable {
		return
	}
	found := l.readAddonFolder(a.Path)
	l.replaced = replacedAddons(found)
	values := l.addonValues(a.GlobalParams)
	listed := map[string]bool{}
	for i, entry := range a.Addons {
		at := v1beta2.Item("addons.addons", i)
		if listed[entry.Name] {
			l.reportPath(at+".name", Error, "remove one of the entries", fmt.Sprintf("%q is listed twice", entry.Name))
			continue
		}
		listed[entry.Name] = true
		n := slices.IndexFunc(found, func(f folder.Addon) bool { return f.Name == entry.Name })
		switch {
		case n < 0 && entry.Name == desired.MetricsServerAddon:
			l.listedMetricsServer = new(!entry.Delete)
		case n < 0 && entry.Name == desired.NodeLocalDNSAddon:
			l.listedNodeLocalDNS = new(!entry.Delete)
		case n < 0 && slices.Contains(desired.HostAddons(), entry.Name):
			l.addHostAddon(at, entry)
		case entry.Delete:
			l.addons.Delete = append(l.addons.Delete, entry.Name)
		case n < 0 && entry.Name == desired.StorageClassAddon:
			l.addStorageClass(at, values.OverwriteRegistry)
		case n >= 0:
			found[n].DisableTemplating, found[n].Params = entry.DisableTemplating, l.addonParams(at, entry)
			l.renderAddon(found[n], values)
		case replacements[entry.Name] != "":
			l.reportPath(at+".name", Error, replacements[entry.Name],
				fmt.Sprintf("%q is an addon of KubeOne that kubeone does not have", entry.Name))
		default:
			l.reportUnknownAddon(at, entry.Name, a.Path, found)
		}
	}
	for _, addon := range found {
		if !listed[addon.Name] {
			addon.Params = l.secretParams[addon.Name]
			l.renderAddon(addon, values)
		}
	}
}

// replacedAddons returns the addons of kubeone that a folder of the operator replaces.
func replacedAddons(found []folder.Addon) []string {
	return slices.DeleteFunc(desired.DefaultAddons(), func(name string) bool {
		return !slices.ContainsFunc(found, func(f folder.Addon) bool { return f.Name == name })
	})
}

// addStorageClass adds the default StorageClass: for the CSI driver of the cloud or, without a cloud, for folders on
// Nodes.
func (l *loader) addStorageClass(at, registry string) {
	if l.cluster.CloudProvider.None == nil {
		l.addCloudStorageClass(at)
		return
	}
	rendered, err := embedded.Render(desired.StorageClassAddon,
		desired.Cluster{Registry: desired.Registry{Overwrite: registry}})
	if err != nil {
		l.reportPath(at+".name", Error, "", err.Error())
		return
	}
	l.addons.Custom = append(l.addons.Custom,
		addons.CustomAddon{Name: desired.StorageClassAddon, Objects: rendered.Objects})
	l.embeddedNames = append(l.embeddedNames, desired.StorageClassAddon)
}

// addHostAddon adds an addon that is a timer on hosts, unless the entry deletes it.
func (l *loader) addHostAddon(at string, entry v1beta2.Addon) {
	if entry.Delete {
		return
	}
	addon, params := desired.DefaultHostAddon(entry.Name), l.addonParams(at, entry)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value, where := params[name], v1beta2.Child(at+".params", name)
		var err error
		switch {
		case name == "schedule":
			addon.Schedule, err = desired.ParseCalendar(value)
		case name == "threshold" && addon.Threshold > 0:
			addon.Threshold, err = strconv.Atoi(value)
			if err != nil || addon.Threshold < 1 || addon.Threshold > 99 {
				err = fmt.Errorf("%q is not a percentage from 1 to 99", phrase.Shorten(value, 60))
			}
		default:
			err = fmt.Errorf("addon %s has no such parameter", entry.Name)
		}
		if err != nil {
			l.reportPath(where, Error, "see docs/addons.md for its parameters", err.Error())
		}
	}
	l.hostAddons = append(l.hostAddons, addon)
}

func (l *loader) addCloudStorageClass(at string) {
	for _, cloud := range l.cluster.CloudProvider.Providers() { // the validation has checked that there is one
		class, found := embedded.CloudStorageClass(cloud)
		if !found {
			l.reportPath(at+".name", Error,
				"apply a StorageClass with the parameters of the cloud from a subfolder of that name",
				desired.StorageClassAddon+" is not supported with cloudProvider."+cloud)
			return
		}
		l.addons.Custom = append(l.addons.Custom,
			addons.CustomAddon{Name: desired.StorageClassAddon, Objects: []resources.Object{class}})
	}
}

// readAddonFolder returns the addons in the folder, or nil without a folder.
func (l *loader) readAddonFolder(path string) []folder.Addon {
	if path == "" {
		return nil
	}
	root, err := os.OpenRoot(l.absolutePath(path))
	if err == nil {
		defer func() { _ = root.Close() }()
		var found []folder.Addon
		if found, err = folder.Read(root.FS()); err == nil {
			return found
		}
	}
	l.reportPath("addons.path", Error, "the path is relative to the manifest directory", err.Error())
	l.explained = append(l.explained, "addons")
	return nil
}

func (l *loader) addonValues(global map[string]string) folder.Values {
	v := folder.Values{
		Config: l.cluster, Params: l.resolveParams("addons.globalParams", global), CustomCredentials: l.customSecrets,
		CCMClusterName: l.cluster.Name, CABundle: caBundle(l.cluster),
	}
	if r := l.cluster.RegistryConfiguration; r != nil {
		v.OverwriteRegistry = r.OverwriteRegistry
	}
	return v
}

// addonParams returns the parameters of an addon in the manifest and in the credentials file. The same parameter in
// both is an error.
func (l *loader) addonParams(at string, entry v1beta2.Addon) map[string]string {
	out := l.resolveParams(at+".params", entry.Params)
	for name, value := range l.secretParams[entry.Name] {
		if _, found := out[name]; found {
			l.reportPath(v1beta2.Child(at+".params", name), Error, "keep one of them",
				"is also in addonParams of the credentials file")
		}
		out[name] = value
	}
	return out
}

// resolveParams replaces values that name an environment variable.
func (l *loader) resolveParams(at string, params map[string]string) map[string]string {
	out := maps.Clone(params)
	if out == nil {
		out = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		variable, found := strings.CutPrefix(out[name], envPrefix)
		if !found {
			continue
		}
		if out[name] = l.Getenv(variable); out[name] == "" {
			l.reportPath(v1beta2.Child(at, name), Error, "set it for kubeone",
				fmt.Sprintf("the environment variable %s is not set", phrase.Shorten(variable, 60)))
		}
	}
	return out
}

// renderAddon adds the objects of an addon to the sources.
func (l *loader) renderAddon(addon folder.Addon, values folder.Values) {
	objects, err := folder.Render(addon, values)
	var mistake *resources.FileError
	switch {
	case errors.As(err, &mistake):
		l.found = append(l.found, Problem{
			File: filepath.Join(l.cluster.Addons.Path, mistake.Path), Line: mistake.Line, Path: "addons",
			Message: mistake.Err.Error(), Severity: Error,
		})
	case err != nil:
		l.reportPath("addons.path", Error, "", err.Error())
	default:
		l.addons.Custom = append(l.addons.Custom, addons.CustomAddon{Name: addon.Name, Objects: objects})
	}
}

func (l *loader) reportUnknownAddon(at, name, path string, found []folder.Addon) {
	known := slices.Concat([]string{desired.StorageClassAddon}, desired.DefaultAddons(), desired.HostAddons())
	for _, f := range found {
		known = append(known, f.Name)
	}
	hint := "create the folder, or remove the entry"
	if near := suggestName(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	where := "addons.path is not set"
	if path != "" {
		where = path + " has no subfolder of that name with manifests"
	}
	l.reportPath(at+".name", Error, hint, fmt.Sprintf("%q is not a known addon: %s", name, where))
}
