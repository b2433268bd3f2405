package embedded

import (
	"crypto/sha256"
	_ "embed" // the objects
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"kubeone/internal/model/desired"
)

//go:embed nodelocaldns.yaml
var nodeLocalDNS string

// cacheHealthPort is the port of the cache's health check, at desired.NodeLocalDNSAddress alone.
const cacheHealthPort = 10270

// corefile configures the cache: names of the cluster come from cluster DNS, others from the DNS servers of the host.
// If these do not answer, names that are at most an hour too old are served.
//
// Format: https://coredns.io/manual/configuration/
const corefile = `%[1]s in-addr.arpa ip6.arpa {
    bind %[2]s
    errors
    cache 30 {
        serve_stale 1h
    }
    loop
    forward . %[3]s {
        force_tcp
    }
    health %[2]s:%[4]d
}
. {
    bind %[2]s
    errors
    cache 30 {
        serve_stale 1h
    }
    loop
    forward . /etc/resolv.conf
}
`

// newCacheValues returns the values that fill nodelocaldns.yaml.
func newCacheValues(want desired.Cluster) (values, error) {
	service := want.Network.DNSServiceAddress()
	if service == "" {
		return values{}, errors.New("the cluster has no IPv4 service subnet, which the DNS cache needs here")
	}
	image, err := findDNSImage(want.Artifacts)
	if err != nil {
		return values{}, err
	}
	text := fmt.Sprintf(corefile, want.Network.DNSDomain, desired.NodeLocalDNSAddress, service, cacheHealthPort)
	sum := sha256.Sum256([]byte(text))
	return values{
		Image: image, Address: desired.NodeLocalDNSAddress, HealthPort: cacheHealthPort, OwnerLabel: desired.OwnerLabel,
		Corefile: text, CorefileSum: hex.EncodeToString(sum[:]),
	}, nil
}

// findDNSImage returns the image of cluster DNS, which is also that of the cache.
func findDNSImage(artifacts map[string]desired.Artifacts) (string, error) {
	for _, release := range artifacts {
		for _, image := range release.Images {
			if strings.Contains(image.Name, "/coredns:") {
				return image.Name, nil
			}
		}
	}
	return "", errors.New("the artifacts do not contain the image of cluster DNS")
}
