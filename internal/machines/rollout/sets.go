package rollout

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
)

// Hash returns a short hash of Template.Machine for names and labels. It does not include Metadata. If two templates
// have the same hash, a greater attempt results in a different one.
func Hash(t Template, attempt int) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%d", t.Machine, attempt)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// findCurrent returns the set with the template of the deployment, or nil if there is none. If several sets have it,
// findCurrent returns the one with the most machines, and then the oldest. Without a deployment it returns the only
// set.
func (p *planner) findCurrent() *Set {
	if p.Rollout == nil {
		if len(p.Sets) == 0 {
			return nil
		}
		return &p.Sets[0]
	}
	var found *Set
	for i := range p.Sets {
		s := &p.Sets[i]
		if s.Deleting || s.Template.Machine != p.Rollout.Template.Machine {
			continue
		}
		if found == nil || p.comparePreference(s, found) < 0 {
			found = s
		}
	}
	return found
}

func (p *planner) comparePreference(a, b *Set) int {
	return cmp.Or(
		cmp.Compare(p.countLiving(b.Name), p.countLiving(a.Name)),
		a.Created.Compare(b.Created),
		strings.Compare(a.Name, b.Name),
	)
}

// reviseSets ensures that one set has the template of the deployment and the newest revision. It returns false if this,
// or a rollback, requires a write first. In this case machines are not planned yet.
func (p *planner) reviseSets() bool {
	if p.Rollout.RollbackTo != 0 {
		p.requestRollback()
		return false
	}
	newest := int64(0)
	for i := range p.Sets {
		if s := &p.Sets[i]; s != p.current {
			newest = max(newest, s.Revision)
		}
	}
	if p.current == nil {
		p.writes = append(p.writes, Write{Kind: CreateSet, Name: p.newName(), Revision: newest + 1})
		return false
	}
	if p.current.Revision <= newest {
		p.writes = append(p.writes, Write{Kind: ReviseSet, Name: p.current.Name, Revision: newest + 1})
		return false
	}
	return true
}

// requestRollback plans to restore the template of an older revision. The next plan starts the rollout to this
// template.
func (p *planner) requestRollback() {
	to := p.Rollout.RollbackTo
	for i := range p.Sets {
		if s := &p.Sets[i]; s.Revision == to && !s.Deleting {
			p.writes = append(p.writes, Write{Kind: RollBack, Name: s.Name, Revision: to})
			return
		}
	}
	p.writes = append(p.writes, Write{Kind: ForgetRollback, Revision: to, Reason: "no such revision"})
}

// newName returns a name for a new set that is not used yet.
func (p *planner) newName() string {
	for attempt := 0; ; attempt++ {
		if name := p.Name + "-" + Hash(p.Rollout.Template, attempt); p.setByName(name) == nil {
			return name
		}
	}
}

// deleteOldSets plans the deletion of the oldest sets without machines beyond RevisionHistoryLimit.
func (p *planner) deleteOldSets() {
	var empty []*Set
	for i := range p.Sets {
		s := &p.Sets[i]
		if s != p.current && !s.Deleting && !p.used[s.Name] && p.created[s.Name] == 0 {
			empty = append(empty, s)
		}
	}
	slices.SortFunc(empty, func(a, b *Set) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Name, b.Name))
	})
	for _, s := range empty[:max(0, len(empty)-p.Rollout.RevisionHistoryLimit)] {
		p.writes = slices.DeleteFunc(p.writes, func(w Write) bool { return w.Kind == ScaleSet && w.Name == s.Name })
		p.writes = append(p.writes, Write{Kind: DeleteSet, Name: s.Name, Reason: "exceeds revisionHistoryLimit"})
	}
}

// share is the number of machines that a set gains or loses.
type share struct {
	set string
	n   int
}

// divideReplicas distributes n machines among the sets in proportion to their current machines, by largest remainder.
// If remainders are equal, the newer set gets more.
func (p *planner) divideReplicas(n int) []share {
	var shares []share
	rest := n
	for _, s := range p.byRevision() {
		if has := p.countLiving(s.Name); has > 0 {
			shares = append(shares, share{s.Name, n * has / len(p.alive)})
			rest -= n * has / len(p.alive)
		}
	}
	byRemainder := slices.Clone(shares)
	slices.SortStableFunc(byRemainder, func(a, b share) int {
		return cmp.Compare(n*p.countLiving(b.set)%len(p.alive), n*p.countLiving(a.set)%len(p.alive))
	})
	for i := range rest {
		at := slices.IndexFunc(shares, func(s share) bool { return s.set == byRemainder[i].set })
		shares[at].n++
	}
	return shares
}

// byRevision returns the sets, newest first.
func (p *planner) byRevision() []*Set {
	var sets []*Set
	for i := range p.Sets {
		sets = append(sets, &p.Sets[i])
	}
	slices.SortFunc(sets, func(a, b *Set) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), strings.Compare(a.Name, b.Name))
	})
	return sets
}
