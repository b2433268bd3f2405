package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"kubeone/test/lab/components"
)

// Path joins an element to the lab's folder: "kubeone.yaml", "tf.json", "id_ed25519", "known_hosts",
// "bundle.tar".
func (l *Lab) Path(elem string) string { return filepath.Join(l.Dir, elem) }

// saveFiles rewrites the lab's folder from its hosts.
func (l *Lab) saveFiles() error {
	sort.SliceStable(l.Hosts, func(i, j int) bool { return l.Hosts[i].Address < l.Hosts[j].Address })
	labJSON, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	tf, err := terraformOutput(l)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"kubeone.yaml": renderManifest(l),
		"tf.json":      tf,
		"known_hosts":  knownHosts(l.Hosts),
		"lab.json":     append(labJSON, '\n'),
	} {
		temp := l.Path("." + name)
		if err := os.WriteFile(temp, content, 0o644); err != nil {
			return fmt.Errorf("save lab %s: %w", l.Name, err)
		}
		if err := os.Rename(temp, l.Path(name)); err != nil {
			return fmt.Errorf("save lab %s: %w", l.Name, err)
		}
	}
	return nil
}

func defaultStateRoot() (string, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return "", err
	}
	return stateRoot(cache)
}

// stateRoot returns the directory with a folder for each lab: $KUBEONE_LAB_STATE, or the cache's folder "state".
func stateRoot(cache components.Cache) (string, error) {
	if dir := os.Getenv("KUBEONE_LAB_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	return cache.Path("state"), nil
}
