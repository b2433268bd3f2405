package script

import (
	"os/exec"
	"strings"
	"testing"
)

// FuzzFilesArriveAsTheyAre: whatever a file's content is, the shell prints it, and runs nothing of it.
func FuzzFilesArriveAsTheyAre(f *testing.F) {
	for _, content := range []string{
		"", "a\n", "KUBEONE_END_OF_FILE", "a\nKUBEONE_END_OF_FILE\ntouch /tmp/owned\n",
		"KUBEONE_END_OF_FILE\nKUBEONE_END_OF_FILE_\n",
		"$(touch x) `touch x` ${HOME} \\ \\\\ '\"", "}\nfile_x() {\n",
		"\tKUBEONE_END_OF_FILE\n", "\\\nKUBEONE_END_OF_FILE\n",
		"a\r\nKUBEONE_END_OF_FILE\r\n",
		"Käse\n\xc4KUBEONE_EN\xc4\n'K'ä\n",
	} {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if strings.ContainsRune(content, 0) {
			return // no shell knows such a character; the validation of the manifest refuses it
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", // #nosec G204 -- that is the question
			functionDefinition("file_x", content)+"file_x; printf end").CombinedOutput()
		if want := strings.TrimRight(content, "\n") + "\nend"; err != nil || string(out) != want {
			t.Errorf("%q: %v, %q", content, err, out)
		}
	})
}
