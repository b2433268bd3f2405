package apply

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// content implements Blobs with a map and records requests.
type content struct {
	mu    sync.Mutex
	blobs map[string]string
	asked []string
}

func (c *content) Blob(sum string) (io.Reader, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, sum)
	text, ok := c.blobs[sum]
	if !ok {
		return nil, 0, errors.New("no such blob: " + sum)
	}
	return strings.NewReader(text), int64(len(text)), nil
}

func uploading(sums ...string) plan.Step {
	s := prepare()
	s.Intent.Params = step.PrepareParams{Content: step.Content{Uploads: sums}}
	return s
}

func TestOnlyMissingUploadsAreSent(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", uploading("aa", "bb", "cc"))
	l.Write("var/lib/kubeone/artifacts/sha256/bb", "there", 0o600)
	blobs := &content{blobs: map[string]string{"aa": "content a", "cc": strings.Repeat("c", 1<<20)}}
	l.Blobs = blobs
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"aa", "cc"}, blobs.asked); diff != "" {
		t.Error(diff)
	}
	for sum, want := range map[string]string{"aa": "content a", "bb": "there", "cc": blobs.blobs["cc"]} {
		if got := l.Read("var/lib/kubeone/artifacts/sha256/" + sum); got != want {
			t.Errorf("%s has %d bytes, want %d", sum, len(got), len(want))
		}
	}
	if entries, err := os.ReadDir(l.Path("var/lib/kubeone/artifacts/sha256")); err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestNothingIsAskedForWhenTheHostHasItAll(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", uploading("aa"))
	l.Write("var/lib/kubeone/artifacts/sha256/aa", "there", 0o600)
	if err := l.Do(patience(t), nil); err != nil {
		t.Error(err) // Blobs is nil
	}
}

func TestUploadsThatAreNotThereFailTheStep(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", uploading("aa"))
	if err := l.Do(patience(t), nil); err == nil || !strings.Contains(err.Error(), "no bundle to upload from") {
		t.Errorf("without a bundle: %v", err)
	}
	l = newLab(t, ":", uploading("aa", "dd"))
	l.Blobs = &content{blobs: map[string]string{"aa": "a"}}
	if err := l.Do(patience(t), nil); err == nil || !strings.Contains(err.Error(), "no such blob: dd") {
		t.Errorf("with another bundle: %v", err)
	}
	if units := l.Read("units"); units != "" {
		t.Errorf("the step ran: %s", units)
	}
	if got := l.Read("var/lib/kubeone/artifacts/sha256/aa"); got != "" {
		t.Errorf("half of a transfer is there: %q", got)
	}
}

func TestPKIComesFromItsPeer(t *testing.T) {
	t.Parallel()
	pki := stepOf("pki/node-1", "1", step.CopyPKI)
	pki.Intent.Params = step.CopyPKIParams{Peer: "9"}
	l := newLab(t, "", pki)
	if err := l.Do(patience(t), nil); err == nil || !strings.Contains(err.Error(), "(9) was not reached") {
		t.Errorf("got %v", err)
	}
	peer := newMachine(t, "node-9")
	for _, name := range []string{
		"ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt",
		"etcd/ca.key",
	} {
		peer.Write("etc/kubernetes/pki/"+name, "the peer's "+name, 0o600)
	}
	l.Hosts["9"] = peer
	peer.Write("etc/kubeone/rotation", "etcd used\nservice-account learn\n", 0o644)
	l.Scripts["1"] = "tar -xOf /run/kubeone/secrets/pki.tar etcd/ca.key rotation"
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if log := l.Read("var/lib/kubeone/step/log"); log != "the peer's etcd/ca.keyetcd used\n" {
		t.Errorf("the stage read %q", log)
	}
	if _, err := os.Stat(l.Path("run/kubeone/secrets")); !os.IsNotExist(err) {
		t.Errorf("the keys are still there: %v", err)
	}
}
