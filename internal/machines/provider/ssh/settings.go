package ssh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/apply"
	"kubeone/internal/cluster"
	"kubeone/internal/decide"
	"kubeone/internal/engine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/phrase"
)

// Hosts of Machines follow the settings of the cluster's record. Each host is looked at when the record has others; who
// differs waits for its turn, which is noted in its Host: another process that leads gives no second one meanwhile.
// Credentials come with that look: they wait for no turn.

const (
	// recordAge is how old what is known of the record may be.
	recordAge = 10 * time.Second
	// turnsAge is how old a list of whose turn it is may be, and how often somebody is woken for it.
	turnsAge = 2 * time.Second
	// awaitTurn is when a Machine asks again by itself whether it is its turn.
	awaitTurn = time.Minute
)

// wanted are the settings that the cluster's record has, and how many hosts may get them at a time.
type wanted struct {
	revision string // of the settings and the credentials; "" while it is not known
	settings string // the revision of the settings alone, for which hosts take turns
	limits   rollout.Limits
}

// found is what a host was found to have.
type found struct {
	revision string // of the settings that were wanted then
	differs  bool
	refused  string // why it has taken them back; "" where it has not
}

// settings is what one process knows of settings. Another one finds it out anew.
type settings struct {
	read func(context.Context) (wanted, error)

	mu    sync.Mutex
	now   wanted
	asked time.Time
	seen  map[types.UID]found // by the Machine's UID

	turns   rollout.Turns
	planned time.Time
	waiting outOfService

	giving  sync.Mutex // held by whoever takes its turn
	reading sync.Mutex // held by whoever reads the record
	woken   chan event.GenericEvent
}

func newSettings(read func(context.Context) (wanted, error)) *settings {
	return &settings{
		read: read, seen: map[types.UID]found{}, waiting: outOfService{}, woken: make(chan event.GenericEvent),
	}
}

// currentSettings is what the record wants, as it was at most recordAge ago. Where it cannot be read, or somebody reads
// it right now, it is what it was before. Nobody waits for an API that does not answer.
func (s *settings) currentSettings(ctx context.Context, now time.Time) wanted {
	s.mu.Lock()
	known, fresh := s.now, isYounger(s.asked, now, recordAge)
	s.mu.Unlock()
	if fresh || !s.reading.TryLock() {
		return known
	}
	defer s.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, recordAge)
	defer cancel()
	is, err := s.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked = now; err == nil && is.revision != "" {
		s.now = is
	}
	return s.now
}

// isYounger reports whether what is of then is younger than the age. What is of a time to come is of a clock that was
// set back since.
func isYounger(then, now time.Time, age time.Duration) bool {
	passed := now.Sub(then)
	return !then.IsZero() && passed >= 0 && passed < age
}

// noteResult notes what a run has found, which was made for the revision. An error that says so is none.
func (s *settings) noteResult(uid types.UID, revision string, err error) error {
	is := found{revision: revision}
	why, refused := apply.SettingsRefused(err)
	switch {
	case refused:
		is.differs, is.refused = true, phrase.Shorten(why, longest)
	case errors.Is(err, errDiffers):
		is.differs = true
	case err != nil:
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[uid], s.planned = is, time.Time{}
	return nil
}

func (s *settings) foundOf(uid types.UID) found {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[uid]
}

func (s *settings) forgetMachine(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, uid)
	s.planned = time.Time{}
}

// errDiffers says that a host has other settings than are wanted, and all else that is.
var errDiffers = errors.New("the host has other settings")

// hostCredentials are what the hosts are to have for registries and proxies, with the revision of the Secret that has
// them; nil and "" where nobody has said that: they keep what they have.
func (s *Site) hostCredentials(ctx context.Context) (*desired.Credentials, string, error) {
	c, err := cluster.Connect(s.Access)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	return c.HostCredentials(ctx)
}

// revisionOf names settings of the record with credentials of that revision. It tells nothing of what these are.
func revisionOf(settings, credentials string) string {
	if credentials == "" {
		return settings
	}
	sum := sha256.Sum256([]byte(settings + " " + credentials))
	return hex.EncodeToString(sum[:16])
}

// workerSettings are those that the cluster's record wants of workers, and the credentials that go with it.
func (s *Site) workerSettings(ctx context.Context) (wanted, error) {
	loaded, _, err := s.Recorded(ctx)
	if err != nil {
		return wanted{}, err
	}
	_, credentials, err := s.hostCredentials(ctx)
	if err != nil {
		return wanted{}, err
	}
	u, revision := loaded.Cluster.Upgrade, engine.SettingsRevision(loaded.Cluster)
	return wanted{
		revision: revisionOf(revision, credentials), settings: revision,
		limits: rollout.Limits{AtOnce: u.AtOnce, Canary: u.Canary},
	}, nil
}

// Update implements provider.Updater.
func (p *Provider) Update(ctx context.Context, m *v1alpha1.Machine) error {
	h, err := p.hostOf(ctx, p.client, m)
	if err != nil || h == nil {
		return err
	}
	want := p.settings.currentSettings(ctx, p.site.Now())
	turn, others, err := p.turnOf(ctx, h, want)
	if err != nil {
		return err
	}
	done, err := p.ensureAim(ctx, m, h, aim{what: "update", turn: turn, revision: want.revision})
	switch {
	case !done:
		return asReconfiguring(err, turn)
	case want.revision == "":
		return nil
	}
	is := p.settings.foundOf(m.UID)
	switch {
	case is.revision != want.revision: // the record is another one since
		return &provider.Waiting{Reason: provider.Working, Message: "to be looked at again", After: poll}
	case !is.differs:
		if err := p.setSettings(ctx, h, nil); err != nil {
			return err
		}
		p.runs.renameGoal(m.UID, aim{revision: want.revision}.goalText(m, h)) // no second look for it
		return nil
	case is.refused != "":
		if err := p.setSettings(ctx, h, &kubeone.HostSettings{
			Revision: want.settings, State: kubeone.SettingsRefused, Message: is.refused,
		}); err != nil {
			return err
		}
		p.settings.dropPlan()
		return refusedBy(m, is.refused)
	case refusedHere(h, want):
		return refusedBy(m, h.Status.Settings.Message)
	case turn == decide.Refused:
		if err := p.setSettings(ctx, h, nil); err != nil { // it gives its turn back
			return err
		}
		return &provider.Waiting{Reason: provider.SettingsAwaited, Message: others, After: awaitTurn}
	}
	return p.takeTurn(ctx, m, h, want)
}

// asReconfiguring makes what waits for a run one that waits for other settings, where it is the host's turn to get
// them.
func asReconfiguring(err error, turn decide.Turn) error {
	var waiting *provider.Waiting
	if turn == decide.Now && errors.As(err, &waiting) && waiting.Reason == provider.Working {
		return &provider.Waiting{
			Reason: provider.Reconfiguring, Message: "its host is given other settings", After: waiting.After,
		}
	}
	return err
}

func refusedBy(m *v1alpha1.Machine, why string) error {
	return &provider.Waiting{
		Reason: provider.SettingsRefused, After: awaitTurn,
		Message: "the host of Machine " + m.Namespace + "/" + m.Name + " has taken back the settings of the " +
			"cluster's record, and gets them again when the record has others: " + why,
	}
}

func refusedHere(h *kubeone.Host, want wanted) bool {
	s := h.Status.Settings
	return s != nil && s.State == kubeone.SettingsRefused && s.Revision == want.settings
}
