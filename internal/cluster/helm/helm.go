// Package helm installs, upgrades and uninstalls Helm releases in a cluster, as the helm command does: "helm list"
// shows them, and hooks of charts run.
package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/client-go/rest"

	"kubeone/internal/addons/chart"
	"kubeone/internal/cluster/apicall"
)

// FieldManager is Helm's name in managedFields. It is the same as that of the helm command.
const FieldManager = "helm"

const maxHistory = 10 // revisions kept for each release

// Release is a release to install or upgrade.
type Release struct {
	Name, Namespace string
	Chart           []byte // archive
	Values          map[string]any
	Source          string // digest of the source of the chart, as a label
	Wait            bool   // wait until its objects are ready, and roll back an upgrade that does not become ready
	Timeout         time.Duration
}

// Installer changes releases. Only one run at a time may change the releases of a cluster.
type Installer struct {
	Config *rest.Config
}

// ApplyRelease installs the release, or upgrades it if it exists. If an earlier operation was interrupted, ApplyRelease
// marks that operation as failed first: the caller's lock says that no other run works on it.
func (i Installer) ApplyRelease(ctx context.Context, r Release) error {
	config, err := i.configure(r.Namespace)
	if err != nil {
		return err
	}
	loaded, err := chart.Open(r.Chart)
	if err != nil {
		return err
	}
	labels := map[string]string{sourceLabel: r.Source, versionLabel: labelVersion(loaded.Metadata.Version)}
	exists, err := endInterrupted(config, r.Name)
	if err != nil {
		return apicall.Wrap("read the Helm release", r.Name, err)
	}
	if exists {
		u := action.NewUpgrade(config)
		u.Namespace, u.Timeout, u.MaxHistory = r.Namespace, r.Timeout, maxHistory
		u.ForceConflicts = true // of its own objects: undo manual changes
		u.ResetValues, u.RollbackOnFailure, u.CleanupOnFail = true, r.Wait, r.Wait
		u.WaitStrategy, u.Labels = waitStrategy(r), labels
		_, err = u.RunWithContext(ctx, r.Name, loaded, r.Values)
		return apicall.Wrap("upgrade the Helm release", r.Name, err)
	}
	in := action.NewInstall(config)
	in.ReleaseName, in.Namespace, in.CreateNamespace, in.Timeout = r.Name, r.Namespace, true, r.Timeout
	in.WaitStrategy, in.Labels = waitStrategy(r), labels
	_, err = in.RunWithContext(ctx, loaded, r.Values)
	return apicall.Wrap("install the Helm release", r.Name, err)
}

// RemoveRelease uninstalls a release. It does nothing if there is none.
func (i Installer) RemoveRelease(_ context.Context, namespace, name string, timeout time.Duration) error {
	config, err := i.configure(namespace)
	if err != nil {
		return err
	}
	u := action.NewUninstall(config)
	u.IgnoreNotFound, u.Timeout, u.WaitStrategy = true, timeout, helmkube.StatusWatcherStrategy
	_, err = u.Run(name)
	return apicall.Wrap("uninstall the Helm release", name, err)
}

func waitStrategy(r Release) helmkube.WaitStrategy {
	if r.Wait {
		return helmkube.StatusWatcherStrategy
	}
	return helmkube.HookOnlyStrategy
}

// setFieldManager sets the name of Helm in managedFields. The library would use the name of this program.
//
//nolint:gochecknoglobals // the library has a global variable for it
var setFieldManager = sync.OnceFunc(func() { helmkube.ManagedFieldsManager = FieldManager })

// configure returns Helm's configuration for a namespace.
func (i Installer) configure(namespace string) (*action.Configuration, error) {
	setFieldManager()
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := config.Init(newGetter(i.Config, namespace), namespace, "secret"); err != nil {
		return nil, err
	}
	return config, nil
}

// endInterrupted reports whether the release exists, and marks a pending last revision as failed.
func endInterrupted(config *action.Configuration, name string) (exists bool, err error) {
	last, err := config.Releases.Last(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, ok := last.(*releasev1.Release)
	if !ok {
		return false, fmt.Errorf("a release of type %T is not supported", last)
	}
	if !r.Info.Status.IsPending() && r.Info.Status != releasecommon.StatusUninstalling {
		return true, nil
	}
	r.Info.Status, r.Info.Description = releasecommon.StatusFailed, "interrupted"
	return true, config.Releases.Update(r)
}
