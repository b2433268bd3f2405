package plan

import (
	"slices"
	"strings"

	"kubeone/internal/decide"
	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan/step"
)

// encryptSecrets plans one phase of a change of encryption, one control-plane host at a time. The next phase follows
// from the decision about the predicted world. It reports whether another route may follow.
func (b *builder) encryptSecrets(d decide.Decision) bool {
	e := d.Encryption
	previous := b.onControlPlane()
	if e.Phase == atrest.Forget {
		previous = b.rewriteSecrets(e.Writer, previous)
	}
	for _, id := range e.Hosts {
		h := b.hostByID(id)
		changes := b.encryptionChanges(h, *e)
		is := b.world.Is.Hosts[id]
		if pods := decide.EditedPods(&is); len(pods) > 0 {
			b.addBlocked("changing how Secrets are stored on " + b.displayName(h) +
				" would overwrite edits of " +
				problem.List(pods) + ": undo them, or keep them elsewhere and run kubeone upgrade --force " +
				"--discard-edits first")
			return false
		}
		if b.checkStop(h).Outage {
			changes = append(changes, "outage: the only API server restarts")
		}
		previous = []string{b.encryptHost(h, e.Phase, e.Providers[id], newKey(*e), changes, previous)}
	}
	b.in.Options = b.in.After(fsm.Encrypt)
	return true
}

// newKey returns the name of the key that the phase creates; "" if it creates none.
func newKey(e atrest.Decision) string {
	if e.New && e.Phase == atrest.Learn {
		return e.Writer
	}
	return ""
}

// onControlPlane returns the steps on control-plane hosts that no other such step needs: once they are done, all are.
// Meanwhile, Nodes become Ready and addons are applied.
func (b *builder) onControlPlane() []string {
	var out []string
	for _, s := range b.plan.Steps {
		if h := b.hostByID(s.Host); h.ID == "" || h.Role != desired.ControlPlane || !s.Intent.Kind.OnHost() {
			continue
		}
		out = slices.DeleteFunc(out, func(id string) bool { return slices.Contains(s.Needs, id) })
		out = append(out, s.ID)
	}
	return out
}

// rewriteSecrets plans to rewrite every Secret, and then to check etcd's data.
func (b *builder) rewriteSecrets(writer string, needs []string) []string {
	title := "rewrite every Secret, encrypted with key " + writer
	if writer == observed.Identity {
		title = "rewrite every Secret, unchanged"
	}
	if b.hasStep(string(step.RewriteSecrets)) { // once already, with another key
		return needs
	}
	written := b.onCluster(string(step.RewriteSecrets), Step{
		Intent: plainIntent(step.RewriteSecrets), Action: Change, Title: title,
		Reason:  "a stored Secret keeps its encryption until it is rewritten",
		Changes: []string{"every Secret in etcd; clients see no difference"}, Needs: slices.Clone(needs),
	})
	h := b.in.Want.ControlPlane[0]
	return []string{b.onHost(h, Step{
		Intent: step.With(step.CheckSecretsParams{StoredBy: writer}), Action: Change,
		Title: "check how all Secrets in etcd are encrypted", Needs: []string{written},
		Reason: "a Secret encrypted with another key would become unreadable",
	})}
}

func (b *builder) encryptHost(
	h desired.Host, phase atrest.Phase, providers []string, made string, changes, needs []string,
) string {
	return b.onHost(h, Step{
		Intent: step.With(step.EncryptParams{Phase: phase, Providers: providers, NewKey: made}),
		Action: Change, Risk: Restarts, Title: "encryption of Secrets: " + phaseTitle(phase, providers, made),
		Reason: phaseReason(phase), Needs: slices.Clone(needs), Changes: changes,
	})
}

// phaseTitle returns the title of a phase on one host.
func phaseTitle(phase atrest.Phase, providers []string, made string) string {
	switch {
	case phase == atrest.Learn && made != "":
		return "learn new key " + made
	case phase == atrest.Learn:
		return "learn all keys"
	case phase == atrest.Use:
		return "write with " + byKey(providers[0])
	case phase == atrest.Give:
		return "restore the keys"
	case len(providers) == 0:
		return "end, and delete the keys"
	}
	return "delete all keys except " + byKey(providers[0])
}

// byKey returns a provider as part of a sentence.
func byKey(provider string) string {
	if provider == observed.Identity {
		return "no key"
	}
	return "key " + provider
}

func phaseReason(phase atrest.Phase) string {
	switch phase {
	case atrest.Learn:
		return "it must be able to read what others will write"
	case atrest.Use:
		return "all control-plane hosts can read that"
	case atrest.Give:
		return "they are missing on this host but exist on another host"
	case atrest.Forget, atrest.Settled:
	}
	return "no Secret is encrypted with another key now"
}

func (b *builder) encryptionChanges(h desired.Host, e atrest.Decision) []string {
	out := []string{"API server restarts; it reads Secrets with " + readBy(e.Providers[h.ID])}
	if made := newKey(e); made != "" {
		out = append(out, "/etc/kubernetes/encryption: key "+made+", which is generated for this")
	}
	return out
}

func readBy(providers []string) string {
	if len(providers) == 0 {
		return "no key"
	}
	var out []string
	for _, p := range providers {
		out = append(out, byKey(p))
	}
	return strings.Join(out, ", ")
}

// giveKeys plans that a host gets its lost keys, and then everything else that it lacks.
func (b *builder) giveKeys(h desired.Host, parts []string, reason string, needs []string) string {
	var others []atrest.Host
	for _, other := range b.in.Want.ControlPlane {
		is := b.world.Is.Hosts[other.ID]
		if e := is.Encryption; other.ID != h.ID && is.Reach == observed.Reached && is.Marker != nil &&
			is.Marker.Complete && (e == nil || !e.Lost && e.Foreign == "") {
			others = append(others, atrest.Of(other.ID, e))
		}
	}
	providers := atrest.Join(others)
	id := b.onHost(h, Step{
		Intent: step.With(step.EncryptParams{Phase: atrest.Give, Providers: providers}),
		Action: Change, Risk: Restarts, Title: "encryption of Secrets: " + phaseTitle(atrest.Give, providers, ""),
		Reason: reason, Needs: slices.Clone(needs),
		Changes: []string{"/etc/kubernetes/encryption; the API server reads Secrets with " + readBy(providers)},
	})
	rest := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == condition.PartEncryption })
	if len(rest) == 0 {
		return id
	}
	return b.regenerateParts(h, rest, reason, []string{id})
}
