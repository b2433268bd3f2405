package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// pieceWithin limits the wait for the next piece of a snapshot.
const pieceWithin = 30 * time.Second

// ErrSnapshotBroken means that a snapshot ended early or arrived damaged. The caller must discard what was written.
var ErrSnapshotBroken = errors.New("the snapshot arrived incomplete or damaged")

// ErrDisk means that the writer for the snapshot returned an error, for example because the disk is full.
var ErrDisk = errors.New("the snapshot cannot be written")

// Snapshot writes a snapshot of the connected member to w as it arrives: the whole database, then its sha256. It
// returns the size, and an error if the snapshot is incomplete or does not match the checksum. It does not need a
// quorum, but without quorum the data may be outdated. There is no time limit as long as data keeps arriving.
func (c *Client) Snapshot(ctx context.Context, w io.Writer) (int64, error) {
	conn, err := c.connectTo(c.connectedURL())
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.requests.Add(1)
	stream, err := pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return 0, fmt.Errorf("etcd on %s: snapshot: %w", c.via.ID, translateError(err))
	}
	out := &checkedWriter{w: w, sum: sha256.New()}
	err = receivePieces(stream, out, stop)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err == nil && !out.isComplete() {
		err = fmt.Errorf("%w: its checksum is wrong", ErrSnapshotBroken)
	}
	if err != nil {
		return out.n, fmt.Errorf("etcd on %s: snapshot: %w", c.via.ID, err)
	}
	return out.n, nil
}

// receivePieces copies the pieces; each has a deadline.
func receivePieces(stream grpc.ServerStreamingClient[pb.SnapshotResponse], out io.Writer,
	stop context.CancelCauseFunc) error {
	late := time.AfterFunc(pieceWithin, func() {
		stop(fmt.Errorf("%w: no data for %s", ErrSnapshotBroken, pieceWithin))
	})
	defer late.Stop()
	remaining := uint64(1) // unknown until the first piece arrives
	for {
		piece, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && remaining > 0:
			return fmt.Errorf("%w: it ended early", ErrSnapshotBroken)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrSnapshotBroken, err)
		}
		late.Stop() // do not count the time for writing
		if _, err := out.Write(piece.Blob); err != nil {
			return fmt.Errorf("%w: %w", ErrDisk, err)
		}
		remaining = piece.RemainingBytes
		late.Reset(pieceWithin)
	}
}

// sealed passes on what is written and checks whether it ends with the sha256 of everything before.
type checkedWriter struct {
	w    io.Writer
	sum  hash.Hash
	tail []byte // at most the last sha256.Size bytes, not in sum yet
	n    int64
}

// Write implements io.Writer.
func (s *checkedWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	s.tail = append(s.tail, p[:n]...)
	if over := len(s.tail) - sha256.Size; over > 0 {
		_, _ = s.sum.Write(s.tail[:over])
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
	return n, err
}

func (s *checkedWriter) isComplete() bool { return bytes.Equal(s.tail, s.sum.Sum(nil)) }
