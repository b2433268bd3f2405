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

// journal writes every event of a run as a line of JSON to the state directory of the cluster and to --log-file.
type journal struct {
	mu     sync.Mutex
	files  []*os.File
	events []apply.Event // without the output of hosts
}

// openJournal opens the journal of a run in dir and, unless extra is "", also the file extra.
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
		return // cannot happen: events are strings and numbers
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Type != apply.StepOutput {
		j.events = append(j.events, e)
	}
	for _, f := range j.files {
		_, _ = f.Write(append(line, '\n')) // ignore errors: a full disk on this machine must not stop the run
	}
}

// Close closes all files.
func (j *journal) Close() error {
	var errs []error
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
