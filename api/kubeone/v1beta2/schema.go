package v1beta2

import _ "embed" // for the schema

// schemaJSON is written by a test, because a running program does not know the comments of its types.
//
//go:embed schema.json
var schemaJSON string

// Schema returns the JSON Schema of a manifest. It accepts every manifest that Validate accepts, but finds fewer
// mistakes: not contradictory fields, or invalid addresses, keys and certificates.
//
// It uses draft 7, the newest draft that the YAML language server of most editors supports in full.
func Schema() string { return schemaJSON }
