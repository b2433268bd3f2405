package components

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// wishes are the images that a kubeadm requires besides Kubernetes' own, and the module versions to build them from.
type wishes struct {
	PauseTag                 string
	EtcdTag, EtcdVersion     string
	CoreDNSTag, CoreDNSBuilt string
}

// askKubeadm gets the images from the built kubeadm, and the nearest available versions from the module proxy.
func (b *Builder) askKubeadm(ctx context.Context, kubernetes, bin string) (wishes, error) {
	var answer wishes
	dir, err := b.Cache.Entry(ctx, "wishes", filepath.Base(bin), func(dir string) error {
		list := exec.CommandContext(ctx, filepath.Join(bin, "kubeadm"), "config", "images", "list",
			"--kubernetes-version", "v"+kubernetes)
		images, err := list.Output()
		if err != nil {
			return fmt.Errorf("ask kubeadm for its images: %w", err)
		}
		answer, err := resolveWishes(ctx, tagsByImage(string(images)))
		if err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "wishes.json"), text, 0o644)
	})
	if err != nil {
		return answer, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "wishes.json"))
	if err != nil {
		return answer, err
	}
	err = json.Unmarshal(text, &answer)
	return answer, err
}

func resolveWishes(ctx context.Context, tags map[string]string) (wishes, error) {
	answer := wishes{PauseTag: tags["pause"], EtcdTag: tags["etcd"], CoreDNSTag: tags["coredns"]}
	if answer.PauseTag == "" || answer.EtcdTag == "" || answer.CoreDNSTag == "" {
		return answer, fmt.Errorf("kubeadm lists no pause, etcd or coredns image: %v", tags)
	}
	var err error
	// "3.6.8-0" is the first image of etcd v3.6.8.
	etcd, _, _ := strings.Cut(answer.EtcdTag, "-")
	if answer.EtcdVersion, err = nearestModule(ctx, "go.etcd.io/etcd/server/v3", "v"+etcd); err != nil {
		return answer, err
	}
	answer.CoreDNSBuilt, err = nearestModule(ctx, "github.com/coredns/coredns", answer.CoreDNSTag)
	return answer, err
}

// tagsByImage maps the last path element of each image to its tag.
func tagsByImage(images string) map[string]string {
	found := map[string]string{}
	for _, image := range strings.Fields(images) {
		if colon := strings.LastIndexByte(image, ':'); colon > 0 {
			name := image[:colon]
			found[name[strings.LastIndexByte(name, '/')+1:]] = image[colon+1:]
		}
	}
	return found
}

func nearestModule(ctx context.Context, module, want string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-versions", module)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GO111MODULE=on")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("list the versions of %s: %w", module, err)
	}
	found := nearestVersion(want, strings.Fields(string(out)))
	if found == "" {
		return "", fmt.Errorf("%s is not to be had in a version near %s", module, want)
	}
	return found, nil
}

// nearestVersion returns the wanted version, or the oldest newer release, or the newest older one, all of the same
// major version. It returns "" if there is none, and skips words that are not versions.
func nearestVersion(want string, available []string) string {
	wanted, err := version.ParseSemantic(want)
	if err != nil {
		return ""
	}
	var above, below *version.Version
	for _, text := range available {
		v, err := version.ParseSemantic(text)
		switch {
		case err != nil || v.PreRelease() != "" || v.Major() != wanted.Major():
		case v.LessThan(wanted):
			if below == nil || below.LessThan(v) {
				below = v
			}
		case above == nil || v.LessThan(above):
			above = v
		}
	}
	switch {
	case above != nil:
		return "v" + above.String()
	case below != nil:
		return "v" + below.String()
	}
	return ""
}
