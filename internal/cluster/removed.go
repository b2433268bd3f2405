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

// UpgradeRisks has what an operator should know before an upgrade drains nodes and changes the API servers' version.
type UpgradeRisks struct {
	losses  drain.Losses
	removed []string // requests to APIs that the version no longer has, one sentence each
}

// Notes returns what an upgrade that drains these nodes would break, one sentence each: requests to removed APIs, pods
// without a controller, pods with local data, and budgets that never allow an eviction.
func (r UpgradeRisks) Notes(drained []string) []string {
	return slices.Concat(r.removed, r.losses.Notes(drained))
}

// FindUpgradeRisks finds what an upgrade to the version would break. It returns partial results together with an error.
func FindUpgradeRisks(ctx context.Context, access Access, to string) (UpgradeRisks, error) {
	c, err := Connect(access)
	if err != nil {
		return UpgradeRisks{}, err
	}
	defer c.Close()
	losses, err := c.DrainLosses(ctx)
	removed, err2 := removedAPIs(ctx, access, to) // last: a silent API server uses up the time
	return UpgradeRisks{losses, removed}, errors.Join(err, err2)
}

// removedAPIs asks all API servers in parallel. Each counts only its own requests since it started.
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

// removedAPIs reads the metric apiserver_requested_deprecated_apis. Its label removed_release names the release that
// removes the API.
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

// RemovedAPIs returns the requested APIs in the metrics' text that release to no longer has.
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
