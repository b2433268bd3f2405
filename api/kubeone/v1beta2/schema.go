package v1beta2

import _ "embed" // for the schema

// schemaJSON is written by a test, from the types and their comments, which a program does not know when it runs.
//
//go:embed schema.json
var schemaJSON string

// Schema is the JSON Schema of a manifest. It refuses nothing that is a manifest, and does not find all that Validate
// finds: what concerns several fields at once, addresses, keys and certificates.
//
// It is of draft 7, because that is what editors know: the YAML language server, which most of them use, has all of
// draft 7, and of later drafts some parts since its recent versions.
func Schema() string { return schemaJSON }
