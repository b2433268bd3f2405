package manifest

import (
	"slices"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons"
	"kubeone/internal/manifest/objects"
	"kubeone/internal/model/desired"
)

// objectsOf returns the objects of the file for a manifest that it became: with defaults, for example. The Cluster and
// the Machines keep their names, labels and annotations. It returns nil if the file has a manifest.
func (l *loader) objectsOf(m *v1beta2.KubeOneCluster) (*objects.Objects, error) {
	if l.fileObjects == nil {
		return nil, nil //nolint:nilnil // a manifest has none
	}
	out, err := objects.Of(m)
	if err != nil {
		return nil, err
	}
	out.KeepMetadata(*l.fileObjects)
	out.Others = append(out.Others, l.otherObjects...)
	return &out, nil
}

// storeObjects adds the objects of the file to the operator's addons, without secrets. MachineDeployments are not among
// them: once one exists, it belongs to its users.
func (l *loader) storeObjects(public *v1beta2.KubeOneCluster) error {
	stored, err := l.objectsOf(public)
	if err != nil || stored == nil || l.addons == nil {
		return err
	}
	stored.Others = slices.DeleteFunc(stored.Others, isMachineDeployment)
	documents, err := stored.Documents()
	if err != nil {
		return err
	}
	l.addons.Custom = append(l.addons.Custom, addons.CustomAddon{Name: desired.ClusterAddon, Objects: documents})
	return nil
}

func isMachineDeployment(object map[string]any) bool { return object["kind"] == "MachineDeployment" }

// otherDeployments returns the MachineDeployments that a manifest cannot express.
func (l *loader) otherDeployments() []map[string]any {
	return slices.DeleteFunc(slices.Clone(l.otherObjects), func(o map[string]any) bool { return !isMachineDeployment(o) })
}

// hasOwnMachines reports whether the file has Machines, or owners of Machines, that a manifest cannot express.
func (l *loader) hasOwnMachines() bool {
	return slices.ContainsFunc(l.otherObjects, func(o map[string]any) bool { return o["kind"] != "Host" })
}
