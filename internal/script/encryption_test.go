package script

import (
	"slices"
	"strings"
	"testing"
)

// secretboxed is a configuration with these providers, as package encryption writes it.
func secretboxed(names ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources:\n" +
		"  - secrets\n  providers:\n"
	for _, name := range names {
		if name == "identity" {
			text += "  - identity: {}\n"
			continue
		}
		text += "  - secretbox:\n      keys:\n      - name: " + name + "\n        secret: c2VjcmV0\n"
	}
	return text
}

// encrypting returns a running control-plane host to which keys were uploaded. Its etcd has Secrets that these
// providers stored.
func encrypting(t *testing.T, stored string, by ...string) *box {
	t.Helper()
	b := newBox(t, input("cp-1"))
	b.script += strings.ReplaceAll(`
readyz() { :; }
etcd_votes() { :; }
kubelet_healthy() { :; }
await_api_server() { :; }
stored_by() { printf '%s\n' `+stored+`; }
manifest=@ROOT@/etc/kubernetes/manifests/kube-apiserver.yaml
running_configurations() {
	sed -n 's|.*--encryption-provider-config=.*/\(.*\)\.yaml|\1|p' "$manifest" | grep . || echo none
}
ended() { :; }
await_pod() { [ ! -e "@ROOT@/refuses" ] || die "kube-apiserver does not start with its new settings"; }
restart_kubelet() { :; }
image_there() { :; }
kubeadm() {
	printf 'kubeadm %s\n' "$*" >>"@ROOT@/calls"
	case $* in *apiserver*)
		{ echo plain; sed -n 's/^ *value: --/    - --/p' "$ENCRYPTION_PATCH" 2>/dev/null || :; } \
			>"@ROOT@/etc/kubernetes/manifests/kube-apiserver.yaml" ;;
	esac
}
`, "@ROOT@", b.root)
	b.command("df", `printf 'head\nx 1 1 99999999 1 /\n'`)
	b.command("awk", `while read -r a b c d e; do last=$d; done; printf '%s\n' "$last"`)
	b.command("systemctl", ":")
	b.command("ctr", ":")
	b.command("sysctl", ":")
	b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "plain\n")
	if len(by) > 0 {
		b.write("run/kubeone/secrets/encryption.yaml", secretboxed(by...))
	}
	return b
}

// told is what the API server's manifest names, and what is in the directory of configurations.
func told(b *box) (named, files string) {
	b.t.Helper()
	return b.must("sed -n 's|.*config=.*/||p' '" + b.path("etc/kubernetes/manifests/kube-apiserver.yaml") + "'"),
		b.must("for f in '" + b.path("etc/kubernetes/encryption") + "'/*; do " +
			"[ ! -e \"$f\" ] || printf '%s\\n' \"${f##*/}\"; done")
}

func TestAHostLearnsUsesAndForgetsKeys(t *testing.T) {
	t.Parallel()
	b := encrypting(t, "identity", "identity", "kubeone-1")
	b.must("ENCRYPT_LEARN='identity kubeone-1'; stage_encrypt_learn")
	named, files := told(b)
	if named == "" || named != files {
		t.Fatalf("the API server is told of %q, and there is %q", named, files)
	}
	mode := b.must("stat -c %a '" + b.path("etc/kubernetes/encryption") + "' '" + b.path("etc/kubernetes/encryption/"+
		strings.TrimSpace(files)) + "'")
	if mode != "700\n600" {
		t.Errorf("modes %q", mode)
	}
	for _, gone := range []string{"var/lib/kubeone/upgrading", "var/lib/kubeone/before"} {
		if b.must("[ ! -e '"+b.path(gone)+"' ] || echo there") != "" {
			t.Errorf("%s is still there", gone)
		}
	}
	b.write("run/kubeone/secrets/encryption.yaml", secretboxed("kubeone-1"))
	r := b.run("ENCRYPT_FORGET='kubeone-1'; stage_encrypt_forget")
	if r.code == 0 || !strings.Contains(r.err, "Secrets in etcd are stored by identity") {
		t.Errorf("a provider that is in use was dropped: %+v", r)
	}
	if again, _ := told(b); again != named {
		t.Errorf("the API server is told of %q", again)
	}
	b.must("stored_by() { echo kubeone-1; }; ENCRYPT_FORGET='kubeone-1'; stage_encrypt_forget")
	if now, files := told(b); now == named || now != files {
		t.Errorf("the API server is told of %q, and there is %q", now, files)
	}
	b.must("stored_by() { echo identity; }; ENCRYPT_FORGET=''; stage_encrypt_forget")
	if now, files := told(b); now != "" || files != "" {
		t.Errorf("the API server is told of %q, and there is %q", now, files)
	}
}

func TestKeysWithWhichNothingStartsAreTakenBack(t *testing.T) {
	t.Parallel()
	b := encrypting(t, "identity", "identity", "kubeone-1")
	b.write("refuses", "")
	r := b.run("take_settings_back() { for f in $(settings_files); do put_as_it_was \"$f\"; done; " +
		"rm -f \"$UPGRADING\"; }; " +
		"ENCRYPT_LEARN='identity kubeone-1'; stage_encrypt_learn")
	if r.code == 0 || !strings.Contains(r.err, "this host has again what it had before") {
		t.Fatalf("%+v", r)
	}
	if named, _ := told(b); named != "" {
		t.Errorf("the API server is told of %q", named)
	}
	if b.must("patched") != "" {
		t.Error("the next manifest would name the keys")
	}
}

func TestWhatIsBroughtIsWhatThePlanSays(t *testing.T) {
	t.Parallel()
	b := encrypting(t, "identity", "kubeone-1")
	r := b.run("ENCRYPT_LEARN='identity kubeone-1'; stage_encrypt_learn")
	if r.code == 0 || !strings.Contains(r.err, "is not what the plan says") {
		t.Errorf("%+v", r)
	}
}

// A stage dies before it writes a manifest of an API server that could not read what etcd has.
func TestNoAPIServerStartsBlind(t *testing.T) {
	t.Parallel()
	const unpatched = `printf '    - --encryption-provider-config=%s\n' "$ENCRYPTION_DIR/x.yaml" ` +
		`>>@ROOT@/etc/kubernetes/manifests/kube-apiserver.yaml`
	for name, c := range map[string]struct{ stored, do, says string }{
		"without any key":      {"kubeone-1", ":", "Secrets in etcd are stored by kubeone-1"},
		"nothing is encrypted": {"identity", ":", ""},
		"there are no Secrets": {"", ":", ""},
		"with the keys":        {"kubeone-1", "copy_encryption", ""},
		"the keys are gone": {"kubeone-1", `copy_encryption; rm -f "$ENCRYPTION_DIR"/*`,
			"are missing on this host"},
		"the keys are others": {"kubeone-1",
			`copy_encryption; for f in "$ENCRYPTION_DIR"/*; do echo x >>"$f"; done`, "are missing on this host"},
		// What was left of going back to none.
		"of ours, without its patch":             {"identity", unpatched, ""},
		"of ours, without its patch, and needed": {"kubeone-1", unpatched, "Secrets in etcd are stored by kubeone-1"},
		"of ours, without its patch, and etcd is silent": {"identity", "etcd_votes() { false; }; " + unpatched,
			"it is unknown which keys"},
		"by somebody else's flag": {"mine", "file_cluster() { echo encryption-provider-config; }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := encrypting(t, c.stored, "kubeone-1", "identity")
			r := b.run(c.do + "; encryption_stays; write_manifest kube-apiserver")
			if (r.code == 0) != (c.says == "") || !strings.Contains(r.err, c.says) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A host that joins has the keys, or etcd has no Secret that needs them. An operator's own encryption is in the flags
// of the other hosts.
func TestNoAPIServerJoinsBlind(t *testing.T) {
	t.Parallel()
	const phase = "join phase control-plane-prepare control-plane"
	for do, says := range map[string]string{
		"": "Secrets in etcd are stored by mine",
		"file_cluster() { echo encryption-provider-config; }\n": "",
	} {
		b := controlPlane(t, "cp-2")
		b.mkdir("var/lib/kubelet/pki")
		b.write("var/lib/kubelet/pki/kubelet-client-current.pem", "new")
		b.write("etc/kubernetes/kubelet.conf", "server: https://lb.example.com:6443\n")
		r := b.run(do + "stored_by() { echo mine; }\nstage_join_finish")
		if !strings.Contains(r.err, says) || slices.Contains(b.phases(), phase) != (says == "") {
			t.Errorf("%q: %+v", do, r)
		}
	}
}

// The prefix is read as the API server reads it: Secrets under a missed prefix could become unreadable.
func TestWhereAnAPIServerKeepsItsObjects(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"":                           "/registry",
		"    - --etcd-prefix=/mine":  "/mine",
		"    - --etcd-prefix=mine":   "/mine",
		"    - --etcd-prefix=//a/b/": "/a/b",
		"    - --etcd-prefix=/a\n    - --etcd-prefix=/b": "/b",
	} {
		b := newBox(t, input("cp-1"))
		b.write("etc/kubernetes/manifests/kube-apiserver.yaml", "    - kube-apiserver\n"+flags+"\n")
		if got := b.must("registry"); got != want {
			t.Errorf("%q: %s, want %s", flags, got, want)
		}
	}
	if got := newBox(t, input("cp-1")).must("registry"); got != "/registry" {
		t.Errorf("without an API server: %s", got)
	}
}

func TestSecretsAreLookedAtInEtcd(t *testing.T) {
	t.Parallel()
	b := encrypting(t, "kubeone-2 identity")
	r := b.run("STORED_BY=kubeone-2; stage_check_secrets")
	if r.code == 0 || !strings.Contains(r.err, "still stored by identity") {
		t.Errorf("%+v", r)
	}
	b.must("stored_by() { echo kubeone-2; }; STORED_BY=kubeone-2; stage_check_secrets")
	b.must("stored_by() { :; }; STORED_BY=kubeone-2; stage_check_secrets")
}
