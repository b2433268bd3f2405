package desired

// MachineDeployment is a MachineDeployment that the cluster is to have. Once it is there, it is its users'.
type MachineDeployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Object    string `json:"object"` // as JSON
}
