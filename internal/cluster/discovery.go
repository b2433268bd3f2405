package cluster

import (
	"errors"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Discovery returns a kubeconfig that names the server (a URL) and holds the cluster's CA, and nothing else: with it a
// host that joins knows whom to trust. It is no secret.
func (a Access) Discovery(server string) ([]byte, error) {
	raw, err := clientcmd.Load(a.Kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig is not valid YAML of a kubeconfig")
	}
	current, ok := raw.Contexts[raw.CurrentContext]
	if !ok || raw.Clusters[current.Cluster] == nil || len(raw.Clusters[current.Cluster].CertificateAuthorityData) == 0 {
		return nil, errors.New("the kubeconfig has no certificate authority")
	}
	out := clientcmdapi.NewConfig()
	// Without a name: that is how kubeadm finds the cluster in a file that has no user.
	out.Clusters[""] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: raw.Clusters[current.Cluster].CertificateAuthorityData,
	}
	return clientcmd.Write(*out)
}
