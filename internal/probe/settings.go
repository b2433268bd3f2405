package probe

import (
	"context"
	_ "embed" // the script
	"path"
	"slices"
	"strings"
	"time"

	"kubeone/internal/componentconfig/settings"
	"kubeone/internal/host"
)

//go:embed settings.sh
var settingsScript string

const (
	settingsTimeout = 20 * time.Second
	longestSetting  = 4 << 10 // bytes of a line
)

// Settings reads files of a host whose settings differ, by their paths, some of which may be patterns, and what it has
// kept of others. It changes nothing, and does not fail: why nothing was read is in the answer. What was read may hold
// the host's own secrets.
func Settings(ctx context.Context, h Host, paths, kept []string) settings.Live {
	said := &answerText{begin: func() {}}
	_, err := h.Run(ctx, host.Cmd{
		Name: "read settings", Script: settingsScript, Timeout: settingsTimeout, Stdout: said,
		Args:   []string{strings.Join(slices.Concat(paths, kept), " "), strings.Join(kept, " ")},
		Stderr: &unread{left: mostText},
	})
	if err != nil {
		return settings.Live{Failed: reason(err)}
	}
	return readSettings(string(said.text), slices.Concat(paths, kept))
}

// readSettings takes of an answer what was asked for, and of that only what is printed.
func readSettings(out string, asked []string) settings.Live {
	r := settingsReader{asked: asked, live: settings.Live{
		Texts: map[string]string{}, Kept: map[string]string{}, Cut: map[string]bool{},
	}}
	begun, ended := false, false
	for line := range strings.Lines(out) {
		switch line = strings.TrimRight(line, "\r\n"); {
		case !begun:
			begun = line == "kubeone-settings\t1"
		case line == "end\t1":
			ended = true
		case !ended:
			r.line(line)
		}
	}
	switch {
	case !begun:
		return settings.Live{Failed: "what it said is no answer"}
	case !ended:
		return settings.Live{Failed: "its answer ends in the middle"}
	}
	return r.live
}

// settingsReader takes an answer line by line.
type settingsReader struct {
	asked []string
	live  settings.Live
	into  map[string]string // the texts that the lines belong to; nil: nobody asked for them
	of    string            // the path of the file that is read
}

func (r *settingsReader) line(line string) {
	if text, ok := strings.CutPrefix(line, "="); ok {
		if r.into != nil {
			r.into[r.of] += host.Printed(text[:min(len(text), longestSetting)]) + "\n"
		}
		return
	}
	name, path, _ := strings.Cut(line, "\t")
	r.into, r.of = nil, path
	if len(r.live.Texts)+len(r.live.Kept) >= mostValues ||
		!slices.ContainsFunc(r.asked, func(pattern string) bool { return matches(pattern, path) }) {
		return
	}
	switch name {
	case "text":
		r.into = r.live.Texts
	case "kept":
		r.into = r.live.Kept
	case "cut":
		r.live.Cut[path] = true
	}
	if r.into != nil {
		r.into[path] = ""
	}
}

// matches reports whether a path is one of a pattern's, and no longer or stranger than a path of ours.
func matches(pattern, file string) bool {
	ok, err := path.Match(pattern, file)
	return ok && err == nil && len(file) <= longestLine && path.Clean(file) == file && host.Printed(file) == file &&
		!strings.Contains(file, "\t")
}
