package observed

// MachineDeployment is one in the cluster.
type MachineDeployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Kubelet   string `json:"kubelet,omitempty"` // the version that its template names, without v
}
