package ec2

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
)

const (
	metadataToken  = "token-of-the-metadata-service"
	tokenHeader    = "X-Aws-Ec2-Metadata-Token"
	lifetimeHeader = tokenHeader + "-Ttl-Seconds"
)

// serveMetadata answers an instance about itself. The instance is known by its address. Requests need a token, as in
// version 2 of the service.
//
// Format: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
func (s *Server) serveMetadata(w http.ResponseWriter, r *http.Request) {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	n := slices.IndexFunc(s.instances, func(i Instance) bool { return i.Address == address })
	if n < 0 {
		http.Error(w, "no instance has the address "+address, http.StatusNotFound)
		return
	}
	request := r.Method + " " + r.URL.Path
	if request == "PUT /latest/api/token" {
		w.Header().Set(lifetimeHeader, r.Header.Get(lifetimeHeader))
		_, _ = w.Write([]byte(metadataToken))
		return
	}
	if r.Header.Get(tokenHeader) != metadataToken {
		http.Error(w, "the request has no token", http.StatusUnauthorized)
		return
	}
	switch request {
	case "GET /latest/meta-data/instance-id":
		_, _ = w.Write([]byte(s.instances[n].ID))
	case "GET /latest/dynamic/instance-identity/document":
		_ = json.NewEncoder(w).Encode(s.identityOf(s.instances[n]))
	default:
		s.problems = append(s.problems, request)
		http.NotFound(w, r)
		return
	}
	s.calls["metadata"]++
}

// identityOf returns the identity document of an instance.
func (s *Server) identityOf(i Instance) map[string]string {
	return map[string]string{
		"instanceId": i.ID, "instanceType": i.Type, "availabilityZone": i.Zone, "region": s.region, "privateIp": i.Address,
		"accountId": "000000000000", "architecture": "x86_64", "imageId": "ami-00000000000000001",
		"pendingTime": "2026-01-01T00:00:00Z", "version": "2017-09-30",
	}
}
