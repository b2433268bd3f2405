package locks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/retry"
)

// takeHost takes the lock on a host and keeps it until the context keep ends. After a lost connection it restarts the
// keeper, unless another run has taken the lock.
func (l *HostLocks) takeHost(ctx, keep context.Context, id string, c Claim) (int64, error) {
	h := l.hosts[id]
	generation, ended, err := startKeeper(ctx, keep, h, c, 0)
	if err != nil {
		return 0, err
	}
	l.keepers.Add(1)
	go func() {
		defer l.keepers.Done()
		for <-ended; keep.Err() == nil; <-ended {
			var err error
			if ended, err = restartKeeper(keep, h, c, generation); err != nil {
				// If no other run holds the lock, for example because a new machine has replaced the host, it is not
				// lost: the host only refuses our steps.
				if held := (*HeldError)(nil); errors.As(err, &held) && held.RunID != "" {
					l.loseHost(id, err)
				}
				return
			}
		}
	}()
	return generation, nil
}

// restartKeeper starts a new keeper for a lock that this run still holds. If the lock was lost, the error is a
// *HeldError, and the host itself refuses steps of this run.
func restartKeeper(keep context.Context, h host.Host, c Claim, generation int64) (<-chan struct{}, error) {
	for {
		if !retry.Pause(keep, retryEvery) {
			return nil, keep.Err()
		}
		_, ended, err := startKeeper(keep, keep, h, c, generation)
		if err == nil || !host.Transient(err) {
			return ended, err
		}
	}
}

// startKeeper starts the keeper on the host and waits until it has the lock. It returns the generation of the lock and
// a channel that is closed when the keeper has ended. The argument generation is 0 for a new lock.
func startKeeper(ctx, keep context.Context, h host.Host, c Claim, generation int64) (int64, <-chan struct{}, error) {
	in, beats := io.Pipe()
	out, said := io.Pipe()
	forced := "no"
	if c.Force {
		forced = "yes"
	}
	cmd := host.Cmd{
		Name: "take the lock", Script: WithFile(FlockTimeout, lockScript), Stdin: in, Stdout: said,
		Timeout: 24 * time.Hour,
		Args: []string{c.Holder, c.RunID, forced, strconv.Itoa(int(StaleAfter.Seconds())),
			strconv.FormatInt(generation, 10)},
	}
	ended := make(chan struct{})
	running, abandon := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		_, err := h.Run(running, cmd)
		said.CloseWithError(keeperError(h.Name(), err))
		_ = in.Close()
	}()
	within, cancel := context.WithTimeout(ctx, GrantTimeout)
	defer cancel()
	granted, err := readGrant(within, out, h.Name())
	if err != nil {
		_ = beats.Close()
		_ = out.CloseWithError(err)
		awaitKeeper(ended, abandon)
		return 0, nil, err
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // drained until the keeper ends
	go func() {
		sendBeats(keep, beats)
		awaitKeeper(ended, abandon)
	}()
	return granted, ended, nil
}

// awaitKeeper waits until a keeper that gets no more beats has ended. It abandons the keeper after CheckTimeout, so
// that no host delays the end of a run.
func awaitKeeper(ended <-chan struct{}, abandon context.CancelFunc) {
	defer abandon()
	late := time.NewTimer(CheckTimeout)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		abandon()
		<-ended
	}
}

// keeperError returns the error with which a keeper ended; io.EOF means that it ended normally.
func keeperError(name string, err error) error {
	var exit *host.ExitError
	switch {
	case err == nil:
		return io.EOF
	case errors.As(err, &exit) && exit.Code == exitUnwritable:
		reason := lastLine(exit.Stderr)
		if i := strings.LastIndex(reason, ": "); i >= 0 {
			reason = reason[i+2:] // without the program name
		}
		return &UnwritableError{Host: name, Reason: reason}
	}
	if locked := FileBusyMessage(err); locked != "" {
		return errors.New(locked)
	}
	return err
}

// sendBeats sends a line every few seconds. When ctx ends, it ends the keeper.
func sendBeats(ctx context.Context, w io.WriteCloser) {
	defer func() { _ = w.Close() }()
	tick := time.NewTicker(BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := io.WriteString(w, "\n"); err != nil {
				return // the connection is lost; the next step reports that
			}
		}
	}
}

// latest is the end of the year 9999, in seconds since 1970.
const latest = 253402300799

// maxGrantBytes is the maximum size of the answer of a keeper.
const maxGrantBytes = 4 << 10

// readGrant reads the answer of the keeper and returns the generation of the lock, or a *HeldError if another run holds
// it.
func readGrant(ctx context.Context, r *io.PipeReader, name string) (int64, error) {
	stop := context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
	defer stop()
	lines := bufio.NewReader(io.LimitReader(r, maxGrantBytes))
	first, err := lines.ReadString('\n')
	if ctx.Err() != nil {
		err = ctx.Err() // instead of the resulting error of the pipe
	}
	if unwritable := (*UnwritableError)(nil); errors.As(err, &unwritable) {
		return 0, err
	}
	if err != nil {
		return 0, fmt.Errorf("%s: take the lock: %w", name, err)
	}
	if number, ok := strings.CutPrefix(strings.TrimSpace(first), "granted "); ok {
		generation, err := strconv.ParseInt(number, 10, 64)
		if err != nil || generation <= 0 {
			return 0, fmt.Errorf("%s: take the lock: unexpected answer %.40q", name, first)
		}
		return generation, nil
	}
	held := &HeldError{Host: name, Holder: "another operator"}
	for {
		line, err := lines.ReadString('\n')
		key, value, _ := strings.Cut(strings.TrimSpace(host.Printable(line)), "=")
		switch key {
		case "holder":
			held.Holder = value
		case "run":
			held.RunID = value
		case "since":
			if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && seconds > 0 && seconds <= latest {
				held.Since = time.Unix(seconds, 0)
			}
		}
		if err != nil {
			return 0, held
		}
	}
}
