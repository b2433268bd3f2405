package apply

import (
	"archive/tar"
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/plan"
	"kubeone/internal/script"
)

//go:embed sh/*.sh
var shell embed.FS

func scriptText(name string) string {
	b, err := shell.ReadFile("sh/" + name + ".sh")
	if err != nil {
		panic(err) // embedded at build time
	}
	return string(b)
}

// Exit statuses of start.sh and follow.sh, in addition to locks.ExitFileBusy. Stages exit with lower ones.
const (
	exitLockLost = 75
	exitBusy     = 76
	exitKilled   = 78
)

// Blobs provides the content of uploads to hosts, by sha256 (hex). A bundle implements it.
type Blobs interface {
	Blob(sha256 string) (io.Reader, int64, error)
}

// runOnHost runs one step on its host. It uploads files and secrets, then runs the stage. After a lost connection it
// reconnects and follows the step, which has continued on the host.
func (r *Run) runOnHost(ctx context.Context, s plan.Step, output *lineWriter) error {
	h := r.Hosts[s.Host]
	var away Outage
	for {
		began := r.Now()
		err := r.attemptStep(ctx, h, s, output)
		if err == nil || !isConnectionLost(err) || ctx.Err() != nil {
			return explainExit(err, h.Name(), s)
		}
		if !away.TryAgain(began, r.Now()) {
			return explainExit(err, h.Name(), s)
		}
		r.emitEvent(Event{
			Type: Warning,
			Step: s.ID,
			Host: h.Name(),
			Line: "connection lost, trying again: " + firstLine(err.Error()),
		})
		if !r.pause(ctx, RetryEvery) {
			return ctx.Err()
		}
		output.restart()
	}
}

func (r *Run) attemptStep(ctx context.Context, h host.Host, s plan.Step, output io.Writer) error {
	secrets, err := r.uploadStep(ctx, h, s)
	if err != nil {
		return err
	}
	if err := r.checkGuard(ctx, s); err != nil {
		return err
	}
	if err := r.checkLock(ctx, s); err != nil {
		return err
	}
	start := r.startCmd(s, secrets)
	start.Script += "\n" + scriptText("follow")
	start.Stdout, start.Timeout = output, StepTimeout
	if _, err := h.Run(ctx, start); err != nil {
		return err
	}
	return r.afterSuccess(ctx, s)
}

// uploadStep uploads the script and files that the step needs. It returns the secrets for the stage, encoded for
// start.sh.
func (r *Run) uploadStep(ctx context.Context, h host.Host, s plan.Step) (secrets []byte, err error) {
	if err := r.uploadScript(ctx, h, s.Host); err != nil {
		return nil, err
	}
	if uploads := s.Intent.Content().Uploads; len(uploads) > 0 {
		if err := r.uploadBlobs(ctx, h, uploads); err != nil {
			return nil, err
		}
	}
	if err := r.uploadBundles(ctx, h, s); err != nil {
		return nil, err
	}
	if err := r.uploadSnapshot(ctx, h, s); err != nil {
		return nil, err
	}
	files, err := r.secretsFor(ctx, s)
	if err != nil {
		return nil, err
	}
	return secretLines(files), nil
}

// secretLines encodes secret files in the format that start.sh reads.
func secretLines(files map[string][]byte) []byte {
	var lines bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&lines, "%s %s\n", name, base64.StdEncoding.EncodeToString(files[name]))
	}
	lines.WriteString(".\n")
	return lines.Bytes()
}

// startCmd returns the command that starts a step. It contains the secrets, so that they never reach a host that
// refuses the command.
func (r *Run) startCmd(s plan.Step, secrets []byte) host.Cmd {
	return host.Cmd{
		Name: s.Title, Script: locks.WithFile(StartTimeout, scriptText("start")), Stdin: bytes.NewReader(secrets),
		Secret: true,
		Args: []string{
			strconv.FormatInt(r.Lock.Generation(s.Host), 10), r.RunID, s.ID, script.Stage(s.Intent),
		},
	}
}

// isConnectionLost reports whether err comes from the connection and not from the step. The step then continues on the
// host, and the next attempt follows it. A command that ended by a signal counts too, because closing a connection ends
// its commands that way.
func isConnectionLost(err error) bool {
	var exit *host.ExitError
	return host.Transient(err) || errors.As(err, &exit) && exit.Signal != ""
}

// explainExit translates the exit statuses of start.sh and follow.sh to errors. It returns other errors unchanged.
func explainExit(err error, name string, s plan.Step) error {
	var exit *host.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	switch exit.Code {
	case exitLockLost:
		return fmt.Errorf("%s: %w", name, locks.ErrLost)
	case exitBusy:
		return fmt.Errorf("%s: another step is running there: %s; run kubeone apply again; it waits for "+
			"the running step", name, lastLines(string(exit.Stderr), 1))
	case locks.ExitFileBusy:
		return fmt.Errorf("%s: %s", name, locks.FileBusyMessage(err))
	case exitKilled:
		return fmt.Errorf("%s: %s was killed before it ended, or the host restarted; run kubeone apply again", name,
			s.Title)
	}
	return err
}

// uploadScript uploads the script of the host, once in a run.
func (r *Run) uploadScript(ctx context.Context, h host.Host, id string) error {
	r.mu.Lock()
	done := r.scripted[id]
	r.mu.Unlock()
	if done {
		return nil
	}
	for name, content := range map[string]string{"node.sh": r.Scripts[id], "run.sh": scriptText("run")} {
		if err := uploadFile(ctx, h, script.StepDir+"/"+name, []byte(content)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.scripted[id] = true
	r.mu.Unlock()
	return nil
}

func uploadFile(ctx context.Context, h host.Host, path string, content []byte) error {
	return h.Upload(ctx, host.File{
		Path:    path,
		Mode:    0o600,
		Size:    int64(len(content)),
		Content: bytes.NewReader(content),
	})
}

// uploadBlobs sends the missing files as one stream. A file is missing if it is not on the host as an upload, unpacked,
// or in the container runtime.
func (r *Run) uploadBlobs(ctx context.Context, h host.Host, sums []string) error {
	dir := script.ArtifactsDir + "/sha256"
	const list = `dir=$1 sums=$2
for sum in $sums; do
	[ -f "$dir/$sum" ] || [ -f "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/$sum" ] ||
		grep -qsx "$sum" /opt/kubeone/*/*/.sha256 || printf '%s\n' "$sum"
done`
	res, err := h.Run(ctx, host.Cmd{
		Name:   "look for uploads",
		Script: list,
		Args:   []string{dir, strings.Join(sums, " ")},
	})
	if err != nil {
		return err
	}
	missing := strings.Fields(string(res.Stdout))
	if len(missing) == 0 {
		return nil
	}
	if r.Blobs == nil {
		return fmt.Errorf("%s: no bundle to upload from; pass it with --bundle", h.Name())
	}
	in, out := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := writeTar(out, r.Blobs, missing)
		out.CloseWithError(err)
		sent <- err
	}()
	_, err = h.Run(ctx, host.Cmd{
		Name: "receive uploads", Script: scriptText("receive"), Args: []string{dir}, Stdin: in, Timeout: StepTimeout,
	})
	_ = in.Close()
	if failed := <-sent; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return fmt.Errorf("%s: %w", h.Name(), failed) // it caused the error on the host
	}
	return err
}

// writeTar writes the files with these sha256.
func writeTar(w io.Writer, blobs Blobs, sums []string) error {
	t := tar.NewWriter(w)
	for _, sum := range sums {
		content, size, err := blobs.Blob(sum)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{
			Name: sum, Mode: 0o600, Size: size, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
		if _, err := io.Copy(t, content); err != nil {
			return fmt.Errorf("upload of %s: %w", sum, err)
		}
	}
	return t.Close()
}

// Await waits for a step of an earlier run that is still running on the host. It changes nothing.
func Await(ctx context.Context, h host.Host) error {
	_, err := h.Run(ctx, host.Cmd{
		Name:    "wait for a running step",
		Script:  "set -eu\n" + locks.WithFile(StartTimeout, scriptText("follow")),
		Timeout: StepTimeout,
	})
	var exit *host.ExitError
	if errors.As(err, &exit) {
		return nil // the next probe shows the result of the step
	}
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
