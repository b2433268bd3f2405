// Package examples holds the example manifests, so that the program can print them.
package examples

import "embed"

// Files is minimal.yaml, full.yaml, terraform.yaml and terraform/tf.json. It is not changed.
//
//go:embed minimal.yaml full.yaml terraform.yaml terraform/tf.json
var Files embed.FS
