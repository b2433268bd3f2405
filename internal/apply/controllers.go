package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// Bundles provides complete bundle files by the names of desired.BundleFile. An implementation of Blobs can provide
// them too.
type Bundles interface {
	Bundle(name string) (content io.Reader, size int64, err error)
}

// uploadBundles uploads the bundles of the step that are missing or incomplete on a control-plane host. Each upload is
// atomic, so that controllers never read part of a bundle.
func (r *Run) uploadBundles(ctx context.Context, h host.Host, s plan.Step) error {
	bundles := step.ParamsOf[step.ControllerFilesParams](s.Intent).Bundles
	if len(bundles) == 0 {
		return nil
	}
	const list = `bundles=$1
umask 022
mkdir -p "$bundles"
chmod 0755 "$bundles"
stat -c '%n %s' "$bundles"/*.tar 2>/dev/null || :`
	res, err := h.Run(ctx, host.Cmd{Name: "look for bundles", Script: list, Args: []string{desired.BundleDir}})
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(res.Stdout)) {
		has[strings.TrimSpace(line)] = true
	}
	from, ok := r.Blobs.(Bundles)
	if !ok {
		return errors.New("no bundles to upload; pass them with --bundle")
	}
	for _, b := range bundles {
		path := desired.BundleDir + "/" + b.Name
		if has[fmt.Sprintf("%s %d", path, b.Size)] {
			continue
		}
		content, size, err := from.Bundle(b.Name)
		if err != nil {
			return err
		}
		if err := h.Upload(ctx, host.File{Path: path, Mode: 0o644, Size: size, Content: content}); err != nil {
			return err
		}
	}
	return nil
}
