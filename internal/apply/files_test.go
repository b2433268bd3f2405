package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSecretFilesShowNothing(t *testing.T) {
	t.Parallel()
	files := Files{"a": []byte("geheim")}
	text, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(text), fmt.Sprint(files), fmt.Sprintf("%#v %q %x", files, files, files)} {
		if strings.Contains(shown, "geheim") || !strings.Contains(shown, "redacted") {
			t.Error(shown)
		}
	}
}
