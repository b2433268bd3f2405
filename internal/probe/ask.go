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

// askHost asks one host, whose time starts now. A failure becomes the answer. It calls heard at the first output, and
// early as soon as the host has printed its credentials.
func (p *prober) askHost(ctx context.Context, t Target, heard func(), early func(Answer)) Answer {
	var begun atomic.Bool // its output has begun
	begin := func() {
		if !begun.Swap(true) {
			heard()
		}
	}
	ctx, cancel := p.withHostTimeout(ctx, &begun)
	defer cancel()
	a, err := p.runScript(ctx, t, t.ControlPlane, begin, early)
	// refused before anything ran: no credentials from a host of unknown identity
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

// withHostTimeout returns the context of one host: HostTimeout until its answer begins, AnswerTimeout until it ends.
func (p *prober) withHostTimeout(ctx context.Context, begun *atomic.Bool) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeout(ctx, p.AnswerTimeout)
	ctx, cancel := withActivityTimeout(ctx, p.HostTimeout, begun.Load)
	return ctx, func() { cancel(); end() }
}

// runScript runs the script and parses its answer; it calls begin with each piece. Only a host with an approved key
// is asked for credentials: with Cmd.Secret, any other host refuses before it runs anything. Unrequested credentials
// are dropped.
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
		a.Credentials = Credentials{} // unrequested credentials are not trusted
	}
	if err == nil {
		p.addSpans(t.ID, sent, Span{What: "script", To: received.Sub(sent)})
		p.addSpans(t.ID, sent, a.Parts...)
	}
	return a, err
}

// hasKnownCA reports whether the host's credentials belong to the cluster's known CA or, by the host's own file, to a
// successor. For another CA, the answer names it.
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

// foreignCA returns the first CA of a file that is neither known nor a successor of the known one.
func foreignCA(known string, file, succession []byte) string {
	followers := authority.Followers(known, succession)
	for _, key := range authority.Keys(file) {
		if !slices.Contains(followers, key) {
			return key
		}
	}
	return ""
}

// adminCA returns the hash of the CA in a host's admin.conf; "" if it has none.
func adminCA(c Credentials) string {
	return CAHash(cluster.Access{Kubeconfig: c.Kubeconfig}.CA())
}

// answerText collects a host's output. Once accessLine has come, it passes on the part before.
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
	begin := max(0, len(t.text)-len(accessLine)) // the line may have come in two pieces
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

// unread discards that many bytes; the error of the command has what matters of them.
type unread struct{ left int }

// Write takes the next piece.
func (u *unread) Write(piece []byte) (int, error) {
	if len(piece) > u.left {
		return 0, host.ErrOutput
	}
	u.left -= len(piece)
	return len(piece), nil
}

// failedHost returns the host with that error.
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

// errorReason returns the error without the host's name, which the world already has. It keeps the address, which may
// be a bastion's.
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

// boundText bounds a text with a host's words in it: one printable line of at most maxLineBytes bytes.
func boundText(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.TrimSpace(host.Printed(text[:min(len(text), maxLineBytes)]))
}

// firstContacts returns the unapproved keys on the way to a host, the outermost first.
func firstContacts(h Host) []host.FirstContact {
	f, ok := h.(host.FirstContacter)
	if !ok {
		return nil
	}
	return f.FirstContacts()
}

// acceptedKeys returns the contacts' keys that were accepted in place of known ones.
func acceptedKeys(contacts []host.FirstContact) []observed.OtherKey {
	var out []observed.OtherKey
	for _, c := range contacts {
		if len(c.Replaces) > 0 {
			out = append(out, otherKey(c.AcceptAs, c.Replaces, c.Fingerprint))
		}
	}
	return out
}

// otherKey describes a key in place of the known ones of the named machine.
func otherKey(name string, known []host.KnownKey, offered string) observed.OtherKey {
	k := observed.OtherKey{Name: name, Offered: offered}
	for _, known := range known {
		k.Known = append(k.Known, known.String())
	}
	return k
}

// clusterEpoch returns the cluster's number of recoveries when the host joined it; for an unfinished join, the
// present number.
func (c candidate) clusterEpoch(newest int) int {
	if m := c.answer.Host.Marker; m != nil && m.Complete {
		return m.Epoch
	}
	return newest
}

// newestLife returns the highest epoch of a control-plane host with an approved key. Hosts of a lower epoch hold data
// from the cluster's former life, so nothing about the cluster is asked through them.
func (p *prober) newestLife() int {
	newest := 0
	for _, t := range p.Targets {
		if a := p.answers[t.ID]; t.ControlPlane && a.Host.FirstContact == "" {
			newest = max(newest, candidate{t, a}.clusterEpoch(0))
		}
	}
	return newest
}

// hasStaleEpoch reports whether the host with that ID holds data from the cluster's former life.
func (p *prober) hasStaleEpoch(id string) bool {
	newest := p.newestLife()
	for _, t := range p.Targets {
		if t.ID == id {
			return candidate{t, p.answers[id]}.clusterEpoch(newest) < newest
		}
	}
	return false
}

// candidatesOfNewestLife streams the candidates to ask again after an answer from a former life.
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

// withActivityTimeout returns a context that ends with the cause context.DeadlineExceeded: after d or, if underWay then
// reports that an answer is coming, as soon as it no longer does. A busy host that has begun to answer is not dead.
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
