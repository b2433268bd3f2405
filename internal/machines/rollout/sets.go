package rollout

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
)

// Hash is a short name of a template, for names and labels: of what makes another machine of it, as metadata makes
// none. Attempt is 0 but where another template has that hash already.
func Hash(t Template, attempt int) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%d", t.Machine, attempt)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// findCurrent is the set that has the deployment's template: where several have it, the one with most machines, and of
// those the oldest.
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

// reviseSets sees to it that a set has the deployment's template, under the newest revision. It says whether the
// machines can be decided about: not before the set is there.
func (p *planner) reviseSets() bool {
	if p.Rollout.RollbackTo != 0 {
		p.rollBack()
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

// rollBack gives the deployment a former template. The roll-out to it begins with the next plan.
func (p *planner) rollBack() {
	to := p.Rollout.RollbackTo
	for i := range p.Sets {
		if s := &p.Sets[i]; s.Revision == to && !s.Deleting {
			p.writes = append(p.writes, Write{Kind: RollBack, Name: s.Name, Revision: to})
			return
		}
	}
	p.writes = append(p.writes, Write{Kind: ForgetRollback, Revision: to, Reason: "there is no such revision"})
}

// newName is a name that no set has.
func (p *planner) newName() string {
	for attempt := 0; ; attempt++ {
		if name := p.Name + "-" + Hash(p.Rollout.Template, attempt); p.setByName(name) == nil {
			return name
		}
	}
}

// forgetSets deletes the oldest sets that have no machines, beyond those that are kept for a rollback.
func (p *planner) forgetSets() {
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
		p.writes = append(p.writes, Write{Kind: DeleteSet, Name: s.Name, Reason: "not kept for a rollback any more"})
	}
}

// share is how many machines a set gets or gives.
type share struct {
	set string
	n   int
}

// divideReplicas divides n among the sets that have machines, by how many they have: by largest remainder, and the
// newest set where remainders are equal.
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

// byRevision is the sets, the newest first.
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
