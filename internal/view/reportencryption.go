package view

import (
	"slices"
	"strings"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/model/observed"
)

// EncryptionReport is how Secrets are stored in etcd.
type EncryptionReport struct {
	Wanted bool `json:"wanted,omitempty"` // the manifest wants them encrypted
	// StoredBy are the names of the keys by which control-plane hosts store Secrets now: one, and more only in a phase
	// of a change; "identity" is no key.
	StoredBy []string `json:"storedBy"`
	// ReadBy are the names of all that some control-plane host can read.
	ReadBy []string `json:"readBy"`
	// Phase is the next phase of a change that is wanted or under way, "learn", "use" or "forget"; "" where there is
	// none.
	Phase atrest.Phase `json:"phase,omitempty"`
	// Unknown are the names of control-plane hosts that did not tell.
	Unknown []string `json:"unknown,omitempty"`
	// Lost are the names of those that have lost their keys.
	Lost []string `json:"lost,omitempty"`
	// Foreign is the file of somebody else's configuration by which an API server encrypts.
	Foreign string `json:"foreign,omitempty"`
}

// encryption is nil where nobody wants Secrets encrypted, and they are not.
func (st StatusInput) encryption() *EncryptionReport {
	r := EncryptionReport{Wanted: st.Want.EncryptSecrets}
	hosts, found := st.encryptionHosts(&r)
	if !found && !r.Wanted || len(hosts)+len(r.Lost) == 0 && r.Foreign == "" {
		return nil
	}
	for _, h := range hosts {
		for _, running := range h.Running {
			r.StoredBy = addNew(r.StoredBy, running[:min(1, len(running))])
			r.ReadBy = addNew(r.ReadBy, running)
		}
	}
	if len(r.Unknown) == 0 && len(r.Lost) == 0 && r.Foreign == "" {
		r.Phase = atrest.Decide(hosts, atrest.Want{Encrypted: r.Wanted}).Phase
	}
	return &r
}

// encryptionHosts are the control-plane hosts that tell how they store Secrets; of the others it notes why they are not
// among them. It reports whether any host was told anything about that.
func (st StatusInput) encryptionHosts(r *EncryptionReport) (hosts []atrest.Host, found bool) {
	for _, h := range st.Want.ControlPlane {
		seen := st.World.Hosts[h.ID]
		e := seen.Encryption
		found = found || e != nil && seen.Reach == observed.Reached
		switch {
		case seen.Reach != observed.Reached || !st.Decision.Hosts[h.ID].Condition.Joined():
			r.Unknown = append(r.Unknown, st.name(h.ID))
		case e != nil && e.Foreign != "":
			r.Foreign = e.Foreign
		case e != nil && e.Lost:
			r.Lost = append(r.Lost, st.name(h.ID))
		default:
			hosts = append(hosts, atrest.Of(h.ID, e))
		}
	}
	return hosts, found
}

// addNew adds those names that are not there yet.
func addNew(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// encryption tells how Secrets are stored, where there is something to tell.
func (v statusView) encryption() {
	e := v.Encryption
	if e == nil {
		return
	}
	var parts []string
	as := plain
	switch {
	case e.Foreign != "":
		parts = append(parts, "by a configuration of somebody else's, "+e.Foreign)
	case slices.Equal(e.StoredBy, []string{observed.Identity}):
		parts = append(parts, "not encrypted")
	case len(e.StoredBy) > 0:
		parts = append(parts, "encrypted by "+strings.Join(e.StoredBy, ", "))
	}
	if len(e.ReadBy) > len(e.StoredBy) {
		parts = append(parts, "read by "+strings.Join(e.ReadBy, ", "))
	}
	if e.Phase != atrest.Settled {
		parts, as = append(parts, "a change is to be done or under way, next phase: "+string(e.Phase)), yellow
	}
	if len(e.Lost) > 0 {
		parts, as = append(parts, "keys are gone on "+strings.Join(e.Lost, ", ")), red
	}
	if len(e.Unknown) > 0 {
		parts = append(parts, "not known of "+strings.Join(e.Unknown, ", "))
	}
	v.fact("Secrets", as, strings.Join(parts, "; "))
}
