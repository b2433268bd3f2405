// Package crds is the CustomResourceDefinitions of the API in YAML, as controller-gen makes them from the types.
package crds

import "embed"

// Files is one file for each kind.
//
//go:embed *.yaml
var Files embed.FS
