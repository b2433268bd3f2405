package support

import (
	"io"
	"os"
	"path/filepath"
	"slices"
)

// addJournals adds this machine's journals of the last runs. Their names begin with their time.
func (b *bundle) addJournals(dir string) {
	if dir == "" {
		return
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		b.noteMissing("journals", "there is none in "+dir)
		return
	}
	slices.Sort(paths)
	for _, path := range paths[max(0, len(paths)-journals):] {
		text, err := endOf(path, mostOfJournal)
		if err != nil {
			b.noteMissing("journals/"+filepath.Base(path), err.Error())
			continue
		}
		b.addFile("journals/"+filepath.Base(path), text)
	}
}

// endOf returns the end of a file, in full lines.
func endOf(path string, most int64) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- our own state directory
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if skip := info.Size() - most; skip > 0 {
		if _, err := f.Seek(skip, io.SeekStart); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return fullLines(text, int(most)), err
}
