package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/drain"
)

// UpgradeRisks are what an operator should know before nodes are drained and the API servers get another version.
type UpgradeRisks struct {
	losses  drain.Losses
	removed []string // requests to APIs that the version no longer has, one sentence each
}

// Notes says, one sentence a matter, what an upgrade that drains these nodes would break: requests to APIs that are
// removed, pods without a controller, pods with local data, and budgets that never allow an eviction.
func (r UpgradeRisks) Notes(drained []string) []string {
	return slices.Concat(r.removed, r.losses.Notes(drained))
}

// FindUpgradeRisks asks the API what an upgrade to that version would break. What was found out is returned with an
// error too.
func FindUpgradeRisks(ctx context.Context, access Access, to string) (UpgradeRisks, error) {
	c, err := Connect(access)
	if err != nil {
		return UpgradeRisks{}, err
	}
	defer c.Close()
	losses, err := c.DrainLosses(ctx)
	removed, err2 := removedAPIs(ctx, access, to) // last: an API server that is away uses up the time
	return UpgradeRisks{losses, removed}, errors.Join(err, err2)
}

// removedAPIs asks every API server, all at once: each counts only the requests that it got itself, since it started.
func removedAPIs(ctx context.Context, access Access, to string) ([]string, error) {
	ways := make([]Access, 0, len(access.Via))
	for _, via := range access.Via {
		way := access
		way.Via = []Endpoint{via}
		ways = append(ways, way)
	}
	if len(ways) == 0 {
		ways = append(ways, access)
	}
	found, errs := make([][]string, len(ways)), make([]error, len(ways))
	var wait sync.WaitGroup
	for i, way := range ways {
		wait.Go(func() {
			c, err := Connect(way)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			found[i], errs[i] = c.removedAPIs(ctx, to)
		})
	}
	wait.Wait()
	out := slices.Concat(found...)
	slices.Sort(out)
	return slices.Compact(out), errors.Join(errs...)
}

// removedAPIs reads apiserver_requested_deprecated_apis, whose label removed_release says with which
// release an API goes.
func (c *Client) removedAPIs(ctx context.Context, to string) ([]string, error) {
	var text []byte
	err := apicall.Retry(ctx, "read the API server's metrics", "", func(ctx context.Context) (err error) {
		text, err = c.Kubernetes.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return RemovedAPIs(string(text), to), nil
}

// RemovedAPIs are the APIs of the metrics' text that were asked for and that release to no longer has.
func RemovedAPIs(metrics, to string) []string {
	want, err := version.ParseSemantic(to)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(metrics, "\n") {
		inside, found := strings.CutPrefix(line, "apiserver_requested_deprecated_apis{")
		if !found {
			continue
		}
		l := metricLabels(inside)
		gone, err := version.ParseGeneric(l["removed_release"])
		if err != nil || !want.AtLeast(gone) {
			continue
		}
		name := strings.Trim(l["group"]+"/"+l["version"], "/") + " " + l["resource"]
		out = append(out, fmt.Sprintf("%s is in use and was removed in Kubernetes %s: clients that still ask "+
			"for it will fail", name, l["removed_release"]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// metricLabels reads name="value",... up to the closing brace. Values of this metric hold neither quotes nor commas.
func metricLabels(text string) map[string]string {
	text, _, _ = strings.Cut(text, "}")
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			out[name] = strings.Trim(value, `"`)
		}
	}
	return out
}
