package cluster

import (
	"errors"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Discovery returns a kubeconfig that contains only the server URL and the cluster CA. A joining host uses it to verify
// the API server. It is not secret.
func (a Access) Discovery(server string) ([]byte, error) {
	raw, err := clientcmd.Load(a.Kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed")
	}
	current, ok := raw.Contexts[raw.CurrentContext]
	if !ok || raw.Clusters[current.Cluster] == nil || len(raw.Clusters[current.Cluster].CertificateAuthorityData) == 0 {
		return nil, errors.New("the kubeconfig does not contain a certificate authority")
	}
	out := clientcmdapi.NewConfig()
	// kubeadm finds an unnamed cluster in a file without a user.
	out.Clusters[""] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: raw.Clusters[current.Cluster].CertificateAuthorityData,
	}
	return clientcmd.Write(*out)
}
