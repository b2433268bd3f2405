package script

import (
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// hostAddonFiles returns the files of the addons that are timers on the host.
func hostAddonFiles(in Input) ([]componentconfig.Text, error) {
	files := componentconfig.HostAddonFiles(in.Input)
	for _, a := range in.Want.HostAddonsOf(in.Host) {
		if a.Name != desired.EtcdDefragAddon {
			continue
		}
		program, err := memberProgram(in, "kubeone-etcd-defrag.service", "defragment", "sh/files/defragment.sh")
		if err != nil {
			return nil, err
		}
		files = append(files, componentconfig.Text{Name: "file_etcd_defrag_script", Content: program})
	}
	return files, nil
}

// hostAddonVariables returns the variables about these addons.
func hostAddonVariables(in Input) []step.Variable {
	var names []string
	for _, a := range in.Want.HostAddonsOf(in.Host) {
		names = append(names, a.Name)
	}
	return []step.Variable{
		step.Words("HOST_ADDONS", names...), step.Text("UPGRADER", distroName(in).UpgraderPackage()),
	}
}
