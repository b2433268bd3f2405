package sim

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kubeone/test/sim/drive"
)

// moments is the range of a fault marked @. Every fourth moment is tried.
const moments = 100

// Scenarios of known faults, in kubeone and elsewhere, succeed. Add a shrunk scenario that fails to testdata/found.txt.
func TestKnownFaults(t *testing.T) {
	t.Parallel()
	apart := 4
	if testing.Short() {
		apart = 20
	}
	for _, name := range []string{"known.txt", "found.txt"} {
		about := ""
		for _, line := range readLines(t, name) {
			if text, ok := strings.CutPrefix(line, "# "); ok {
				about = text
				continue
			}
			t.Run(about, func(t *testing.T) {
				t.Parallel()
				last := 1
				if strings.Contains(line, "@") {
					last = moments
				}
				for at := 1; at <= last; at += apart {
					mustGoWell(t, strings.ReplaceAll(line, "@", strconv.Itoa(at)))
				}
			})
		}
	}
}

func readLines(t *testing.T, name string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []string
	for scan := bufio.NewScanner(file); scan.Scan(); {
		if line := strings.TrimSpace(scan.Text()); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func mustGoWell(t *testing.T, text string) {
	t.Helper()
	s, err := drive.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if v := drive.Run(t, s).Violation; v != nil {
		small := drive.Shrink(t, s, v.Rule)
		t.Errorf("%v\n\t%s\n\tshrunk: %q", v, replayCommand(s), small)
	}
}
