package ssh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1 "k8s.io/api/core/v1"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/apply"
	"kubeone/internal/cluster/machines"
	"kubeone/internal/decide"
	"kubeone/internal/host"
	"kubeone/internal/machines/machine"
	"kubeone/internal/machines/provider"
	"kubeone/internal/machines/rollout"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// settled is a pool of Machines with Nodes on fake hosts.
type settled struct {
	*Provider
	t      *testing.T
	client client.Client
	now    time.Time
	want   desiredSettings

	mu           sync.Mutex
	has          map[types.UID]string // the settings of each Machine's host
	bad          map[string]bool      // settings that no host accepts
	broken       map[types.UID]bool   // hosts that refuse all settings
	secret       map[types.UID]string // the credentials of each Machine's host
	unresponsive map[types.UID]bool
	tried        []string // "machine settings" of each attempt, in order
}

func newSettled(t *testing.T, count int) *settled {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, kubeone.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p := &settled{
		t: t, now: time.Unix(1e9, 0), has: map[types.UID]string{}, bad: map[string]bool{},
		unresponsive: map[types.UID]bool{}, broken: map[types.UID]bool{}, secret: map[types.UID]string{},
		want: desiredSettings{
			revision: "one", settings: "one",
			limits: rollout.Limits{AtOnce: func(n int) int { return n / 2 }, Canary: true},
		},
	}
	var objects []client.Object
	for i := range count {
		m := &v1alpha1.Machine{Spec: specOf("")}
		m.Namespace, m.Name, m.UID = "ns", fmt.Sprint("m-", i), types.UID(fmt.Sprint("uid-", i))
		m.Status.NodeRef = &corev1.ObjectReference{Name: m.Name}
		m.Status.Conditions = []metav1.Condition{{Type: machine.ConditionReady, Status: metav1.ConditionTrue}}
		h := &kubeone.Host{ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: "host-" + m.UID}}
		h.Status = kubeone.HostStatus{State: kubeone.HostJoined, Claim: &kubeone.HostClaim{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID,
		}}
		objects, p.has[m.UID] = append(objects, m, h), "one"
	}
	p.client = clientfake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&kubeone.Host{}, &v1alpha1.Machine{}).WithObjects(objects...).Build()
	p.lead()
	return p
}

// lead starts a new leader, which knows the objects only.
func (p *settled) lead() {
	p.Provider = New(p.client, p.client, &Site{Now: func() time.Time { return p.now }})
	p.work = p.carryOut
	p.settings.read = func(context.Context) (desiredSettings, error) { return p.want, nil }
}

func (p *settled) carryOut(_ context.Context, m *v1alpha1.Machine, _ *kubeone.Host, a aim, _ bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.unresponsive[m.UID]:
		return &provider.Waiting{Reason: "Waiting", Message: "it does not answer"}
	}
	settings, secret, _ := strings.Cut(a.revision, " ")
	p.secret[m.UID] = secret // credentials need no turn
	switch {
	case p.has[m.UID] == settings:
		return nil
	case a.turn != decide.Now:
		return errDiffers
	}
	p.tried = append(p.tried, m.Name+" "+settings)
	if p.bad[settings] || p.broken[m.UID] {
		return &apply.StepError{
			Step: plan.Step{Intent: step.With(step.ReconfigureParams{})},
			Err:  &host.ExitError{Code: 65, Stderr: []byte("error: the kubelet does not start\n")},
		}
	}
	p.has[m.UID] = settings
	return nil
}

// look reconciles each Machine a few times, checks how many have a turn, and returns each one's last error.
func (p *settled) look(times, most int) map[string]error {
	p.t.Helper()
	out := map[string]error{}
	for range times {
		p.now = p.now.Add(maxRecordAge)
		var all v1alpha1.MachineList
		if err := p.client.List(p.t.Context(), &all); err != nil {
			p.t.Fatal(err)
		}
		for i := range all.Items {
			m := &all.Items[i]
			out[m.Name] = p.Update(p.t.Context(), m)
			p.runs.all.Wait()
		}
		if n := len(p.turnsGiven()); n > most {
			p.t.Fatalf("%d hosts have their turn, and %d may", n, most)
		}
	}
	return out
}

// turnsGiven returns the hosts that have their turn.
func (p *settled) turnsGiven() []string {
	p.t.Helper()
	var all kubeone.HostList
	if err := p.client.List(p.t.Context(), &all); err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for i := range all.Items {
		if s := all.Items[i].Status.Settings; s != nil && s.State == kubeone.SettingsChanging {
			out = append(out, all.Items[i].Name)
		}
	}
	return out
}

func (p *settled) haveAll(settings string) {
	p.t.Helper()
	for uid, has := range p.has {
		if has != settings {
			p.t.Errorf("%s has %s, not %s", uid, has, settings)
		}
	}
}

// ready sets whether the Node of a Machine is ready.
func (p *settled) ready(name string, is metav1.ConditionStatus) {
	p.t.Helper()
	m := &v1alpha1.Machine{}
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m); err != nil {
		p.t.Fatal(err)
	}
	m.Status.Conditions[0].Status = is
	if err := p.client.Status().Update(p.t.Context(), m); err != nil {
		p.t.Fatal(err)
	}
}

func reasonOf(err error) string {
	var waiting *provider.Waiting
	if errors.As(err, &waiting) {
		return waiting.Reason
	}
	return fmt.Sprint(err)
}

// wants sets the settings and credentials in the record.
func (p *settled) wants(settings, credentials string) {
	p.want.settings, p.want.revision = settings, strings.TrimSpace(settings+" "+credentials)
}

func TestHostsFollowTheRecordOneFirst(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 6)
	for name, err := range p.look(3, 0) {
		if err != nil {
			t.Errorf("%s waits although nothing differs: %v", name, err)
		}
	}
	p.wants("two", "")
	p.look(3, 1)
	if len(p.tried) != 1 {
		t.Errorf("after the first look others than one were tried: %v", p.tried)
	}
	p.look(10, 3)
	p.haveAll("two")
	for name, err := range p.look(1, 0) {
		if err != nil {
			t.Errorf("%s still waits: %v", name, err)
		}
	}
}

func TestWhatTwoHostsHaveRefusedIsTriedOnNoOther(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 4)
	p.look(2, 0)
	p.wants("bad", "")
	p.bad["bad"] = true
	p.look(10, 1)
	p.lead() // a new leader knows it too
	came := p.look(6, 1)
	if !slices.Equal(p.tried, []string{"m-0 bad", "m-1 bad"}) {
		t.Errorf("tried on %v", p.tried)
	}
	for _, name := range []string{"m-0", "m-1"} {
		if reasonOf(came[name]) != provider.SettingsRefused || !strings.Contains(came[name].Error(),
			"the kubelet does not start") {
			t.Errorf("%s, which has refused them, says %v", name, came[name])
		}
	}
	for _, name := range []string{"m-2", "m-3"} {
		if reasonOf(came[name]) != provider.SettingsAwaited ||
			!strings.Contains(came[name].Error(), "failed on the hosts of Machine ns/m-0, ns/m-1") {
			t.Errorf("%s says %v", name, came[name])
		}
	}
	p.haveAll("one")
	p.wants("good", "")
	p.look(20, 2)
	p.haveAll("good")
}

// A single host may be broken, or lie: the others get the settings, and it gets no second turn.
func TestWhatOneHostRefusesTheOthersGet(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 4)
	p.look(2, 0)
	p.broken["uid-0"] = true
	p.wants("two", "")
	p.look(10, 2)
	p.lead()
	came := p.look(6, 0)
	if n := len(slices.DeleteFunc(slices.Clone(p.tried), func(s string) bool { return s != "m-0 two" })); n != 1 {
		t.Errorf("tried on %v", p.tried)
	}
	if p.has["uid-0"] != "one" || reasonOf(came["m-0"]) != provider.SettingsRefused {
		t.Errorf("who has refused them has %s, and says %v", p.has["uid-0"], came["m-0"])
	}
	delete(p.has, "uid-0")
	p.haveAll("two")
	for _, name := range []string{"m-1", "m-2", "m-3"} {
		if came[name] != nil {
			t.Errorf("%s still waits: %v", name, came[name])
		}
	}
}

// A leaked password is replaced on all other hosts even if settings fail and one host is silent.
func TestCredentialsWaitForNobodysTurn(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 5)
	p.look(2, 0)
	p.bad["bad"] = true
	p.wants("bad", "old")
	p.look(10, 1)
	p.unresponsive["uid-4"] = true
	p.ready("m-4", metav1.ConditionUnknown)
	p.wants("bad", "new")
	p.look(1, 0)
	for _, uid := range []types.UID{"uid-0", "uid-1", "uid-2", "uid-3"} {
		if p.secret[uid] != "new" {
			t.Errorf("%s has %q after one look", uid, p.secret[uid])
		}
	}
	if p.look(6, 0); len(p.tried) != 2 {
		t.Errorf("other credentials have settings tried again that were refused: %v", p.tried)
	}
	p.haveAll("one")
}

// passes advances the clock while the Machines are reconciled.
func (p *settled) passes(span time.Duration, most int) map[string]error {
	p.t.Helper()
	return p.look(int(span/maxRecordAge), most)
}

func TestASilentHostHoldsUpTheOthersForAWhileAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, still := range map[string]metav1.ConditionStatus{
		"not Ready": metav1.ConditionUnknown, "not checked yet": metav1.ConditionTrue,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSettled(t, 3)
			p.want.limits = rollout.Limits{}
			p.look(2, 0)
			p.ready("m-2", still)
			p.unresponsive["uid-2"] = true
			p.wants("two", "")
			came := p.passes(maxOutage-time.Minute, 0)
			if len(p.tried) != 0 || !strings.Contains(fmt.Sprint(came["m-0"]), "ns/m-2 ("+name+")") {
				t.Errorf("tried %v; %v", p.tried, came["m-0"])
			}
			p.passes(2*time.Minute, 1)
			if !slices.Equal(p.tried, []string{"m-0 two", "m-1 two"}) {
				t.Errorf("after %s tried on %v", maxOutage, p.tried)
			}
			p.ready("m-2", metav1.ConditionTrue)
			p.unresponsive["uid-2"] = false
			p.runs.of = map[types.UID]*run{} // skips retry delays
			p.look(12, 1)
			p.haveAll("two")
		})
	}
}

func TestATurnThatDoesNotEndHoldsUpTheOthersForAWhile(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 3)
	p.look(2, 0)
	p.wants("two", "")
	for len(p.turnsGiven()) == 0 {
		p.look(1, 1)
	}
	p.unresponsive["uid-0"] = true
	p.passes(maxOutage-2*time.Minute, 1)
	if len(p.tried) != 0 {
		t.Errorf("tried on %v", p.tried)
	}
	p.passes(5*time.Minute, 2)
	if p.has["uid-1"] != "two" || p.has["uid-2"] != "two" {
		t.Errorf("hosts have %v", p.has)
	}
}

// A host that is Ready only for moments is still out of service.
func TestAnOutageOutlivesAMomentOfService(t *testing.T) {
	t.Parallel()
	o, now := outOfService{}, time.Unix(1e9, 0)
	overdue := func(ready bool) bool {
		now = now.Add(maxTurnsAge)
		m := []rollout.Member{{Name: "a", Settings: rollout.SettingsCurrent, Ready: ready}}
		o.noteMembers(m, now)
		return m[0].Overdue
	}
	flaps := func(every int) (late int) {
		for i := range int(2 * maxOutage / maxTurnsAge) {
			if overdue(i%every < every/2) {
				late++
			}
		}
		return late
	}
	if flaps(20) == 0 {
		t.Error("it holds the others up for ever")
	}
	if flaps(2*int(minService/maxTurnsAge)+4) != 0 {
		t.Error("it was in service for a minute, and counts as overdue")
	}
	now = now.Add(-time.Hour) // the clock is set back
	if overdue(false) {
		t.Error("an outage that has just begun is overdue")
	}
	if o.noteMembers(nil, now); len(o) != 0 {
		t.Errorf("nobody is a member, and %v are out of service", o)
	}
}

func TestARefusalGoesWithItsMachine(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 4)
	p.look(2, 0)
	p.want.revision, p.bad["two"] = "two", true
	p.look(6, 1)
	p.bad["two"] = false // it was the fault of these hosts
	h, m := &kubeone.Host{}, &v1alpha1.Machine{}
	for _, o := range []client.Object{h, m} {
		key := client.ObjectKey{Name: "m-0"}
		if o == client.Object(m) {
			key.Namespace = "ns"
		}
		if err := p.client.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.releaseHost(t.Context(), h, kubeone.HostFree, ""); err != nil || h.Status.Settings != nil {
		t.Fatalf("%v, %+v", err, h.Status)
	}
	if err := p.client.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	delete(p.has, m.UID)
	p.look(10, 1)
	if p.has["uid-1"] != "one" {
		t.Error("what a host has refused was tried on it again")
	}
	delete(p.has, "uid-1")
	p.haveAll("two")
}

// A new leader gives no second turn, and resumes the first.
func TestATurnSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	p := newSettled(t, 3)
	p.want.limits = rollout.Limits{}
	p.look(2, 0)
	p.wants("two", "")
	for len(p.turnsGiven()) == 0 {
		p.look(1, 1)
	}
	given := p.turnsGiven()
	p.unresponsive = map[types.UID]bool{"uid-0": true}
	p.lead()
	p.look(5, 1)
	if !slices.Equal(p.turnsGiven(), given) || len(p.tried) > 0 {
		t.Errorf("turns %v, then %v; tried %v", given, p.turnsGiven(), p.tried)
	}
	p.unresponsive = nil
	p.lead()
	p.look(12, 1)
	p.haveAll("two")
	if got := slices.Sorted(maps.Keys(p.has)); len(got) != 3 {
		t.Errorf("hosts %v", got)
	}
}

func TestMachinesThatMoveGetTheirSettingsWithThat(t *testing.T) {
	t.Parallel()
	md := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d"}}
	md.Spec.Template.Spec = specOf("")
	yes := true
	set := func(uid types.UID, kubelet string) v1alpha1.MachineSet {
		s := v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			UID: uid, OwnerReferences: []metav1.OwnerReference{{UID: "d", Controller: &yes}},
		}}
		s.Spec.Template.Spec = specOf("")
		s.Spec.Template.Spec.Versions.Kubelet = kubelet
		return s
	}
	sets := []v1alpha1.MachineSet{set("same", "1.36.3"), set("former", "1.35.4")}
	is := func(want bool, what string) {
		t.Helper()
		got := machine.MovingSets(sets, []v1alpha1.MachineDeployment{*md})
		if got["same"] || got["former"] != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	is(true, "another template")
	md.Spec.Paused = true
	is(false, "paused")
	md.Spec.Paused = false
	md.Spec.Strategy = &v1alpha1.MachineDeploymentStrategy{Type: "OnDelete"}
	is(false, "by hand")
}

func TestSettingsOfTheRecord(t *testing.T) {
	t.Parallel()
	s := &Site{Access: recordOf(t)}
	is, err := s.workerSettings(t.Context())
	if err != nil || len(is.revision) != 32 || !is.limits.Canary || is.limits.AtOnce(10) != 1 {
		t.Errorf("%+v, %v", is, err)
	}
}

// Other credentials change the revision, which does not reveal them.
func TestCredentialsAreSettings(t *testing.T) {
	t.Parallel()
	revision := func(secret ...*corev1.Secret) string {
		is, err := (&Site{Access: recordOf(t, secret...)}).workerSettings(t.Context())
		if err != nil || len(is.revision) != 32 {
			t.Fatalf("%+v, %v", is, err)
		}
		return is.revision
	}
	secret := func(version, password string) *corev1.Secret {
		return &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: machines.CredentialsSecret, UID: "u", ResourceVersion: version},
			Data: map[string][]byte{
				"registries": []byte(`{"r.example.com": {"username": "u", "password": "` + password + `"}}`),
			},
		}
	}
	none, first, second := revision(), revision(secret("1", "a")), revision(secret("2", "b"))
	if none == first || first == second || none == second {
		t.Errorf("revisions %s, %s and %s", none, first, second)
	}
	if first != revision(secret("1", "b")) {
		t.Error("the revision tells of the password")
	}
	c, _, err := (&Site{Access: recordOf(t, secret("1", "a"))}).hostCredentials(t.Context())
	if err != nil || c.Registries["r.example.com"].Password != "a" {
		t.Errorf("hosts are given others, %v", err)
	}
	odd := secret("3", "a")
	odd.Data["registries"] = []byte("?")
	if is, err := (&Site{Access: recordOf(t, odd)}).workerSettings(t.Context()); err == nil {
		t.Errorf("a Secret that cannot be read is %+v", is)
	}
}
