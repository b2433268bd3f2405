package sshtest

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// A Handler runs one command and returns its exit status, 0 to 255. It is called concurrently.
type Handler func(*Session) int

// A Session is one command.
type Session struct {
	Command   string
	User      string
	LocalAddr net.Addr // address of the host, if the server stands for several
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	Signals   <-chan string // "TERM", ...

	ctx  context.Context //nolint:containedctx // the session's life
	drop func()
}

// Context ends when the client closes the channel or the connection ends.
func (s *Session) Context() context.Context { return s.ctx }

// Drop cuts the connection during the command, like a crash of the host.
func (s *Session) Drop() { s.drop() }

// serveSession serves one session channel (RFC 4254, 6): exec and signal only.
func (s *Server) serveSession(ctx context.Context, meta ssh.ConnMetadata, raw net.Conn, nc ssh.NewChannel) {
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan string, 8)
	started := false
	for r := range reqs {
		switch {
		case r.Type == "exec" && !started && len(r.Payload) >= 4:
			started = true
			_ = r.Reply(true, nil)
			session := &Session{
				Command: string(r.Payload[4:]), User: meta.User(), LocalAddr: raw.LocalAddr(),
				Stdin: ch, Stdout: ch, Stderr: ch.Stderr(), Signals: signals, ctx: ctx,
				drop: func() { _ = raw.Close() },
			}
			go func() {
				status := s.opts.Handler(session)
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
				_ = ch.Close()
			}()
		case r.Type == "signal" && len(r.Payload) >= 4:
			select {
			case signals <- string(r.Payload[4:]):
			default:
			}
		default:
			_ = r.Reply(false, nil)
		}
	}
}

// Shell runs commands with sh and additional environment variables, as the user of the test. As with sshd, a command
// survives the end of its connection; its input ends.
func Shell(env ...string) Handler {
	return func(s *Session) int {
		cmd := exec.Command("sh", "-c", s.Command)
		cmd.Env = append(os.Environ(), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return 255
		}
		if err := cmd.Start(); err != nil {
			return 255
		}
		go func() {
			_, _ = io.Copy(in, s.Stdin)
			_ = in.Close()
		}()
		ended := make(chan struct{})
		defer close(ended)
		go forwardSignals(s.Signals, cmd.Process.Pid, ended)
		_ = cmd.Wait()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return max(0, cmd.ProcessState.ExitCode())
	}
}

func forwardSignals(signals <-chan string, group int, ended <-chan struct{}) {
	known := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "INT": syscall.SIGINT}
	for {
		select {
		case name := <-signals:
			if sig, ok := known[strings.TrimSpace(name)]; ok {
				_ = syscall.Kill(-group, sig)
			}
		case <-ended:
			return
		}
	}
}
