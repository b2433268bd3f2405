package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"kubeone/internal/cluster"
	"kubeone/internal/host"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// askHost runs the script on one host and returns its answer, or a failed host if that is not possible. The timeouts of
// the host start now. It calls heard at the first output, and early as soon as the host has printed its credentials.
func (p *prober) askHost(ctx context.Context, t Target, heard func(), early func(Answer)) Answer {
	var begun atomic.Bool // the host has started to print
	begin := func() {
		if !begun.Swap(true) {
			heard()
		}
	}
	ctx, cancel := p.withHostTimeout(ctx, &begun)
	defer cancel()
	a, err := p.runScript(ctx, t, t.ControlPlane, begin, early)
	// the host key is not approved: run again without asking for credentials
	if errors.Is(err, host.ErrNotApproved) {
		a, err = p.runScript(ctx, t, false, begin, early)
	}
	if err != nil {
		a = Answer{Host: failedHost(ctx, err)}
	}
	a.Host.ID = t.ID
	contacts := firstContacts(t.Host)
	a.Host.FirstContact = host.Fingerprints(contacts)
	if err == nil {
		a.Host.OtherKeys = acceptedKeys(contacts)
		a.Host.Credentials = p.Credentials.compareWith(p.nonce, a.digests)
		p.askAPIServer(ctx, t, &a)
	}
	return a
}

// withHostTimeout returns a context for one host. It ends after HostTimeout if the answer has not started by then, and
// after AnswerTimeout otherwise.
func (p *prober) withHostTimeout(ctx context.Context, begun *atomic.Bool) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeout(ctx, p.AnswerTimeout)
	ctx, cancel := withActivityTimeout(ctx, p.HostTimeout, begun.Load)
	return ctx, func() { cancel(); end() }
}

// runScript runs the script and parses its answer. Only hosts with an approved key are asked for credentials;
// Cmd.Secret makes every other host refuse before anything runs. Credentials that were not requested are dropped.
func (p *prober) runScript(
	ctx context.Context, t Target, credentials bool, begin func(), early func(Answer),
) (Answer, error) {
	args := []string{argFacts}
	if credentials {
		args[0] = argCredentials
	}
	if p.nonce != "" {
		args = append(args, p.nonce)
	}
	said := &answerText{begin: begin}
	if credentials {
		said.access = func(head []byte) {
			if a, err := parseAccess(head); err == nil && p.hasKnownCA(&a) {
				early(a)
			}
		}
	}
	sent := p.Now()
	out, err := t.Host.Run(ctx, host.Cmd{
		Name: "probe", Script: Script, Args: args, Timeout: p.AnswerTimeout,
		Secret: credentials, Stdout: said, Stderr: &unread{left: maxTextBytes},
	})
	received := p.Now()
	if out.Duration > 0 && out.Duration < received.Sub(sent) {
		p.addSpans(t.ID, sent, Span{What: "connect", To: received.Sub(sent) - out.Duration})
		sent = received.Add(-out.Duration) // the round trip excludes connecting
	}
	if err != nil {
		return Answer{}, err
	}
	a, err := Parse(said.text, sent, received)
	if !credentials || !p.hasKnownCA(&a) {
		a.Credentials = Credentials{} // do not trust credentials that were not requested
	}
	if err == nil {
		p.addSpans(t.ID, sent, Span{What: "script", To: received.Sub(sent)})
		p.addSpans(t.ID, sent, a.Parts...)
	}
	return a, err
}

// hasKnownCA reports whether the credentials of the host belong to the known cluster CA or to a successor of it,
// according to the succession file of the host. If not, it records the other CA in the answer.
func (p *prober) hasKnownCA(a *Answer) bool {
	if p.CA == "" || len(a.Credentials.Kubeconfig) == 0 {
		return true
	}
	text := cluster.Access{Kubeconfig: a.Credentials.Kubeconfig}.CA()
	if !authority.IsKnown(p.CA, text, a.Credentials.Succession) {
		a.Host.AdminCA = cmp.Or(foreignCA(p.CA, text, a.Credentials.Succession), "none")
		return false
	}
	return true
}

// foreignCA returns the first CA in a file that is neither the known CA nor a successor of it, or "" if there is none.
func foreignCA(known string, file, succession []byte) string {
	followers := authority.Followers(known, succession)
	for _, key := range authority.Keys(file) {
		if !slices.Contains(followers, key) {
			return key
		}
	}
	return ""
}

// adminCA returns the hash of the CA in the admin.conf of a host, or "" if there is none.
func adminCA(c Credentials) string {
	return CAHash(cluster.Access{Kubeconfig: c.Kubeconfig}.CA())
}

// answerText collects the output of a host. When accessLine arrives, it passes on everything before it.
type answerText struct {
	begin  func()            // called with each piece
	access func(head []byte) // called once, or never
	text   []byte
}

// Write takes the next piece.
func (t *answerText) Write(piece []byte) (int, error) {
	if len(t.text)+len(piece) > maxTextBytes {
		return 0, host.ErrOutput
	}
	t.begin()
	begin := max(0, len(t.text)-len(accessLine)) // the line may be split between two pieces
	t.text = append(t.text, piece...)
	if t.access == nil {
		return len(piece), nil
	}
	if i := bytes.Index(t.text[begin:], []byte("\n"+accessLine)); i >= 0 {
		access := t.access
		t.access = nil
		access(t.text[:begin+i+1])
	}
	return len(piece), nil
}

// unread discards that many bytes of standard error and then fails. The error of the command contains the end of them.
type unread struct{ left int }

// Write takes the next piece.
func (u *unread) Write(piece []byte) (int, error) {
	if len(piece) > u.left {
		return 0, host.ErrOutput
	}
	u.left -= len(piece)
	return len(piece), nil
}

// failedHost returns a host that was not reached because of that error.
func failedHost(ctx context.Context, err error) observed.Host {
	h := observed.Host{Reach: observed.Unreachable, Class: "unreachable", Problem: errorReason(err)}
	var changed *host.HostKeyChangedError
	if errors.As(err, &changed) && changed.AcceptAs != "" {
		h.OtherKeys = []observed.OtherKey{otherKey(changed.AcceptAs, changed.Known, changed.Offered)}
	}
	switch class := host.ClassOf(err); {
	case errors.Is(err, host.ErrSilent):
		h.Class = observed.ClassHanging
	case errors.Is(err, ErrTruncated) || class == host.Lost:
		h.Class = "lost"
	case errors.Is(err, ErrGarbled) || class == host.Exit:
		h.Reach, h.Class = observed.Denied, "exit"
	case class == host.Auth:
		h.Reach, h.Class = observed.Denied, "auth"
	case class == host.HostKey:
		h.Reach, h.Class = observed.Denied, "hostkey"
	case class == host.Sudo:
		h.Reach, h.Class = observed.Denied, "sudo"
	case class == host.Config:
		h.Reach, h.Class = observed.Denied, "config"
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		h.Problem = "no answer in time: " + h.Problem
	}
	return h
}

// errorReason returns the text of the error without the host name, which the world already contains. It keeps the
// address, which may be that of a bastion.
func errorReason(err error) string {
	var e *host.Error
	switch {
	case !errors.As(err, &e):
		return oneLine(err)
	case e.Addr == "":
		return boundText(e.Reason())
	}
	return boundText(e.Addr + ": " + e.Reason())
}

func oneLine(err error) string { return boundText(err.Error()) }

// boundText makes a text from a host safe to show: one printable line of at most maxLineBytes.
func boundText(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.TrimSpace(host.Printable(text[:min(len(text), maxLineBytes)]))
}

// firstContacts returns the unapproved host keys of a host and its bastions, the outermost bastion first.
func firstContacts(h Host) []host.FirstContact {
	f, ok := h.(host.FirstContacter)
	if !ok {
		return nil
	}
	return f.FirstContacts()
}

// acceptedKeys returns the keys in contacts that replace known keys.
func acceptedKeys(contacts []host.FirstContact) []observed.OtherKey {
	var out []observed.OtherKey
	for _, c := range contacts {
		if len(c.Replaces) > 0 {
			out = append(out, otherKey(c.AcceptAs, c.Replaces, c.Fingerprint))
		}
	}
	return out
}

// otherKey returns a description of a key that the named machine offers in place of its known ones.
func otherKey(name string, known []host.KnownKey, offered string) observed.OtherKey {
	k := observed.OtherKey{Name: name, Offered: offered}
	for _, known := range known {
		k.Known = append(k.Known, known.String())
	}
	return k
}

// clusterEpoch returns how many recoveries the cluster had gone through when the host joined. If the join is
// unfinished, it returns newest.
func (c candidate) clusterEpoch(newest int) int {
	if m := c.answer.Host.Marker; m != nil && m.Complete {
		return m.Epoch
	}
	return newest
}

// newestLife returns the highest epoch of all control-plane hosts with approved keys. Hosts with a lower epoch have
// data from before the last recovery, so they are not used to read the API or etcd.
func (p *prober) newestLife() int {
	newest := 0
	for _, t := range p.Targets {
		if a := p.answers[t.ID]; t.ControlPlane && a.Host.FirstContact == "" {
			newest = max(newest, candidate{t, a}.clusterEpoch(0))
		}
	}
	return newest
}

// hasStaleEpoch reports whether the host with that ID has data from before the last recovery of the cluster.
func (p *prober) hasStaleEpoch(id string) bool {
	newest := p.newestLife()
	for _, t := range p.Targets {
		if t.ID == id {
			return candidate{t, p.answers[id]}.clusterEpoch(newest) < newest
		}
	}
	return false
}

// candidatesOfNewestLife returns the candidates to try again if the answer came from a host with data from before the
// last recovery. The channel is closed.
func (p *prober) candidatesOfNewestLife(has func(Credentials) bool) <-chan candidate {
	all := p.apiCandidates("")
	out := make(chan candidate, len(all))
	for _, c := range all {
		if has(c.answer.Credentials) {
			out <- c
		}
	}
	close(out)
	return out
}

// withActivityTimeout returns a context that ends after d, or later, as soon as underWay returns false. So a busy host
// that is still answering is not taken for dead. The cause is context.DeadlineExceeded.
func withActivityTimeout(parent context.Context, d time.Duration, underWay func() bool) (context.Context,
	context.CancelFunc) {
	const again = 250 * time.Millisecond
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if !underWay() {
				cancel(context.DeadlineExceeded)
				return
			}
			timer.Reset(again)
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
