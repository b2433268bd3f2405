package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// stateName is the state of the default workspace, as the local backend keeps it, and in the data folder what Terraform
// notes about another backend.
const stateName = "terraform.tfstate"

// stateFile reads the folder's terraform.tfstate without Terraform, if that is certainly the state in use. The file
// stays behind where another workspace is selected, and where the state has moved to another backend.
func (l *loader) stateFile() ([]byte, error) {
	data, err := readFile(filepath.Join(l.TerraformPath, stateName))
	why := error(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = errors.New("there is no " + stateName)
	case err != nil:
		return nil, err
	default:
		why = l.elsewhere()
	}
	if why == nil && len(bytes.TrimSpace(data)) == 0 {
		why = errors.New(stateName + " is empty, as it is after a move to another backend")
	}
	if why != nil {
		return nil, fmt.Errorf("%w, and %w", ErrNoTerraform, why)
	}
	return data, nil
}

// elsewhere says why the state in use may be another than terraform.tfstate; nil where it is that one.
func (l *loader) elsewhere() error {
	const usual = "default"
	dir := l.Getenv("TF_DATA_DIR")
	if dir == "" {
		dir = ".terraform"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(l.TerraformPath, dir)
	}
	if name := l.Getenv("TF_WORKSPACE"); name != "" && name != usual {
		return fmt.Errorf("TF_WORKSPACE names the workspace %q, whose state is not %s", name, stateName)
	}
	text, err := readFile(filepath.Join(dir, "environment"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	selected := strings.TrimSpace(string(text))
	if selected != "" && selected != usual && l.Getenv("TF_WORKSPACE") == "" {
		return fmt.Errorf("the selected workspace is %q, whose state is not %s", selected, stateName)
	}
	note, err := readFile(filepath.Join(dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return otherBackend(note)
}

// otherBackend says why the state is not in the folder, by what Terraform notes about its backend.
func otherBackend(note []byte) error {
	var noted struct {
		Backend *struct {
			Type   string `json:"type"`
			Config struct {
				Path string `json:"path"`
			} `json:"config"`
		} `json:"backend"`
	}
	if err := json.Unmarshal(note, &noted); err != nil {
		return fmt.Errorf("what Terraform notes about its backend is not readable: %w", err)
	}
	switch b := noted.Backend; {
	case b == nil:
		return nil
	case b.Type != "local":
		return fmt.Errorf("the state is in the backend %q", b.Type)
	case b.Config.Path != "" && filepath.Clean(b.Config.Path) != stateName:
		return fmt.Errorf("the state is in the file %q", b.Config.Path)
	}
	return nil
}
