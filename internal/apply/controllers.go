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

// Bundles has whole bundles, by the names that desired.BundleFile has. Who has Blobs may have them too.
type Bundles interface {
	Bundle(name string) (content io.Reader, size int64, err error)
}

// uploadBundles gives a control-plane host the bundles that the step names and the host does not have whole. Each comes
// into its place in one move, so that the controllers never read half of one.
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
	res, err := h.Run(ctx, host.Cmd{Name: "list bundles", Script: list, Args: []string{desired.BundleDir}})
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(res.Stdout)) {
		has[strings.TrimSpace(line)] = true
	}
	from, ok := r.Blobs.(Bundles)
	if !ok {
		return errors.New("nobody has bundles to upload: give them with --bundle")
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
