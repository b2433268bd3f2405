// Package v1beta2 is the KubeOneCluster manifest, apiVersion kubeone.k8c.io/v1beta2: its fields, their defaults and the
// rules a manifest must keep. It does no I/O and knows no line numbers; package manifest reads files, calls Default and
// Validate, and says where in the file each finding is.
//
// Field tags carry what a tool needs to know: json is the name in the manifest; carried:"no" marks a field that is
// accepted and that this version does nothing about ("no,idle=false": except when it is false, because then nothing is
// what was asked for; "nothing to do": whatever it is, nothing is missing without it); security:"yes" marks one of
// these without which nothing is done, as the cluster would be less safe than somebody relies on; lines:"yes" marks a
// text of several lines, which all others must not have; secret:"true" marks a value that never leaves the operator's
// machine in clear text, and secret:"keys" a map in which the values of secret-looking keys are such. A field's
// comment is its documentation: docs/manifest.md and schema.json are generated from it, "Required." and "Default: …."
// included.
package v1beta2

// The only values of apiVersion and kind that are accepted.
const (
	APIVersion = "kubeone.k8c.io/v1beta2"
	Kind       = "KubeOneCluster"
)
