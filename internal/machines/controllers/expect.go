package controllers

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
)

// expectations records writes that the cache may not show yet. A plan made without them would repeat these writes, and
// create or delete too many machines. It is safe for concurrent use.
type expectations struct {
	mu       sync.Mutex
	byFamily map[types.UID]map[types.UID]expected // by UID of the family and of the object
}

// expected is the state of one object that the cache must show.
type expected struct {
	version string // resource version of the write; "" for a deleted object
	at      time.Time
}

// cacheTimeout limits the wait for the cache. Without it, the wait for an object that was deleted after the write would
// never end.
const cacheTimeout = 30 * time.Second

func newExpectations() *expectations {
	return &expectations{byFamily: map[types.UID]map[types.UID]expected{}}
}

// expectObject records that the object was created or changed.
func (e *expectations) expectObject(family types.UID, o client.Object, now time.Time) {
	e.noteExpected(family, o.GetUID(), expected{o.GetResourceVersion(), now})
}

// expectDeletion records that the object was deleted.
func (e *expectations) expectDeletion(family types.UID, o client.Object, now time.Time) {
	e.noteExpected(family, o.GetUID(), expected{"", now})
}

func (e *expectations) noteExpected(family, object types.UID, what expected) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byFamily[family] == nil {
		e.byFamily[family] = map[types.UID]expected{}
	}
	e.byFamily[family][object] = what
}

// areMet reports whether the cache shows all writes for the family. It forgets the writes that the cache shows and
// those older than cacheTimeout.
func (e *expectations) areMet(family types.UID, sets []v1alpha1.MachineSet, machines []v1alpha1.Machine,
	now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	pending := e.byFamily[family]
	if len(pending) == 0 {
		return true
	}
	cached := map[types.UID]metav1.Object{}
	for i := range sets {
		cached[sets[i].UID] = &sets[i]
	}
	for i := range machines {
		cached[machines[i].UID] = &machines[i]
	}
	for uid, what := range pending {
		if what.isMet(cached[uid]) || now.Sub(what.at) > cacheTimeout {
			delete(pending, uid)
		}
	}
	if len(pending) == 0 {
		delete(e.byFamily, family)
		return true
	}
	return false
}

// isMet reports whether the cached object is the written version or a later one. A nil object is not in the cache.
func (x expected) isMet(o metav1.Object) bool {
	switch {
	case x.version == "":
		return o == nil || o.GetDeletionTimestamp() != nil
	case o == nil:
		return false
	}
	return !isOlder(o.GetResourceVersion(), x.version)
}

// isOlder reports whether resource version a is older than b. Resource versions are increasing decimal numbers.
func isOlder(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
