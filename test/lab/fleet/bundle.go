package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"kubeone/test/lab/components"
)

// Want changes the lab's manifest to another Kubernetes version (without a leading v), and adds that version's bundle
// to the lab. It does not change the hosts. A nil log means the log of Up.
func (l *Lab) Want(ctx context.Context, version string, log Logf) error {
	if log == nil {
		log = l.log
	}
	cache, err := components.DefaultCache()
	if err != nil {
		return err
	}
	l.KubernetesVersion = version
	if err := l.linkBundle(ctx, cache, log); err != nil {
		return err
	}
	return l.saveFiles()
}

// WantCNI changes the lab's manifest and bundle to another version of its network plugin, as in Options.CNI. It does
// not change the hosts. A nil log means the log of Up.
func (l *Lab) WantCNI(ctx context.Context, cni string, log Logf) error {
	if err := components.CheckCNI(cni); err != nil {
		return err
	}
	l.CNI = cni
	return l.Want(ctx, l.KubernetesVersion, log)
}

func (l *Lab) linkBundle(ctx context.Context, cache components.Cache, log Logf) error {
	bundle, err := Bundle(ctx, cache, l.KubernetesVersion, l.CNI, l.Addons, log)
	if err != nil {
		return err
	}
	return l.useBundle(bundle)
}

// useBundle links the bundle of the lab's Kubernetes version into its folder as bundle-VERSION.tar, and points
// bundle.tar to it. Bundles of other versions stay.
func (l *Lab) useBundle(bundle string) error {
	l.Bundle = l.BundlePath(l.KubernetesVersion)
	present := l.Path("bundle.tar")
	for _, old := range []string{l.Bundle, present} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("bundle of lab %s: %w", l.Name, err)
		}
	}
	// A hard link survives a cleaned cache. A symbolic link is the fallback.
	if os.Link(bundle, l.Bundle) != nil {
		if err := os.Symlink(bundle, l.Bundle); err != nil {
			return fmt.Errorf("bundle of lab %s: %w", l.Name, err)
		}
	}
	if err := os.Symlink(filepath.Base(l.Bundle), present); err != nil {
		return fmt.Errorf("bundle of lab %s: %w", l.Name, err)
	}
	return nil
}

// BundlePath returns the path of a lab's bundle for a Kubernetes version, which exists after Want or Up with that
// version.
func (l *Lab) BundlePath(version string) string { return l.Path("bundle-" + version + ".tar") }

// Bundle returns the path of the bundle for a Kubernetes version, a network plugin and addons. If the cache has none
// with exactly these components in the current format, kubeone makes one from a mirror.
func Bundle(ctx context.Context, cache components.Cache, version, cni string, addons []string, log Logf) (string,
	error) {
	// The build ID of the package that writes bundles changes with its code and its dependencies.
	format, err := runOutput(exec.CommandContext(ctx, "go", "list", "-export", "-f", "{{.BuildID}}",
		"kubeone/internal/release"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(format))
	builder := components.NewBuilder(cache, log)
	builder.CNI, builder.Addons = cni, addons
	set, err := builder.Build(ctx, version)
	if err != nil {
		return "", err
	}
	key := set.KubernetesVersion + "-" + set.Digest + "-" + hex.EncodeToString(sum[:6])
	dir, err := cache.Entry(ctx, "bundles", key, func(dir string) error {
		if err := writeBundle(ctx, cache, set, cni, addons, filepath.Join(dir, "bundle.tar"), log); err != nil {
			return err
		}
		return dropOldBundles(cache.Path("bundles", set.KubernetesVersion+"-*"))
	})
	return filepath.Join(dir, "bundle.tar"), err
}

// dropOldBundles removes bundles older than an hour. Labs have their own links.
func dropOldBundles(pattern string) error {
	bundles, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, bundle := range bundles {
		if info, err := os.Stat(bundle); err == nil && time.Since(info.ModTime()) > time.Hour {
			if err := os.RemoveAll(bundle); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeBundle has kubeone make a bundle from a mirror of the set.
func writeBundle(ctx context.Context, cache components.Cache, set *components.Set, cni string, addons []string,
	file string, log Logf) error {
	title, kubeone := "bundle of Kubernetes v"+set.KubernetesVersion, ""
	err := log.During(title+", 1 of 2: building kubeone", func() (err error) {
		kubeone, err = BuildKubeone(ctx, cache)
		return err
	})
	if err != nil {
		return err
	}
	mirror, err := components.NewMirror(set)
	if err != nil {
		return err
	}
	address, stop, err := mirror.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer stop()
	return log.During(title+", 2 of 2: writing it", func() error {
		args := []string{"bundle", "create", "--kubernetes-version", set.KubernetesVersion, "--cni", cni, "--mirror",
			"http://" + address, "--overwrite-registry", address, "--arch", runtime.GOARCH, "--file", file,
			"--insecure-mirror", "--trust-source", "--addons", strings.Join(addons, ",")}
		_, err := runOutput(exec.CommandContext(ctx, kubeone, args...))
		return err
	})
}
