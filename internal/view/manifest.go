package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"kubeone/internal/manifest"
	"kubeone/internal/text/phrase"
)

// The formats of ManifestDocument and FailureDocument.
const (
	manifestFormat = 1
	failureFormat  = 1
)

// ManifestDocument is what was found in a manifest and in what belongs to it.
type ManifestDocument struct {
	Format   int                `json:"format"`
	Valid    bool               `json:"valid"`
	Problems []manifest.Problem `json:"problems"`
	Exit     int                `json:"exit"`
}

// ManifestJSON returns the document on one line, which ends with a newline.
func ManifestJSON(found []manifest.Problem, exit int) ([]byte, error) {
	if found == nil {
		found = []manifest.Problem{}
	}
	return jsonLine(ManifestDocument{
		Format: manifestFormat, Valid: !manifest.HasErrors(found), Problems: found, Exit: exit,
	})
}

// FailureDocument is the result of a command that failed before it had another one.
type FailureDocument struct {
	Format int    `json:"format"`
	Error  string `json:"error"`
	Exit   int    `json:"exit"`
}

// FailureJSON returns a FailureDocument on one line, which ends with a newline.
func FailureJSON(err error, exit int) ([]byte, error) {
	return jsonLine(FailureDocument{Format: failureFormat, Error: err.Error(), Exit: exit})
}

// jsonLine returns a value as JSON on one line; <, > and & stand for themselves.
func jsonLine(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// Manifest prints what was found in the manifest at path, one problem a line, and whether it is valid.
func Manifest(w io.Writer, path string, found []manifest.Problem) {
	of := map[manifest.Severity]int{}
	for _, p := range found {
		of[p.Severity]++
		_, _ = fmt.Fprintln(w, p)
	}
	verdict := "is valid"
	if manifest.HasErrors(found) {
		verdict = "is not valid"
	}
	_, _ = fmt.Fprintf(w, "%s %s: %s, %s, %s.\n", path, verdict, phrase.Count(of[manifest.Error], "error"),
		phrase.Count(of[manifest.Warning], "warning"), phrase.Count(of[manifest.Note], "note"))
}
