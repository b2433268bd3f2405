// Package v1beta2 is the KubeOneCluster manifest, apiVersion kubeone.k8c.io/v1beta2: its fields, their defaults and
// rules. It does no I/O and knows no line numbers. Package manifest reads files, calls Default and Validate, and adds
// the position of each finding.
//
// Field tags:
//
//   - json: the name in the manifest
//   - carried:"no": kubeone accepts and ignores the field. "no,idle=false": except for the value false, which needs
//     nothing. "nothing to do": no value needs anything. "without a cloud": carried out for existing hosts
//     only. "with external": carried out only if the cloud's controller manager is installed
//   - security:"yes": the ignored field would make the cluster safer, so apply refuses to run while it is set
//   - lines:"yes": the text may have several lines; all others must have one
//   - secret:"true": the value never leaves the operator's machine in clear text. "keys": a map whose values with
//     secret-looking keys are secret
//
// Comments of fields are documentation: docs/manifest.md, schema.json and examples/full.yaml are generated from them,
// including "Required." and "Default: …."
package v1beta2

// The only values of apiVersion and kind that are accepted.
const (
	APIVersion = "kubeone.k8c.io/v1beta2"
	Kind       = "KubeOneCluster"
)
