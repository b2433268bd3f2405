package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"kubeone/internal/manifest"
	"kubeone/internal/release"
	"kubeone/internal/text/phrase"
	"time"
)

// ByteProgress shows the progress of bundle creation. On a terminal, it shows a live line. On other writers, it writes
// a line for each finished binary or image, and heartbeats.
type ByteProgress struct {
	out   io.Writer
	live  *LiveLine // nil without a terminal
	shown time.Time // of the last update
}

// Intervals between updates while no binary or image is finished.
const (
	liveInterval      = 200 * time.Millisecond
	heartbeatInterval = 10 * time.Second
)

// NewByteProgress returns a ByteProgress that writes to out. The caller must call End.
func NewByteProgress(out io.Writer) *ByteProgress {
	return &ByteProgress{out: out, live: NewLiveLine(out), shown: time.Now()}
}

// Show shows the current progress. It is not safe for concurrent use.
func (p *ByteProgress) Show(now release.Progress) {
	interval := heartbeatInterval
	if p.live != nil {
		interval = liveInterval
	}
	if time.Since(p.shown) < interval && (p.live != nil || now.Done == "") {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("[%d/%d] %s of %s", now.Entries, now.TotalEntries, Megabytes(now.Bytes),
		Megabytes(now.TotalBytes))
	if now.Done != "" {
		line += "  " + now.Done
	}
	if p.live == nil {
		_, _ = fmt.Fprintln(p.out, line)
		return
	}
	p.live.Show(line)
}

// End clears the live line.
func (p *ByteProgress) End() { p.live.Show("") }

// Bundle lists the contents of a bundle.
func Bundle(w io.Writer, i release.Index, verified bool) {
	out := &page{}
	out.addParagraph("", BundleSummary(i), plain)
	out.addParagraph("", "created by "+i.CreatedBy, plain)
	out.addSpace()
	binaries := &table{head: []string{"BINARY", "VERSION", "SIZE", "SHA256"}}
	for _, b := range i.Artifacts.Binaries {
		binaries.addTexts(b.Name, b.Version, Megabytes(b.Size), b.SHA256)
	}
	out.addTable(binaries)
	out.addSpace()
	if len(i.Artifacts.Published) > 0 {
		manifests := &table{head: []string{"PUBLISHED MANIFEST", "VERSION", "SIZE", "SHA256"}}
		for _, p := range i.Artifacts.Published {
			manifests.addTexts(p.Name, p.Version, Megabytes(p.Size), p.SHA256)
		}
		out.addTable(manifests)
		out.addSpace()
	}
	if len(i.Artifacts.Charts) > 0 {
		charts := &table{head: []string{"CHART", "VERSION", "SIZE", "SHA256", "SOURCE"}}
		for _, c := range i.Artifacts.Charts {
			charts.addTexts(c.Name, c.Version, Megabytes(c.Size), c.SHA256, cmp.Or(c.URL, c.RepoURL))
		}
		out.addTable(charts)
		out.addSpace()
	}
	images := &table{head: []string{"IMAGE", "NEEDED BY", "SIZE", "DIGEST"}}
	for _, image := range i.Artifacts.Images {
		roles := "every host"
		if len(image.Roles) > 0 && !image.Workload {
			roles = string(image.Roles[0])
		}
		images.addTexts(image.Name, roles, Megabytes(image.Size), image.Digest)
	}
	out.addTable(images)
	if verified {
		out.addSpace()
		out.addLine(fmt.Sprintf("all %d parts match their digests", len(i.Entries)))
	}
	out.flush(w)
}

// BundleSummary describes a bundle in one line.
func BundleSummary(i release.Index) string {
	charts := ""
	if len(i.Artifacts.Charts) > 0 {
		charts = ", " + phrase.Count(len(i.Artifacts.Charts), "chart")
	}
	return fmt.Sprintf("Kubernetes %s for linux/%s, CNI %s: %d binaries, %d images%s, %s in %d parts",
		i.KubernetesVersion, i.Arch, i.CNI, len(i.Artifacts.Binaries), len(i.Artifacts.Images), charts,
		Megabytes(i.Size()), len(i.Entries))
}

// Megabytes formats a size in bytes as megabytes (10^6 bytes).
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// Versions of ManifestDocument and FailureDocument.
const (
	manifestFormat = 1
	failureFormat  = 1
)

// ManifestDocument is the JSON that "config validate" prints.
type ManifestDocument struct {
	Format   int                `json:"format"`
	Valid    bool               `json:"valid"`
	Problems []manifest.Problem `json:"problems"`
	Exit     int                `json:"exit"`
}

// ManifestJSON returns a ManifestDocument on one line with a final newline.
func ManifestJSON(found []manifest.Problem, exit int) ([]byte, error) {
	if found == nil {
		found = []manifest.Problem{}
	}
	return jsonLine(ManifestDocument{
		Format: manifestFormat, Valid: !manifest.HasErrors(found), Problems: found, Exit: exit,
	})
}

// FailureDocument is the JSON that a command prints if it fails before it has printed a result.
type FailureDocument struct {
	Format int    `json:"format"`
	Error  string `json:"error"`
	Exit   int    `json:"exit"`
}

// FailureJSON returns a FailureDocument on one line with a final newline.
func FailureJSON(err error, exit int) ([]byte, error) {
	return jsonLine(FailureDocument{Format: failureFormat, Error: err.Error(), Exit: exit})
}

// jsonLine returns JSON on one line. It does not escape <, > and &.
func jsonLine(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// Manifest prints the problems in the manifest, one on each line, and whether the manifest is valid.
func Manifest(w io.Writer, path string, found []manifest.Problem) {
	counts := map[manifest.Severity]int{}
	for _, p := range found {
		counts[p.Severity]++
		_, _ = fmt.Fprintln(w, p)
	}
	verdict := "is valid"
	if manifest.HasErrors(found) {
		verdict = "is not valid"
	}
	_, _ = fmt.Fprintf(w, "%s %s: %s, %s, %s.\n", path, verdict, phrase.Count(counts[manifest.Error], "error"),
		phrase.Count(counts[manifest.Warning], "warning"), phrase.Count(counts[manifest.Note], "note"))
}

// PoolFormat is the version of PoolDocument.
const PoolFormat = 1

// PoolDocument is the JSON that "host list" prints.
type PoolDocument struct {
	Format int        `json:"format"` // PoolFormat
	Hosts  []PoolHost `json:"hosts"`
}

// PoolHost is one host in the pool.
type PoolHost struct {
	Name    string `json:"name"`
	Address string `json:"address"` // USER@ADDRESS:PORT
	State   string `json:"state"`
	Domain  string `json:"failureDomain,omitempty"`
	Machine string `json:"machine,omitempty"` // NAMESPACE/NAME
	Message string `json:"message,omitempty"`
}

// Pool writes one line for each host in the pool, with its message on the next line.
func Pool(w io.Writer, s Style, hosts []PoolHost) {
	out := &page{style: s}
	if len(hosts) == 0 {
		out.addLine("The pool has no hosts. Add hosts with kubeone host add.")
		out.flush(w)
		return
	}
	t := &table{head: []string{"HOST", "ADDRESS", "STATE", "DOMAIN", "MACHINE"}}
	for _, h := range hosts {
		t.addRow(cell{h.Name, plain}, cell{h.Address, plain}, cell{h.State, plain}, cell{h.Domain, plain},
			cell{h.Machine, plain})
	}
	for i, lines := range t.renderLines(s) {
		for _, line := range lines {
			out.addLine(line)
		}
		if i > 0 && hosts[i-1].Message != "" {
			out.addParagraph("    ", hosts[i-1].Message, dim)
		}
	}
	out.flush(w)
}

// PoolCandidate is a machine to add to the pool.
type PoolCandidate struct {
	Name, Address, System string
	Private               string   // address that other Nodes connect to; "" means Address
	Keys                  []string // fingerprints that the operator has not approved yet, bastions first
	Known                 bool     // the machine is already in the pool
}

// PoolCandidates writes the machines to add and the fingerprint of the cluster SSH key.
func PoolCandidates(w io.Writer, s Style, candidates []PoolCandidate, key string) {
	out := &page{style: s}
	t := &table{head: []string{"HOST", "ADDRESS", "SYSTEM", "HOST KEY"}}
	for _, c := range candidates {
		keys := "known"
		for i, k := range c.Keys {
			if i == 0 {
				keys = k + " (new)"
			} else {
				keys += ", " + k + " (new)"
			}
		}
		if c.Known {
			keys += "; already in the pool"
		}
		at := c.Address
		if c.Private != "" {
			at += ", its Node " + c.Private
		}
		t.addRow(cell{c.Name, plain}, cell{at, plain}, cell{c.System, plain}, cell{keys, plain})
	}
	for _, lines := range t.renderLines(s) {
		for _, line := range lines {
			out.addLine(line)
		}
	}
	out.addLine("")
	out.addParagraph("", "The cluster will log in to these hosts with its own key, "+key+", as root.",
		plain)
	out.flush(w)
}
