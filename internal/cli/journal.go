package cli

import (
	"encoding/json"
	"errors"
	"kubeone/internal/view"
	"os"
	"path/filepath"
	"sync"

	"kubeone/internal/apply"
)

// journal keeps every event of a run as a line of JSON, in the cluster's state directory and where the operator asked.
type journal struct {
	mu     sync.Mutex
	files  []*os.File
	events []apply.Event // without the hosts' output
}

// openJournal opens the run's journal in a folder; extra is another file for it, or "".
func openJournal(dir, run, extra string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &classError{view.ExitConfig, err}
	}
	j := &journal{}
	paths := []string{filepath.Join(dir, run+".jsonl")}
	if extra != "" {
		paths = append(paths, extra)
	}
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, &classError{view.ExitConfig, errors.Join(err, j.Close())}
		}
		j.files = append(j.files, f)
	}
	return j, nil
}

func (j *journal) writeEvent(e apply.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		return // events are strings and numbers
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Type != apply.StepOutput {
		j.events = append(j.events, e)
	}
	for _, f := range j.files {
		_, _ = f.Write(append(line, '\n')) // a full disk here must not stop a run half-way
	}
}

// Close ends the journal.
func (j *journal) Close() error {
	var errs []error
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
