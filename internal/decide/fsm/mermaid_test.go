package fsm

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"kubeone/internal/testutil/golden"
)

func TestDrawingsInDocsAreCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "docs", "deciding.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	machines := []Machine{Cluster, Worker}
	drawing := regexp.MustCompile("(?s)```mermaid\n.*?```\n")
	if n := len(drawing.FindAll(page, -1)); n != len(machines) {
		t.Fatalf("%s has %d drawings, want %d", path, n, len(machines))
	}
	golden.Check(t, path, drawing.ReplaceAllStringFunc(string(page), func(string) string {
		m := machines[0]
		machines = machines[1:]
		return "```mermaid\n" + m.Mermaid() + "```\n"
	}))
}
