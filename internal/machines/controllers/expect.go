package controllers

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
)

// expectations tracks writes that the cache may not show yet. A plan made without them would repeat the writes and
// create or delete one machine too many.
type expectations struct {
	mu       sync.Mutex
	byFamily map[types.UID]map[types.UID]expected // by family and object
}

// expected is the state of one object that the cache should reach.
type expected struct {
	version string // resource version of the write; "" for a deleted object
	at      time.Time
}

// forgotten limits the wait for the cache: the written object may already have been deleted.
const cacheTimeout = 30 * time.Second

func newExpectations() *expectations {
	return &expectations{byFamily: map[types.UID]map[types.UID]expected{}}
}

// expectObject notes that the object was created or changed.
func (e *expectations) expectObject(family types.UID, o client.Object, now time.Time) {
	e.noteExpected(family, o.GetUID(), expected{o.GetResourceVersion(), now})
}

// expectDeletion notes that the object was deleted.
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

// areMet reports whether the cache shows all writes for the family.
func (e *expectations) areMet(family types.UID, sets []v1alpha1.MachineSet, machines []v1alpha1.Machine,
	now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	waits := e.byFamily[family]
	if len(waits) == 0 {
		return true
	}
	seen := map[types.UID]metav1.Object{}
	for i := range sets {
		seen[sets[i].UID] = &sets[i]
	}
	for i := range machines {
		seen[machines[i].UID] = &machines[i]
	}
	for uid, what := range waits {
		if what.isMet(seen[uid]) || now.Sub(what.at) > cacheTimeout {
			delete(waits, uid)
		}
	}
	if len(waits) == 0 {
		delete(e.byFamily, family)
		return true
	}
	return false
}

// isMet reports whether the cache has the written version of the object, or a later one.
func (x expected) isMet(o metav1.Object) bool {
	switch {
	case x.version == "":
		return o == nil || o.GetDeletionTimestamp() != nil
	case o == nil:
		return false
	}
	return !isOlder(o.GetResourceVersion(), x.version)
}

// isOlder compares resource versions, which are increasing decimal numbers.
func isOlder(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
