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
	// maxFormerNames limits the number of former endpoints, which stay in the API server certificates.
	maxFormerNames = 256
	maxWordLength  = 253 // characters of a Kubernetes name; digests and run IDs are shorter
)

// Decode decodes the data of the record ConfigMap. It validates each key, because anyone who can write ConfigMaps may
// have changed it. If a key is missing or invalid, its field is zero. Unreadable lists the invalid keys.
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
	if problems := validation.IsDNS1123Subdomain(text); len(problems) > 0 {
		return fmt.Errorf("%.60q is not a valid cluster name", text)
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
		return errors.New("it is not a YAML object")
	}
	return nil
}

// checkWord returns an error unless the text is a single word, such as a digest, an ID or a name.
func checkWord(text string) error {
	isInvalid := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) > maxWordLength || strings.ContainsFunc(text, isInvalid) {
		return fmt.Errorf("%.60q is not a single word", text)
	}
	return nil
}

// decodeWords decodes a JSON object whose values are single words. It fails if one value is invalid.
func decodeWords(text string) (map[string]string, error) {
	var words map[string]string
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(words)) {
		if err := checkWord(words[key]); err != nil {
			return nil, fmt.Errorf("%.60q: %w", key, err)
		}
	}
	return words, nil
}

// parseFormerNames parses names and addresses of the API, which become part of API server certificates. It fails if one
// is invalid or there are too many.
func parseFormerNames(text string) ([]string, error) {
	names := strings.Fields(strings.ToLower(text))
	if len(names) > maxFormerNames {
		return nil, fmt.Errorf("it has %d names; the maximum is %d", len(names), maxFormerNames)
	}
	for _, name := range names {
		address, err := netip.ParseAddr(name)
		if (err != nil || address.Zone() != "") && len(validation.IsDNS1123Subdomain(name)) > 0 &&
			len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			return nil, fmt.Errorf("%.60q is neither a host name nor an IP address", name)
		}
	}
	return names, nil
}
