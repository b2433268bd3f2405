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

// UpgradeRisks contains what an operator should know before an upgrade drains nodes and changes the version of the API
// servers.
type UpgradeRisks struct {
	losses  drain.Losses
	removed []string // requests to APIs that are removed in the new version, one sentence each
}

// Notes describes what an upgrade that drains these nodes would break, in one sentence each: clients of removed APIs,
// pods without a controller, pods with local data, and disruption budgets that never allow an eviction.
func (r UpgradeRisks) Notes(drained []string) []string {
	return slices.Concat(r.removed, r.losses.Notes(drained))
}

// FindUpgradeRisks returns what an upgrade to the version would break. If it returns an error, the results are partial.
func FindUpgradeRisks(ctx context.Context, access Access, to string) (UpgradeRisks, error) {
	c, err := Connect(access)
	if err != nil {
		return UpgradeRisks{}, err
	}
	defer c.Close()
	losses, err := c.DrainLosses(ctx)
	// This runs last, because an unresponsive API server would use up the deadline.
	removed, err2 := removedAPIs(ctx, access, to)
	return UpgradeRisks{losses, removed}, errors.Join(err, err2)
}

// removedAPIs queries all API servers in parallel and merges the results. It needs all of them, because each API server
// counts only the requests that it received since it started.
func removedAPIs(ctx context.Context, access Access, to string) ([]string, error) {
	routes := make([]Access, 0, len(access.Via))
	for _, via := range access.Via {
		route := access
		route.Via = []Endpoint{via}
		routes = append(routes, route)
	}
	if len(routes) == 0 {
		routes = append(routes, access)
	}
	found, errs := make([][]string, len(routes)), make([]error, len(routes))
	var wait sync.WaitGroup
	for i, route := range routes {
		wait.Go(func() {
			c, err := Connect(route)
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

// removedAPIs reads the metric apiserver_requested_deprecated_apis from one API server. Its label removed_release is
// the release in which the API is removed.
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

// RemovedAPIs returns a sentence for each requested API in the metrics that release to no longer serves. It returns nil
// if to is not a semantic version.
func RemovedAPIs(metrics, to string) []string {
	want, err := version.ParseSemantic(to)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(metrics, "\n") {
		rest, found := strings.CutPrefix(line, "apiserver_requested_deprecated_apis{")
		if !found {
			continue
		}
		l := metricLabels(rest)
		removedIn, err := version.ParseGeneric(l["removed_release"])
		if err != nil || !want.AtLeast(removedIn) {
			continue
		}
		name := strings.Trim(l["group"]+"/"+l["version"], "/") + " " + l["resource"]
		out = append(out, fmt.Sprintf("%s is in use, but was removed in Kubernetes %s; clients that still "+
			"request it will fail", name, l["removed_release"]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// metricLabels parses name="value",... up to the closing brace. The values of this metric never contain quotes or
// commas.
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
