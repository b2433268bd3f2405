package workspace

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
)

// DefaultStateDir is $KUBEONE_STATE, else kubeone in the user's state directory (XDG).
func DefaultStateDir() (string, error) {
	if dir := os.Getenv("KUBEONE_STATE"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "kubeone"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for known hosts and journals: %w; set KUBEONE_STATE", err)
	}
	return filepath.Join(home, ".local", "state", "kubeone"), nil
}

func stateDir(base, cluster string) (string, error) {
	if base == "" {
		var err error
		if base, err = DefaultStateDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(base, cluster), nil
}

// Journals is the folder with the journals of this cluster's runs from this machine. It need not exist.
func (w *Workspace) Journals() string { return filepath.Join(w.stateDir, "journal") }

func (w *Workspace) knownHosts() string { return filepath.Join(w.stateDir, "known_hosts") }

// Holder is who we are in locks and records: "user@machine".
func Holder() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return name + "@" + machine
}
