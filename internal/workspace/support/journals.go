package support

import (
	"io"
	"os"
	"path/filepath"
	"slices"
)

// addJournals adds the journals of the last runs on this machine. Their names begin with the time, so the names sort by
// age.
func (b *bundle) addJournals(dir string) {
	if dir == "" {
		return
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		b.noteMissing("journals", "no journals in "+dir)
		return
	}
	slices.Sort(paths)
	for _, path := range paths[max(0, len(paths)-maxJournals):] {
		text, err := readTail(path, maxJournalBytes)
		if err != nil {
			b.noteMissing("journals/"+filepath.Base(path), err.Error())
			continue
		}
		b.addFile("journals/"+filepath.Base(path), text)
	}
}

// readTail returns at most the last limit bytes of a file, without a partial first line.
func readTail(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- our own state directory
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if skip := info.Size() - limit; skip > 0 {
		if _, err := f.Seek(skip, io.SeekStart); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return dropPartialLine(text, int(limit)), err
}
