package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"
)

// progress is the state between two calls.
type progress struct {
	path string
	// Passed are the successful cases by number, with the seconds that their last run took.
	Passed map[int]float64 `json:"passed"`
	// Installation is the duration of an uninterrupted installation.
	Installation time.Duration `json:"installation"`
}

// readProgress reads the file. A missing file means no progress.
func readProgress(path string) (*progress, error) {
	p := &progress{path: path, Passed: map[int]float64{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	return p, json.Unmarshal(text, p)
}

func (p *progress) saveFile() error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(p.path+".new", p.path)
}
