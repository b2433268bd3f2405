//go:build e2e

package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kubeone/test/e2e/operator"
)

// mistake is wrong input of the operator: edits of the manifest, and arguments of apply.
type mistake struct {
	name   string
	edits  []operator.Edit
	args   []string
	status int
	says   []string
}

func (s *scenario) listMistakes() []mistake {
	worker := s.Lab.Host("worker-1")
	cp1, cp2 := s.Lab.Host("cp-1"), s.Lab.Host("cp-2")
	everywhere := operator.Replace("      sshUsername:", "      sshPort: 2222\n      sshUsername:")
	secondPort := operator.Replace("      hostname: cp-2\n", "      hostname: cp-2\n      sshPort: 2222\n")
	return []mistake{
		{"key that the hosts do not know", []operator.Edit{operator.Replace(worker.SSHKey, s.strangeKey())}, yesFlag(),
			13,
			[]string{"worker-1", "authent"}},
		{"closed port", []operator.Edit{secondPort}, yesFlag(), 14, []string{"cp-2", "2222", "refused"}},
		{"name that does not resolve",
			[]operator.Edit{operator.Replace("publicAddress: "+cp2.Address, "publicAddress: no-such-host.invalid")},
			yesFlag(), 14, []string{"no-such-host.invalid"}},
		{"changed host key", []operator.Edit{operator.Replace(cp1.WireKey(), cp2.WireKey())}, yesFlag(), 13,
			[]string{"cp-1", "SHA256:"}},
		{"all hosts unreachable", []operator.Edit{everywhere}, yesFlag(), 14,
			[]string{"cp-1", "cp-2", "cp-3", "refused"}},
		{"bundle cut short", nil, append(yesFlag(), "--bundle", s.cutBundle()), 15, []string{"bundle"}},
		{"bundle altered", nil, append(yesFlag(), "--bundle", s.alteredBundle()), 15, []string{"bundle"}},
		{"bundle of another version", []operator.Edit{operator.Replace(s.Lab.KubernetesVersion, "1.35.4")}, yesFlag(),
			15,
			[]string{"1.35.4", s.Lab.KubernetesVersion}},
		{"nobody to ask", nil, nil, 15, []string{"without a terminal", "--auto-approve"}},
	}
}

func yesFlag() []string { return []string{"-y"} }

// badInput makes each mistake, and checks the hosts afterwards.
func badInput(s *scenario) {
	for _, mistake := range s.listMistakes() {
		s.T.Run(mistake.name, func(t *testing.T) {
			m := &scenario{T: t, Operator: s.Operator, bare: s.bare}
			m.checkMistake(mistake)
		})
	}
	s.checkUnchanged(s.bare, s.snapshotAll())
}

func (s *scenario) checkMistake(m mistake) {
	manifest, err := s.Variant(strings.ReplaceAll(m.name, " ", "-"), m.edits...)
	s.must(err)
	r := s.runCommand(m.status, append([]string{"apply", "-m", manifest}, m.args...), m.says...)
	if strings.Contains(r.Text(), "create the cluster") && m.status != 15 {
		s.Errorf("an installation was planned although not all hosts are known\n%s", r)
	}
}

// wrongManifest applies manifests that belong to another cluster or are older than this one.
func wrongManifest(s *scenario) {
	before := s.snapshotAll()
	for _, m := range []mistake{
		{"manifest of another cluster",
			[]operator.Edit{operator.Replace("\nname: "+s.Lab.Name+"\n", "\nname: another\n")}, yesFlag(), 15,
			[]string{"belongs to cluster", s.Lab.Name, "another"}},
		{"version below the cluster's", []operator.Edit{operator.Replace(s.Lab.KubernetesVersion, "1.35.4")}, yesFlag(),
			15,
			[]string{"1.35.4", s.Lab.KubernetesVersion}},
		{
			"all hosts unreachable", []operator.Edit{
				operator.Replace("      sshUsername:", "      sshPort: 2222\n      sshUsername:"),
			}, yesFlag(), 14, []string{"refused"},
		},
	} {
		s.T.Run(m.name, func(t *testing.T) {
			(&scenario{T: t, Operator: s.Operator, bare: s.bare}).checkMistake(m)
		})
	}
	s.checkEqual("what runs since when", len(before), len(s.snapshotAll()))
}

// strangeKey creates a key that no host accepts.
func (s *scenario) strangeKey() string {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	s.must(err)
	block, err := ssh.MarshalPrivateKey(key, "strange")
	s.must(err)
	path := filepath.Join(s.Dir, "strange")
	s.must(os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	return path
}

// cutBundle returns the first half of the bundle.
func (s *scenario) cutBundle() string {
	path := filepath.Join(s.Dir, "cut.tar")
	s.copyBundle(path)
	info, err := os.Stat(path)
	s.must(err)
	s.must(os.Truncate(path, info.Size()/2))
	return path
}

// alteredBundle returns the bundle with one inverted bit in the middle of its content.
func (s *scenario) alteredBundle() string {
	path := filepath.Join(s.Dir, "altered.tar")
	s.copyBundle(path)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	s.must(err)
	defer file.Close()
	info, err := file.Stat()
	s.must(err)
	one := make([]byte, 1)
	at := info.Size() / 2
	_, err = file.ReadAt(one, at)
	s.must(err)
	one[0] ^= 1
	_, err = file.WriteAt(one, at)
	s.must(err)
	return path
}

func (s *scenario) copyBundle(path string) {
	content, err := os.ReadFile(s.Bundle)
	s.must(err)
	s.must(os.WriteFile(path, content, 0o600))
}
