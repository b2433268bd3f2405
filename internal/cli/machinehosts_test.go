package cli

import (
	"strings"
	"testing"

	"kubeone/internal/model/observed"
)

func TestTheHostOfAMachineIsNamedWithItsMachine(t *testing.T) {
	t.Parallel()
	pool := &observed.Pool{
		Machines: []observed.Machine{
			{Namespace: "kube-system", Name: "a", Node: "w-1", Host: "w-1"},
			{Namespace: "x", Name: "b", Node: "cloud-7"}, {Namespace: "x", Name: "pending"},
		},
		Hosts: []observed.PoolHost{
			{Name: "w-1", Address: "192.0.2.1", Machine: "kube-system/a"},
			{Name: "w-2", Address: "192.0.2.2", Machine: "kube-system/gone"}, {Name: "w-3", Address: "192.0.2.3"},
		},
	}
	for name, machine := range map[string]string{
		"w-1": "kube-system/a", "192.0.2.1": "kube-system/a", "192.0.2.2": "kube-system/gone", "cloud-7": "x/b",
		"w-3": "", "192.0.2.3": "", "nobody": "", "": "",
	} {
		err := checkMachineHosts(pool, "--host", []string{"other", name})
		namespace, of, _ := strings.Cut(machine, "/")
		says := "kubectl -n " + namespace + " delete machine " + of + " returns it"
		if (err != nil) != (machine != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, machine)
		}
	}
	if err := checkMachineHosts(nil, "--host", []string{"w-1"}); err != nil {
		t.Error(err)
	}
}
