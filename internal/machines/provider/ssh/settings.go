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

// Machine hosts follow the settings in the cluster record. When the record changes, each host is checked. A host that
// differs waits for its turn. Turns are recorded in the Host, so that a new leader does not assign a turn twice.
// Credentials do not need a turn: the check itself applies them.

const (
	// maxRecordAge is the maximum age of the cached record.
	maxRecordAge = 10 * time.Second
	// maxTurnsAge is the maximum age of the cached turns. It is also the interval at which Machines are woken for their
	// turn.
	maxTurnsAge = 2 * time.Second
	// turnRetry is the requeue delay of a Machine that waits for its turn.
	turnRetry = time.Minute
)

// desiredSettings contains the settings in the cluster record and the limits for their rollout.
type desiredSettings struct {
	revision string // revision of the settings and the credentials; "" if unknown
	settings string // revision of the settings alone; hosts take turns only for these
	limits   rollout.Limits
}

// hostSettings is the result of checking the settings on a host.
type hostSettings struct {
	revision string // the desired revision at that time
	differs  bool
	refused  string // why the host reverted the settings; "" if it did not
}

// settings contains what this process knows about the settings of all hosts. It is not persisted. Its methods may be
// called concurrently.
type settings struct {
	read func(context.Context) (desiredSettings, error)

	mu     sync.Mutex
	now    desiredSettings
	readAt time.Time
	seen   map[types.UID]hostSettings // by UID of the Machine

	turns     rollout.Turns
	plannedAt time.Time
	waiting   outOfService

	giving  sync.Mutex // held while a Machine takes its turn
	reading sync.Mutex // held while the record is read
	woken   chan event.GenericEvent
}

func newSettings(read func(context.Context) (desiredSettings, error)) *settings {
	return &settings{
		read: read, seen: map[types.UID]hostSettings{}, waiting: outOfService{}, woken: make(chan event.GenericEvent),
	}
}

// currentSettings returns the settings in the cluster record, which are at most maxRecordAge old. It returns the
// previous settings if the record cannot be read or another goroutine is reading it. Therefore only one caller waits
// for an unresponsive API.
func (s *settings) currentSettings(ctx context.Context, now time.Time) desiredSettings {
	s.mu.Lock()
	known, fresh := s.now, isYounger(s.readAt, now, maxRecordAge)
	s.mu.Unlock()
	if fresh || !s.reading.TryLock() {
		return known
	}
	defer s.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, maxRecordAge)
	defer cancel()
	latest, err := s.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readAt = now; err == nil && latest.revision != "" {
		s.now = latest
	}
	return s.now
}

// isYounger reports whether then is less than age ago. It returns false for a time in the future, which means that the
// clock was set back.
func isYounger(then, now time.Time, age time.Duration) bool {
	passed := now.Sub(then)
	return !then.IsZero() && passed >= 0 && passed < age
}

// noteResult records the result of a run with the settings of this revision. It returns nil for errors that only
// describe the settings, and other errors unchanged.
func (s *settings) noteResult(uid types.UID, revision string, err error) error {
	result := hostSettings{revision: revision}
	why, refused := apply.SettingsRefused(err)
	switch {
	case refused:
		result.differs, result.refused = true, phrase.Shorten(why, maxMessageLength)
	case errors.Is(err, errDiffers):
		result.differs = true
	case err != nil:
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[uid], s.plannedAt = result, time.Time{}
	return nil
}

func (s *settings) hostSettings(uid types.UID) hostSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[uid]
}

func (s *settings) forgetMachine(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, uid)
	s.plannedAt = time.Time{}
}

// errDiffers reports that only the settings of a host differ from the desired state.
var errDiffers = errors.New("the host settings differ from the desired settings")

// hostCredentials returns the registry and proxy credentials for hosts, and the revision of their Secret. If the Secret
// does not exist, it returns nil and "", and hosts keep their credentials.
func (s *Site) hostCredentials(ctx context.Context) (*desired.Credentials, string, error) {
	c, err := cluster.Connect(s.Access)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	return c.HostCredentials(ctx)
}

// revisionOf combines the revisions of settings and credentials. The result does not reveal the credentials.
func revisionOf(settings, credentials string) string {
	if credentials == "" {
		return settings
	}
	sum := sha256.Sum256([]byte(settings + " " + credentials))
	return hex.EncodeToString(sum[:16])
}

// workerSettings reads the worker settings and the revision of the credentials from the cluster.
func (s *Site) workerSettings(ctx context.Context) (desiredSettings, error) {
	loaded, _, err := s.Recorded(ctx)
	if err != nil {
		return desiredSettings{}, err
	}
	_, credentials, err := s.hostCredentials(ctx)
	if err != nil {
		return desiredSettings{}, err
	}
	upgrade, revision := loaded.Cluster.Upgrade, engine.SettingsRevision(loaded.Cluster)
	return desiredSettings{
		revision: revisionOf(revision, credentials), settings: revision,
		limits: rollout.Limits{AtOnce: upgrade.AtOnce, Canary: upgrade.Canary},
	}, nil
}

// Update implements provider.Updater.
func (p *Provider) Update(ctx context.Context, m *v1alpha1.Machine) error {
	h, err := p.hostOf(ctx, p.client, m)
	if err != nil || h == nil {
		return err
	}
	want := p.settings.currentSettings(ctx, p.site.Now())
	turn, why, err := p.turnOf(ctx, h, want)
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
	current := p.settings.hostSettings(m.UID)
	switch {
	case current.revision != want.revision: // the record changed after the run
		return &provider.Waiting{
			Reason: provider.Working, Message: "the settings have changed, so the host will be checked again", After: poll,
		}
	case !current.differs:
		if err := p.setSettings(ctx, h, nil); err != nil {
			return err
		}
		p.runs.renameGoal(m.UID, aim{revision: want.revision}.goalKey(m, h)) // avoids a second check
		return nil
	case current.refused != "":
		if err := p.setSettings(ctx, h, &kubeone.HostSettings{
			Revision: want.settings, State: kubeone.SettingsRefused, Message: current.refused,
		}); err != nil {
			return err
		}
		p.settings.discardTurns()
		return refusedError(m, current.refused)
	case hasRefused(h, want):
		return refusedError(m, h.Status.Settings.Message)
	case turn == decide.Refused:
		if err := p.setSettings(ctx, h, nil); err != nil { // the host returns its turn
			return err
		}
		return &provider.Waiting{Reason: provider.SettingsAwaited, Message: why, After: turnRetry}
	}
	return p.takeTurn(ctx, m, h, want)
}

// asReconfiguring replaces the reason Working with Reconfiguring if the host has its turn.
func asReconfiguring(err error, turn decide.Turn) error {
	var waiting *provider.Waiting
	if turn == decide.Now && errors.As(err, &waiting) && waiting.Reason == provider.Working {
		return &provider.Waiting{
			Reason: provider.Reconfiguring, Message: "the host is applying new settings", After: waiting.After,
		}
	}
	return err
}

func refusedError(m *v1alpha1.Machine, why string) error {
	return &provider.Waiting{
		Reason: provider.SettingsRefused, After: turnRetry,
		Message: "the host of Machine " + m.Namespace + "/" + m.Name + " reverted the settings in the cluster " +
			"record; none are applied until the record changes: " + why,
	}
}

func hasRefused(h *kubeone.Host, want desiredSettings) bool {
	s := h.Status.Settings
	return s != nil && s.State == kubeone.SettingsRefused && s.Revision == want.settings
}
