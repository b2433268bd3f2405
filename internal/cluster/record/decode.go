package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

const (
	// mostFormerNames limits the former endpoints, which stay in certificates of API servers.
	maxFormerNames = 256
	maxWordLength  = 253 // characters of a Kubernetes name; digests and run IDs are shorter
)

// Decode reads the data of the ConfigMap. It validates each key, since anyone who can write ConfigMaps may have changed
// it. A missing key leaves its field zero. So does an invalid one, which is listed in Unreadable.
func Decode(data map[string]string) *Record {
	r := &Record{Addons: map[string]string{}}
	for key, decode := range map[string]func(text string) error{
		observed.RecordCluster:        decodeField(&r.Cluster, checkSubdomain),
		observed.RecordManifestDigest: decodeField(&r.ManifestDigest, checkWord),
		observed.RecordRunID:          decodeField(&r.RunID, checkWord),
		observed.RecordHardening:      decodeField(&r.Hardening, checkHardening),
		observed.RecordManifest:       decodeField(&r.Manifest, checkManifest),
		observed.RecordFormerEndpoints: func(text string) (err error) {
			r.FormerEndpoints, err = parseFormerNames(text)
			return err
		},
		observed.RecordNodes: func(text string) (err error) {
			r.Nodes, err = decodeWords(text)
			return err
		},
		observed.RecordAddons: func(text string) error {
			read, err := decodeWords(text)
			maps.Copy(r.Addons, read)
			return err
		},
		observed.RecordHistory: func(text string) error {
			var runs []Run
			if err := json.Unmarshal([]byte(text), &runs); err != nil {
				return err
			}
			r.History = runs
			return nil
		},
	} {
		text := data[key]
		if text == "" {
			continue
		}
		if err := decode(text); err != nil {
			if r.Unreadable == nil {
				r.Unreadable = map[string]string{}
			}
			r.Unreadable[key] = err.Error()
		}
	}
	return r
}

// decodeField returns a decoder that sets the field to the text if check accepts it.
func decodeField(field *string, check func(string) error) func(string) error {
	return func(text string) error {
		if err := check(text); err != nil {
			return err
		}
		*field = text
		return nil
	}
}

func checkSubdomain(text string) error {
	if wrong := validation.IsDNS1123Subdomain(text); len(wrong) > 0 {
		return fmt.Errorf("%.60q is not a cluster's name", text)
	}
	return nil
}

func checkHardening(text string) error {
	if text != desired.HardeningBaseline && text != desired.HardeningNone {
		return fmt.Errorf("%.60q is neither %s nor %s", text, desired.HardeningBaseline, desired.HardeningNone)
	}
	return nil
}

func checkManifest(text string) error {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return errors.New("it is not a manifest in YAML")
	}
	return nil
}

// checkWord checks a digest, an ID or a name.
func checkWord(text string) error {
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) > maxWordLength || strings.ContainsFunc(text, strange) {
		return fmt.Errorf("%.60q is not one word", text)
	}
	return nil
}

// decodeWords reads a JSON object of words. One invalid word makes it fail.
func decodeWords(text string) (map[string]string, error) {
	var read map[string]string
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(read)) {
		if err := checkWord(read[key]); err != nil {
			return nil, fmt.Errorf("%.60q: %w", key, err)
		}
	}
	return read, nil
}

// parseFormerNames reads names and addresses of the API, which go into certificates of API servers. It fails if one is
// invalid or there are too many.
func parseFormerNames(text string) ([]string, error) {
	names := strings.Fields(strings.ToLower(text))
	if len(names) > maxFormerNames {
		return nil, fmt.Errorf("it has %d names, more than %d", len(names), maxFormerNames)
	}
	for _, name := range names {
		address, err := netip.ParseAddr(name)
		if (err != nil || address.Zone() != "") && len(validation.IsDNS1123Subdomain(name)) > 0 &&
			len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			return nil, fmt.Errorf("%.60q is neither a host's name nor an IP address", name)
		}
	}
	return names, nil
}
