package workspace

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubeone/internal/cluster"
	"kubeone/internal/engine"
)

// OpenKubeconfig reads a kubeconfig of the operator's own, as kubectl finds it where path is "": $KUBECONFIG, else
// ~/.kube/config. Files that it names are read now. It is an *engine.ConfigError where none is usable.
func OpenKubeconfig(path string) (cluster.Access, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	raw, err := rules.Load()
	if err == nil && clientcmdapi.IsConfigEmpty(raw) {
		err = fmt.Errorf("there is no kubeconfig: give one with --kubeconfig; kubeone kubeconfig prints it")
	}
	if err == nil {
		err = clientcmdapi.MinifyConfig(raw)
	}
	if err == nil {
		err = clientcmdapi.FlattenConfig(raw)
	}
	if err != nil {
		return cluster.Access{}, &engine.ConfigError{Err: fmt.Errorf("kubeconfig: %w", err)}
	}
	text, err := clientcmd.Write(*raw)
	return cluster.Access{Kubeconfig: text}, err
}
