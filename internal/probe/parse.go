package probe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer is the parsed output of the script on one host.
type Answer struct {
	Host        observed.Host // without ID; Reach is Reached
	Credentials Credentials   // empty unless requested and present on the host
	APIPort     int           // port of its own API server, from the static pod; default 6443
	Parts       []Span        // of the script, without host, relative to the first

	digests map[string]credentialDigest // of files with credentials, by path; nil if not requested
}

// Parse parses the output of the script. sent and received are the times on the operator's machine when the wait for it
// started and ended. Parse is pure. It skips unknown names, and missing facts stay unknown. The error wraps ErrGarbled
// or ErrTruncated, and quotes at most the first line of the output.
func Parse(out []byte, sent, received time.Time) (Answer, error) {
	l, err := readLines(out)
	if err != nil {
		return Answer{}, err
	}
	h := observed.Host{Reach: observed.Reached}
	files, pem, kubeconfigs := l.pathLines("file"), l.fileContents("pem"), l.pathLines("yaml")
	parseMachine(&h, l, files)
	parseSoftware(&h, l)
	h.EtcdLost = l.firstValue("etcd-lost")
	parseOurs(&h, l, files)
	parsePresence(&h, l)
	h.CAHash = CAHash(pem[clusterCA])
	h.Authorities = parseAuthorities(pem, files[rotationFile])
	h.Certificates = parseCertificates(pem, kubeconfigs, hostClock(l))
	h.Endpoint = yamlValue(kubeconfigs[kubeletConf], "server")
	h.AdminEndpoint = yamlValue(kubeconfigs[adminConf], "server")
	h.APINames = certificateNames(pem[apiServerCert])
	kubeletCert(&h, l, kubeconfigs[kubeletConf])
	if now := hostClock(l); !now.IsZero() {
		h.ClockSkew = now.Sub(sent.Add(received.Sub(sent) / 2))
	}
	return Answer{Host: h, Credentials: parseCredentials(l, pem), APIPort: apiPort(l), Parts: parseParts(l),
		digests: credentialDigests(l)}, nil
}

// parseAccess parses the beginning of the output, up to accessLine: credentials and the port of the API server.
func parseAccess(head []byte) (Answer, error) {
	return Parse(append(slices.Clone(head), "end\t1\n"...), time.Time{}, time.Time{})
}

// parsePresence adds to h which files exist that decisions depend on. A file that is not visible counts as missing only
// if the script ran as root.
func parsePresence(h *observed.Host, l lines) {
	of := map[string]*observed.Tri{
		kubeletConf:                  &h.KubeletConf,
		adminConf:                    &h.AdminConf,
		"/etc/kubernetes/pki/ca.key": &h.PKI,
		"/var/lib/etcd/member":       &h.EtcdData,
	}
	for file, fact := range of {
		switch {
		case l.hasValue("exists", file):
			*fact = observed.Yes
		case l.hasValue("absent", file) && l.firstValue("uid") == "0":
			*fact = observed.No
		}
	}
}

// kubeletCert adds to h whether the client certificate named in kubelet.conf exists. If kubelet.conf names a path other
// than the usual one, that stays unknown.
func kubeletCert(h *observed.Host, l lines, conf []string) {
	switch path := yamlValue(conf, "client-certificate"); {
	case path == "" && yamlValue(conf, "client-certificate-data") != "":
		h.KubeletCert = observed.Yes
	case path != kubeletClient:
	case l.hasValue("exists", path):
		h.KubeletCert = observed.Yes
	case l.hasValue("absent", path) && l.firstValue("uid") == "0":
		h.KubeletCert = observed.No
	}
}

// apiPort returns the --secure-port of the API server in its static pod, or 6443 if there is none.
func apiPort(l lines) int {
	for _, t := range l.pathLines("yaml")["/etc/kubernetes/manifests/kube-apiserver.yaml"] {
		if _, port, ok := strings.Cut(t, "--secure-port="); ok {
			if n := parseNumber(strings.Trim(strings.TrimSpace(port), `"'`)); n > 0 && n < 65536 {
				return n
			}
		}
	}
	return 6443
}

const (
	header = "kubeone-probe"
	format = "1"
	// endOfBlock is the line after a block, in which every line is a value.
	endOfBlock = "block\t"
)

// Errors of a host's answer, for errors.Is.
var (
	ErrGarbled   = errors.New("the output of the host is not that of the probe script")
	ErrTruncated = errors.New("the output of the host is truncated")
)

// lines is the output of a host: the values of each name, in the order printed.
type lines map[string][]string

// maxTextBytes is the maximum size of an answer. Typical hosts print about 50 kB.
const maxTextBytes = 4 << 20

// Limits for the parts of an answer. Correct answers stay far below them.
const (
	maxLineBytes = 1 << 10  // bytes of a fact
	maxDataBytes = 64 << 10 // bytes of a line in a certificate or kubeconfig
	maxValues    = 256      // values of a list: addresses, programs, certificates
)

// boundLine returns a line without nonprintable characters, truncated to the limit for its name.
func boundLine(name, text string) string {
	most := maxLineBytes
	if name == "pem" || name == "secret" || name == "yaml" {
		most = maxDataBytes
	}
	return host.Printable(text[:min(len(text), most)])
}

// readLines parses the output of the script. It returns an error if there is text before the first line, because a
// login shell that prints something would also corrupt other answers. It skips lines without a tab, except in a block,
// where every line is a value.
func readLines(out []byte) (lines, error) {
	found := lines{}
	started, ended, block := false, false, ""
	for text := range strings.Lines(string(out)) {
		text = strings.TrimRight(text, "\r\n")
		name, _, _ := strings.Cut(text, "\t")
		text = boundLine(cmp.Or(block, name), text)
		name, value, ok := strings.Cut(text, "\t")
		switch {
		case ended:
		case block != "" && text != endOfBlock:
			found[block] = append(found[block], text)
		case !started && name != header && strings.TrimSpace(text) != "":
			return nil, fmt.Errorf("%w: it starts with %.60q; the shell of the SSH user must not print anything when it "+
				"runs a command (.bashrc, .profile)", ErrGarbled, text)
		case !ok:
		case name == header && value != format:
			return nil, fmt.Errorf("%w: its format is %.20q, not %s", ErrGarbled, value, format)
		case name == header:
			started = true
		case name == "end":
			ended = started
		case started && name == "block":
			block = value
		case started:
			found[name] = append(found[name], value)
		}
	}
	switch {
	case !started:
		return nil, fmt.Errorf("%w: it is empty", ErrGarbled)
	case !ended:
		return nil, ErrTruncated
	}
	return found, nil
}

// firstValue returns the first value of a name, without surrounding space; "" if there is none.
func (l lines) firstValue(name string) string {
	if len(l[name]) == 0 {
		return ""
	}
	return strings.TrimSpace(l[name][0])
}

// hasValue reports whether a name has that value.
func (l lines) hasValue(name, value string) bool {
	for _, v := range l[name] {
		if v == value {
			return true
		}
	}
	return false
}

// pathLines splits the values "PATH:LINE" of a name by path.
func (l lines) pathLines(name string) map[string][]string {
	out := map[string][]string{}
	for _, v := range l[name] {
		if path, text, ok := strings.Cut(v, ":"); ok {
			out[path] = append(out[path], text)
		}
	}
	return out
}

// fileContents returns the content of the files printed under a name, by path. Each file starts with a line "==> PATH
// <==". Empty files are skipped.
func (l lines) fileContents(name string) map[string][]byte {
	files := map[string][]byte{}
	file := ""
	for _, v := range l[name] {
		if path, ok := strings.CutPrefix(v, "==> "); ok {
			file = strings.TrimSuffix(path, " <==")
			continue
		}
		files[file] = append(append(files[file], v...), '\n')
	}
	for file, content := range files {
		if len(bytes.TrimSpace(content)) == 0 {
			delete(files, file)
		}
	}
	return files
}

// validWords returns the values of a name that are valid words, sorted and without duplicates, at most maxValues.
func (l lines) validWords(name string) []string {
	var out []string
	for _, v := range l[name] {
		if w := validWord(v); w != "" {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxValues)]
}

// parsePairs parses lines key=value. The last value of a key counts, and quotes around a value are removed.
func parsePairs(text []string) map[string]string {
	out := map[string]string{}
	for _, t := range text {
		if key, value, ok := strings.Cut(strings.TrimSpace(t), "="); ok {
			out[strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return out
}

// Span is a part of a probe with its start and end, relative to the start of the probe.
type Span struct {
	Host     string // ID
	What     string // "connect", "script", a part of the script; "API" and "etcd", asked through the host
	From, To time.Duration
}

const (
	maxParts  = 32  // number of parts kept
	maxUptime = 1e9 // seconds: 31 years
)

// parseParts returns when each part of the script ran, relative to the first part, with a resolution of 10 ms. It skips
// parts whose name is not a valid word or is a name used for the API or etcd.
func parseParts(l lines) []Span {
	var out []Span
	var first time.Duration
	for _, v := range l["part"] {
		fields := strings.Fields(v)
		if len(fields) != 3 || len(out) == maxParts || !partName(fields[0]) {
			continue
		}
		from, fromErr := strconv.ParseFloat(fields[1], 64)
		to, toErr := strconv.ParseFloat(fields[2], 64)
		if fromErr != nil || toErr != nil || !(0 <= from && from <= to && to <= maxUptime) {
			continue // also rejects NaN
		}
		s := Span{What: fields[0], From: parseDuration(from), To: parseDuration(to)}
		if len(out) == 0 || s.From < first {
			first = s.From
		}
		out = append(out, s)
	}
	for i := range out {
		out[i].From -= first
		out[i].To -= first
	}
	return out
}

func partName(s string) bool { return validWord(s) != "" && s != "API" && s != "etcd" }

func parseDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}

// addSpans adds spans of a host whose times are relative to from.
func (p *prober) addSpans(host string, from time.Time, spans ...Span) {
	offset := from.Sub(p.began)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range spans {
		p.spans = append(p.spans, Span{Host: host, What: s.What, From: s.From + offset, To: s.To + offset})
	}
}

// inOrder sorts spans by their start. Of those with the same start, longer ones come first.
func inOrder(spans []Span) []Span {
	slices.SortStableFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.Host, b.Host))
	})
	return spans
}
