package script

import (
	"strings"
	"testing"
)

// guarded is a control-plane host with its guard, whose members answer what the files members/NAME hold: nothing when
// there is none. Each line of looks is a piece of shell, after which the guard looks once.
func guarded(t *testing.T) *box {
	t.Helper()
	b := newBox(t, input("cp-1"))
	b.command("curl", `status=0
	for url in "$@"; do
		case $url in
		*/member/list) [ ! -e '`+b.path("nolist")+
		`' ] || exit 28
		printf '%s\n' '{"members":[{"clientURLs":["https://me:2379"]}, {"clientURLs":["https://other:2379"]}]}' ;;
		https://127.0.0.1:2379/*) cat '`+b.path("members/me")+`' 2>/dev/null || status=7; echo ;;
		https://*:2379/*) name=${url#https://}; cat '`+b.path("members")+
		`'/"${name%%:*}" 2>/dev/null || status=7; echo ;;
		esac
	done
	exit $status`)
	b.command("nft", `case $1 in -f) : >'`+b.path("shut")+`' ;; delete) rm -f '`+b.path("shut")+`' ;; esac`)
	b.command("systemctl", "")
	b.write("etc/kubernetes/manifests/etcd.yaml", "")
	return b
}

// looks lets the guard look after each piece of shell, and says each time whether the port is open.
func (b *box) looks(pieces ...string) string {
	b.t.Helper()
	body := "file_guard >@ROOT@/guard.sh\n. @ROOT@/guard.sh\nPATH=@ROOT@/bin\nset +e\ncd @ROOT@\n" +
		"say_port() { if [ -e shut ]; then echo shut; else echo open; fi; }\n"
	for _, p := range pieces {
		body += p + "\ncheck_etcd >>log\nsay_port\n"
	}
	return strings.Join(strings.Fields(b.must(body)), " ")
}

// answer is shell that gives members an answer.
func answer(cluster, revision string, names ...string) string {
	out := "mkdir -p members\n"
	for _, n := range names {
		out += `printf '%s' '{"header":{"cluster_id":"` + cluster + `","member_id":"1","revision":"` + revision +
			`"},"version":"3.6","leader":"1"}' >members/` + n + "\n"
	}
	return out
}

func TestTheGuardClosesThePortWhileEtcdHasNoLeader(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	leaderless := `printf '{"header":{"cluster_id":"1","revision":"5"}}' >members/me`
	if got := b.looks(answer("1", "5", "me", "other"), leaderless, ":", ":",
		answer("1", "5", "me", "other")); got != "open open open shut open" {
		t.Errorf("the port was %s", got)
	}
}

func TestAHostThatBootsStaysClosedUntilTheOthersWereAsked(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	// The other member does not answer: it is asked again for a while.
	got := b.looks("dark=3", answer("1", "5", "me"), ":", ":", ":", ":", ":", ":", ":", ":")
	if got != "shut shut shut shut shut shut shut shut open open" {
		t.Errorf("the port was %s", got)
	}
}

func TestAnOutlivedHostStepsDown(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	b.write("proc/99999999/comm", "etcd\n")
	b.write("proc/99999999/cgroup", "0::/kubepods/x\n")
	got := b.looks("dark=3", answer("1", "5", "me")+answer("2", "1000000005", "other"), "rm members/me", ":")
	if got != "shut shut shut shut" {
		t.Errorf("the port was %s", got)
	}
	if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls, "systemctl disable --now kubelet.service") {
		t.Errorf("the kubelet was not stopped:\n%s", calls)
	}
}

// The recovered cluster is the one that is ahead: its guard does not mind the others.
func TestTheRecoveredHostStaysOpen(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	if got := b.looks("dark=3", answer("2", "1000000005", "me")+answer("1", "900", "other"),
		":"); got != "shut open open" {
		t.Errorf("the port was %s", got)
	}
}

// A member that is too slow to answer says nothing about a leader.
func TestASlowMemberChangesNothing(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	if got := b.looks(answer("1", "5", "me", "other"), `curl() { return 28; }`, ":", ":",
		":"); got != "open open open open open" {
		t.Errorf("the port was %s", got)
	}
}

func TestAHostWithoutEtcdIsNotGuarded(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	if got := b.looks("dark=3", "rm etc/kubernetes/manifests/etcd.yaml"); got != "shut open" {
		t.Errorf("the port was %s", got)
	}
}

// Members that were silent while the port was open do not shorten the patience of a later outage.
func TestPatienceBeginsWhenThePortCloses(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	leader := answer("1", "5", "me", "other")
	silent := "rm -f members/other\nsince=1"
	dark := "rm -f members/me"
	got := b.looks(leader, silent, "since=1", "since=1", "since=1", "since=1", "since=1", "since=1", "since=1",
		"since=1", dark, ":", ":", answer("1", "5", "me"), ":", ":", ":", ":", ":", ":", ":")
	want := strings.Repeat("open ", 12) + strings.Repeat("shut ", 8) + "open"
	if got != want {
		t.Errorf("the port was %s\nwant         %s", got, want)
	}
}

// The others are those in etcd's list: without it no member was asked.
func TestWithoutAListOfMembersThePortStaysClosed(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	got := b.looks("dark=3; shut test >>log; : >nolist\n"+answer("1", "5", "me")+answer("2", "900000000", "other"), ":",
		"rm nolist")
	if got != "shut shut shut" {
		t.Errorf("the port was %s", got)
	}
	if calls := strings.Join(b.calls(), "\n"); !strings.Contains(calls, "systemctl disable --now kubelet") {
		t.Errorf("with the list, the host that was recovered without did not step down:\n%s", calls)
	}
}
