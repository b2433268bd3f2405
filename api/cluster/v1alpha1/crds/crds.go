// Package crds has the CustomResourceDefinitions of the API in YAML. controller-gen generates them from the types.
package crds

import "embed"

// Files has one file for each kind.
//
//go:embed *.yaml
var Files embed.FS
