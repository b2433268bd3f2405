package manifest

import (
	"encoding/json"

	"kubeone/internal/model/desired"
)

// newMachineDeployments encodes the objects for the other stages.
func newMachineDeployments(objects []map[string]any) ([]desired.MachineDeployment, error) {
	var out []desired.MachineDeployment
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		metadata, _ := o["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		name, _ := metadata["name"].(string)
		out = append(out, desired.MachineDeployment{Namespace: namespace, Name: name, Object: string(text)})
	}
	return out, nil
}

// controllersSetting returns whether the Machine controllers should run in the cluster, or nil if the manifest does not
// say. Without machineController.deploy, they run if there are dynamicWorkers or other Machines. For a cloud provider,
// it always returns nil.
func (l *loader) controllersSetting() *bool {
	switch c := l.cluster; {
	case c.CloudProvider.None == nil:
		return nil
	case c.MachineController != nil && c.MachineController.Deploy != nil:
		return c.MachineController.Deploy
	case len(c.DynamicWorkers) > 0 || l.hasOwnMachines():
		yes := true
		return &yes
	}
	return nil
}
