package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/plan"
	"kubeone/internal/testutil/sshtest"
	"kubeone/internal/workspace"
)

// A plan that only accepts a host key asks for approval of the key. Other plans take the usual way.
func TestAnAcceptedKeyAloneIsAPlan(t *testing.T) {
	t.Parallel()
	accepts := []string{"cp-2"}
	contact := map[string]string{"192.0.2.12": "SHA256:new"}
	for name, c := range map[string]struct {
		flags   applyFlags
		plan    plan.Plan
		decided fsm.Route
		want    bool
	}{
		"a key":                {applyFlags{}, plan.Plan{FirstContacts: contact}, fsm.Nothing, true},
		"a key, dry":           {applyFlags{dryRun: true}, plan.Plan{FirstContacts: contact}, fsm.Nothing, false},
		"none":                 {applyFlags{}, plan.Plan{}, fsm.Nothing, false},
		"a key, and a problem": {applyFlags{}, plan.Plan{FirstContacts: contact}, fsm.Error, false},
		"a key, and steps": {applyFlags{}, plan.Plan{FirstContacts: contact, Steps: make([]plan.Step, 1)},
			fsm.Join, false},
	} {
		p := engine.Proposal{Request: engine.Apply{}, Plan: c.plan, Decisions: []decide.Decision{{Route: c.decided}}}
		if c.flags.onlyRecordsKeys(p) {
			t.Errorf("%s: without --accept-host-key", name)
		}
		c.flags.acceptHostKeys = accepts
		if got := c.flags.onlyRecordsKeys(p); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// The answer decides whether the key replaces the known one.
func TestAnAcceptedKeyAloneIsApproved(t *testing.T) {
	t.Parallel()
	key := sshtest.WriteKey(t, "")
	server := startHosts(t, key.Public())
	address := net.JoinHostPort("127.0.1.1", strconv.Itoa(server.Port()))
	for name, c := range map[string]struct {
		answer   string
		terminal bool
		want     error
		recorded bool
	}{
		"yes":                {"yes\n", true, nil, true},
		"no":                 {"no\n", true, nil, false},
		"nobody to be asked": {"", false, errNoTerminal, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
					os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
				return path
			}
			record := file("demo/known_hosts", knownhosts.Line([]string{address}, key.Public())+"\n")
			w, err := workspace.Open(t.Context(), workspace.Options{
				Manifest: file("kubeone.yaml", fmt.Sprintf(keysManifest, server.Port(), key.Path)),
				StateDir: dir, NewHosts: host.PolicyProbe, AcceptHostKeys: []string{"127.0.1.1"},
				Pool: sshpool.Options{HomeDir: dir, SystemDir: dir, Getenv: func(string) string { return "" }},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			p, err := w.Engine.Propose(t.Context(), engine.Apply{NamesOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			stdio := IO{
				In: strings.NewReader(c.answer), Out: &out, Err: &out, Interactive: func() bool { return c.terminal },
			}
			f := applyFlags{}
			var status *statusError
			if err := f.recordKeys(stdio, w, p); !errors.Is(err, c.want) && !errors.As(err, &status) {
				t.Errorf("got %v", err)
			}
			text, err := os.ReadFile(record)
			replaces := "replaces " + ssh.FingerprintSHA256(key.Public())
			if err != nil || strings.Contains(string(text), replaces) != c.recorded {
				t.Errorf("%v, recorded %q", err, text)
			}
		})
	}
}

const keysManifest = `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: demo
versions: {kubernetes: 1.36.3}
cloudProvider: {none: {}}
clusterNetwork: {cni: {flannel: {}}}
controlPlane:
  hosts:
    - {publicAddress: 127.0.1.1, sshUsername: root, sshPort: %d, sshPrivateKeyFile: %q}
`
