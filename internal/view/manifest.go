package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"kubeone/internal/manifest"
)

// manifestFormat is the format of ManifestDocument.
const manifestFormat = 1

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
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(ManifestDocument{
		Format: manifestFormat, Valid: !manifest.HasErrors(found), Problems: found, Exit: exit,
	})
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
	_, _ = fmt.Fprintf(w, "%s %s: %s, %s, %s.\n", path, verdict, count(of[manifest.Error], "error"),
		count(of[manifest.Warning], "warning"), count(of[manifest.Note], "note"))
}
