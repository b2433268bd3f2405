package v1beta2

import _ "embed" // for the schema

// schemaJSON is written by a test, from the types and their comments, which a program does not know when it runs.
//
//go:embed schema.json
var schemaJSON string

// Schema is the JSON Schema of a manifest. It refuses no manifest that Validate accepts, but it does not find all that
// Validate finds: fields that contradict each other, and addresses, keys and certificates that are not valid.
//
// It is written in draft 7, the newest draft that editors support in full: the YAML language server, which most of them
// use, has supported it for years, and 2020-12 only in recent versions and in part.
func Schema() string { return schemaJSON }
