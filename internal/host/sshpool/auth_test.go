package sshpool_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/short"
	"kubeone/internal/testutil/sshtest"
)

func TestUnusableKeyFilesAreFoundBeforeAnythingIsDialled(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	locked := sshtest.WriteKey(t, "open sesame").Path
	malformed := filepath.Join(t.TempDir(), "id_rsa")
	writeFile(t, malformed, "ssh-ed25519 AAAA is a public key")
	public := publicHalf(t, sshtest.WriteKey(t, ""))
	cases := map[string]struct {
		path    string
		options sshpool.Options
		problem host.KeyProblem
		words   string
	}{
		"missing": {filepath.Join(t.TempDir(), "nope"), sshpool.Options{}, host.KeyMissing,
			"does not exist; check sshPrivateKeyFile in the manifest"},
		"a public key": {public, sshpool.Options{}, host.KeyNotInAgent, "key file " + public +
			" does not contain a private key, and the key is not in the SSH agent: it is a public key; add the key to the " +
			"SSH agent (ssh-add), or check sshPrivateKeyFile in the manifest"},
		"only its public half": {strings.TrimSuffix(public, ".pub"), sshpool.Options{}, host.KeyNotInAgent,
			"only " + public + " exists"},
		"a directory": {t.TempDir(), sshpool.Options{}, host.KeyUnreadable, "cannot be read"},
		"malformed":   {malformed, sshpool.Options{}, host.KeyMalformed, "is not an SSH private key"},
		"encrypted":   {locked, sshpool.Options{}, host.KeyEncrypted, "ssh-add " + locked},
		"wrong passphrase": {locked, sshpool.Options{Getenv: func(string) string { return "wrong" }},
			host.KeyWrongPassphrase, host.PassphraseEnv},
		"no answer": {locked,
			sshpool.Options{Passphrase: func(string) ([]byte, error) { return nil, errors.New("no terminal") }},
			host.KeyEncrypted, "is encrypted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, c.options)
			target := targetOf(t, s)
			target.KeyFile, target.AgentSocket = c.path, "none"
			_, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":"})
			wantClass(t, err, host.Auth)
			var file *host.KeyFileError
			if !errors.As(err, &file) || file.Problem != c.problem || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v", err)
			}
			if err := p.Check(target); !errors.As(err, &file) {
				t.Errorf("Check: got %v", err)
			}
		})
	}
	if s.Connections() != 0 {
		t.Error("dialled all the same")
	}
}

func TestEncryptedKeys(t *testing.T) {
	t.Parallel()
	key := sshtest.WriteKey(t, "open sesame")
	s := sshtest.Start(t, sshtest.Options{AllLoopback: true, AuthorizedKeys: []ssh.PublicKey{key.Public()}})
	target := targetOf(t, s)
	target.KeyFile = key.Path

	t.Run("by the environment", func(t *testing.T) {
		t.Parallel()
		env := func(name string) string { return map[string]string{host.PassphraseEnv: "open sesame"}[name] }
		runScript(t, newPool(t, sshpool.Options{Getenv: env}).Host(target), ":")
	})
	t.Run("by the agent", func(t *testing.T) {
		t.Parallel()
		target := target
		target.AgentSocket = sshtest.Agent(t, key)
		runScript(t, newPool(t, sshpool.Options{}).Host(target), ":")
	})
	t.Run("by a person, asked once for many hosts", func(t *testing.T) {
		t.Parallel()
		var asked atomic.Int32
		p := newPool(t, sshpool.Options{Passphrase: func(file string) ([]byte, error) {
			if asked.Add(1); file != key.Path {
				t.Errorf("asked for %s", file)
			}
			return []byte("open sesame"), nil
		}})
		var wg sync.WaitGroup
		for _, addr := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
			wg.Go(func() {
				target := target
				target.Address = addr
				if _, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestWrongKeyIsNamed(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []ssh.PublicKey{sshtest.WriteKey(t, "").Public()}})
	key := sshtest.WriteKey(t, "")
	target := targetOf(t, s)
	target.KeyFile, target.User = key.Path, "deploy"
	_, err := newPool(t, sshpool.Options{}).Host(target).Run(testContext(t), host.Cmd{Script: ":"})
	wantClass(t, err, host.Auth)
	for _, w := range []string{
		"deploy@127.0.0.1", ssh.FingerprintSHA256(key.Public()), "~deploy/.ssh/authorized_keys",
	} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

func TestAgentWithMoreKeysThanAServerTakes(t *testing.T) {
	t.Parallel()
	var keys []sshtest.Key
	for range 9 {
		keys = append(keys, sshtest.WriteKey(t, ""))
	}
	last := keys[8]
	s := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []ssh.PublicKey{last.Public()}})
	socket := sshtest.Agent(t, keys...)
	login := func(t *testing.T, keyFile string) error {
		target := targetOf(t, s)
		target.KeyFile, target.AgentSocket = keyFile, socket
		_, err := newPool(t, sshpool.Options{}).Host(target).Run(testContext(t), host.Cmd{Script: ":"})
		return err
	}
	t.Run("the configured key is asked of the agent, alone", func(t *testing.T) {
		t.Parallel()
		must(t, login(t, last.Path))
	})
	t.Run("its public half is enough", func(t *testing.T) {
		t.Parallel()
		locked := sshtest.WriteKey(t, "forgotten")
		target := targetOf(t, sshtest.Start(t, sshtest.Options{AuthorizedKeys: []ssh.PublicKey{locked.Public()}}))
		target.KeyFile, target.AgentSocket = locked.Path, sshtest.Agent(t, append(keys, locked)...)
		runScript(t, newPool(t, sshpool.Options{}).Host(target), ":")
	})
	t.Run("a configured key that the agent lacks comes first", func(t *testing.T) {
		t.Parallel()
		key := sshtest.WriteKey(t, "")
		target := targetOf(t,
			sshtest.Start(t, sshtest.Options{MaxAuthTries: 1, AuthorizedKeys: []ssh.PublicKey{key.Public()}}))
		target.KeyFile, target.AgentSocket = key.Path, socket
		runScript(t, newPool(t, sshpool.Options{}).Host(target), ":")
	})
	t.Run("without one, six are offered and the error names them", func(t *testing.T) {
		t.Parallel()
		err := login(t, "")
		wantClass(t, err, host.Auth)
		if n := strings.Count(err.Error(), "SHA256:"); n != 6 {
			t.Errorf("offered %d keys: %v", n, err)
		}
	})
}

func TestAgentSockets(t *testing.T) {
	t.Parallel()
	key := sshtest.WriteKey(t, "")
	s := sshtest.Start(t, sshtest.Options{AuthorizedKeys: []ssh.PublicKey{key.Public()}})
	socket := sshtest.Agent(t, key)
	env := func(name string) string { return map[string]string{"SSH_AUTH_SOCK": socket, "OTHER": socket}[name] }
	for name, c := range map[string]struct {
		socket string
		getenv func(string) string
		ok     bool
	}{
		"default":             {"", env, true},
		"of another variable": {"env:OTHER", env, true},
		"by path":             {socket, nil, true},
		"none":                {"none", env, false},
		"not set":             {"env:UNSET", env, false},
		"no listener":         {"/nonexistent/agent", env, false},
		"stale by default":    {"", func(string) string { return "/nonexistent/agent" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := targetOf(t, s)
			target.KeyFile, target.AgentSocket = "", c.socket
			_, err := newPool(t, sshpool.Options{Getenv: c.getenv}).Host(target).Run(testContext(t),
				host.Cmd{Script: ":"})
			if c.ok {
				must(t, err)
				return
			}
			wantClass(t, err, host.Auth)
		})
	}
}

// A manifest names the variable, whose value may be any secret of the machine that runs kubeone plan.
func TestNoErrorHasTheValueOfAVariable(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	listens := sshtest.Agent(t, sshtest.WriteKey(t, ""))
	for value, says := range map[string]string{
		"T0PSECRET":                             "the value of CI_SECRET: it is not an absolute path",
		"@T0PSECRET":                            "the value of CI_SECRET: it is not an absolute path",
		"/T0PSECRET/w3/and=":                    "the value of CI_SECRET: connect: no such file or directory",
		"/T0PSECRET" + strings.Repeat("x", 200): "the value of CI_SECRET: ",
		"":                                      "the value of CI_SECRET is empty",
		filepath.Dir(listens):                   "the value of CI_SECRET: connect: ",
	} {
		target := targetOf(t, s)
		target.KeyFile, target.AgentSocket = "", "env:CI_SECRET"
		getenv := func(name string) string { return map[string]string{"CI_SECRET": value}[name] }
		_, err := newPool(t, sshpool.Options{Getenv: getenv}).Host(target).Run(testContext(t), host.Cmd{Script: ":"})
		wantClass(t, err, host.Auth)
		if text := fmt.Sprintf("%v %+v", err, err); !strings.Contains(text, says) || value != "" &&
			strings.Contains(text, strings.Trim(value, "@")) || strings.Contains(text, "T0PSECRET") {
			t.Errorf("%q: got %q, want %q", value, text, says)
		}
	}
}

// Only an absolute path is dialled as a socket: @ would name one outside the file system.
func TestAnAgentsSocketIsAnAbsolutePath(t *testing.T) {
	dir := t.TempDir()
	key := sshtest.WriteKey(t, "")
	socket := sshtest.Agent(t, key)
	if err := os.Symlink(socket, filepath.Join(dir, "agent")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	target := targetOf(t, sshtest.Start(t, sshtest.Options{AuthorizedKeys: []ssh.PublicKey{key.Public()}}))
	target.KeyFile, target.AgentSocket = "", "agent"
	_, err := newPool(t, sshpool.Options{}).Host(target).Run(testContext(t), host.Cmd{Script: ":"})
	wantClass(t, err, host.Auth)
	if err == nil || !strings.Contains(err.Error(), "agent: it is not an absolute path") {
		t.Errorf("got %v", err)
	}
}

func TestDefaultIdentities(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	key := sshtest.WriteKey(t, "")
	text, err := os.ReadFile(key.Path)
	must(t, err)
	writeFile(t, filepath.Join(home, ".ssh/id_ed25519"), string(text))
	writeFile(t, filepath.Join(home, ".ssh/id_rsa"), "something that is no key")
	target := targetOf(t, sshtest.Start(t, sshtest.Options{AuthorizedKeys: []ssh.PublicKey{key.Public()}}))
	target.KeyFile = ""
	runScript(t, newPool(t, sshpool.Options{HomeDir: home}).Host(target), ":")
}

func TestUserCertificates(t *testing.T) {
	t.Parallel()
	ca, err := sshtest.NewKey()
	must(t, err)
	key := sshtest.WriteKey(t, "")
	s := sshtest.Start(t, sshtest.Options{UserCA: ca.PublicKey(), AuthorizedKeys: []ssh.PublicKey{}})
	certificate := func(t *testing.T, pub ssh.PublicKey, before time.Time) string {
		cert := &ssh.Certificate{Key: pub, CertType: ssh.UserCert, KeyId: "ops", ValidPrincipals: []string{"root"},
			ValidBefore: uint64(before.Unix())}
		must(t, cert.SignCert(rand.Reader, ca))
		path := filepath.Join(t.TempDir(), "cert.pub")
		writeFile(t, path, string(ssh.MarshalAuthorizedKey(cert)))
		return path
	}
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	target := targetOf(t, s)
	target.KeyFile = key.Path

	t.Run("with a key file", func(t *testing.T) {
		t.Parallel()
		target := target
		target.CertFile = certificate(t, key.Public(), tomorrow)
		runScript(t, newPool(t, sshpool.Options{}).Host(target), ":")
	})
	t.Run("with a key in the agent", func(t *testing.T) {
		t.Parallel()
		target := target
		target.KeyFile, target.AgentSocket = "", sshtest.Agent(t, sshtest.WriteKey(t, ""), key)
		target.CertFile = certificate(t, key.Public(), tomorrow)
		runScript(t, newPool(t, sshpool.Options{}).Host(target), ":")
	})
	t.Run("beside its key", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(certificate(t, key.Public(), tomorrow))
		must(t, err)
		writeFile(t, key.Path+"-cert.pub", string(text))
		runScript(t, newPool(t, sshpool.Options{}).Host(target), ":")
	})
	for name, path := range map[string]string{
		"expired":           certificate(t, key.Public(), yesterday),
		"of another key":    certificate(t, sshtest.WriteKey(t, "").Public(), tomorrow),
		"not a certificate": key.Path,
		"missing":           filepath.Join(t.TempDir(), "nope"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := target
			target.CertFile = path
			err := newPool(t, sshpool.Options{}).Check(target)
			wantClass(t, err, host.Auth)
			if !errors.Is(err, host.ErrKeyFile) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// publicHalf writes the public half of a key to a file that ends in .pub, without a private key beside it.
func publicHalf(t *testing.T, key sshtest.Key) string {
	path := filepath.Join(t.TempDir(), "id_ed25519.pub")
	writeFile(t, path, string(ssh.MarshalAuthorizedKey(key.Public())))
	return path
}

// As in ssh, a public key selects the agent's key: in the named file, or beside it.
func TestAPublicKeyChoosesTheAgentsKey(t *testing.T) {
	t.Parallel()
	key := sshtest.WriteKey(t, "")
	s := sshtest.Start(t, sshtest.Options{MaxAuthTries: 1, AuthorizedKeys: []ssh.PublicKey{key.Public()}})
	var held []sshtest.Key
	for range 7 { // as many as would be offered before it
		held = append(held, sshtest.WriteKey(t, ""))
	}
	socket := sshtest.Agent(t, append(held, key)...)
	agent := func(string) string { return socket }
	public := publicHalf(t, key)
	for name, file := range map[string]string{
		"the public key": public, "the private key that is not there": strings.TrimSuffix(public, ".pub"),
	} {
		t.Run(name+", in the manifest", func(t *testing.T) {
			t.Parallel()
			target := targetOf(t, s)
			target.KeyFile = file
			runScript(t, newPool(t, sshpool.Options{Getenv: agent}).Host(target), ":")
		})
		for _, only := range []string{"yes", "no"} {
			t.Run(name+", in the SSH configuration, IdentitiesOnly "+only, func(t *testing.T) {
				t.Parallel()
				short.Tool(t, "ssh")
				home := t.TempDir()
				writeFile(t, filepath.Join(home, ".ssh", "config"), "Host *\n  IdentitiesOnly "+only+
					"\n  IdentityFile "+file+"\n")
				target := targetOf(t, s)
				target.KeyFile = ""
				runScript(t, newPool(t, sshpool.Options{HomeDir: home, Getenv: agent}).Host(target), ":")
			})
		}
	}
}

// Errors in the SSH configuration name it, not the manifest.
func TestErrorsNameTheSSHConfiguration(t *testing.T) {
	t.Parallel()
	short.Tool(t, "ssh")
	public := publicHalf(t, sshtest.WriteKey(t, ""))
	missing := filepath.Join(t.TempDir(), "nope")
	for name, c := range map[string]struct{ line, says string }{
		"a public key":  {"IdentityFile " + public, "IdentityFile in the SSH configuration"},
		"a missing key": {`IdentityFile "` + missing + `"`, "IdentityFile in the SSH configuration"},
		"a port":        {"Port nope", "config line 3: Bad "},
		"a jump":        {"ProxyJump a:b", "config line 3: Invalid ProxyJump"},
		"a command":     {"ProxyCommand nc %h %p", "the SSH configuration: ProxyCommand"},
		"an agent":      {"IdentityAgent /nonexistent/agent", "IdentityAgent in the SSH configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			writeFile(t, filepath.Join(home, ".ssh", "config"), "Host other\nHost *\n  "+c.line+"\n")
			err := newPool(t, sshpool.Options{HomeDir: home}).Check(host.Target{Address: "192.0.2.1"})
			if err == nil || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "sshPrivateKeyFile") && strings.HasPrefix(c.line, "IdentityFile") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// There is one message for no key at all, whether or not an agent is configured.
func TestNoKeyHasOneText(t *testing.T) {
	t.Parallel()
	for _, socket := range []string{"", "none", "env:UNSET", "/nonexistent/agent"} {
		target := host.Target{Address: "192.0.2.1", AgentSocket: socket}
		err := newPool(t, sshpool.Options{}).Check(target)
		wantClass(t, err, host.Auth)
		for _, words := range []string{"no private key to log in with",
			"set sshPrivateKeyFile in the manifest, or start an SSH agent and add a key (ssh-add)"} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%q: %v", socket, err)
			}
		}
	}
}
