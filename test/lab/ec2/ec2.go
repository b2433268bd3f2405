// Package ec2 is a fake of Amazon's EC2 API and of the metadata service of instances, for a cloud controller manager on
// the hosts of a lab. It answers a few calls, and refuses what it does not know.
//
// Format: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html
package ec2

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Instance is a virtual machine. Name is its private DNS name, and Address its private address. State is like
// "running".
type Instance struct {
	ID, Name, Address, Zone, Type, State string
	Tags                                 map[string]string
}

// Key is an access key.
type Key struct{ ID, Secret string }

// Server answers requests for the instances of one region. It is safe for concurrent use.
type Server struct {
	region string
	zones  map[string]string

	mu        sync.Mutex
	key       Key
	instances []Instance
	calls     map[string]int
	problems  []string
}

// NewServer returns a server that accepts one key. zones maps the name of each availability zone to its ID.
func NewServer(region string, zones map[string]string, key Key, instances ...Instance) *Server {
	return &Server{
		region: region, zones: maps.Clone(zones), key: key, instances: slices.Clone(instances), calls: map[string]int{},
	}
}

// SetKey replaces the key.
func (s *Server) SetKey(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// SetState changes the state of an instance. It does nothing if there is no such instance.
func (s *Server) SetState(id, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.instances {
		if s.instances[i].ID == id {
			s.instances[i].State = state
		}
	}
}

// Calls returns the number of answered calls of an action, such as "DescribeInstances".
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// Problems returns the requests that were refused, without those with a wrong key.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// apiError is an error of the API. Its code is documented.
type apiError struct{ code, message string }

func (e *apiError) Error() string { return e.code + ": " + e.message }

const (
	wrongKey       = "AuthFailure"
	unknownAction  = "InvalidAction"
	unknownValue   = "InvalidParameterValue"
	unknownSetting = "UnknownParameter"
	noInstance     = "InvalidInstanceID.NotFound"
)

// maxBody is the maximum size of a request in bytes.
const maxBody = 1 << 20

// ServeHTTP answers the API at "/", and the metadata service below "/latest/".
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/latest/") {
		s.serveMetadata(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, problem := s.answerCall(r, body)
	if problem != nil {
		if problem.code != wrongKey {
			s.problems = append(s.problems, fmt.Sprintf("%s %s: %v", r.Method, body, problem))
		}
		w.WriteHeader(http.StatusBadRequest)
		answer = errorResponse{Code: problem.code, Message: problem.message, RequestID: requestID}
	}
	text, err := xml.Marshal(answer)
	if err != nil {
		panic("ec2: a response is not plain data: " + err.Error())
	}
	_, _ = w.Write(text)
}

// answerCall returns the response to a call of the API.
func (s *Server) answerCall(r *http.Request, body []byte) (any, *apiError) {
	values, err := url.ParseQuery(string(body))
	if r.Method != http.MethodPost || r.URL.Path != "/" || err != nil {
		return nil, &apiError{unknownAction, "want a form at /"}
	}
	if err := checkSignature(r, body, s.key, s.region); err != nil {
		return nil, &apiError{wrongKey, err.Error()}
	}
	call := newCall(values)
	var answer any
	var problem *apiError
	switch call.action {
	case "DescribeInstances":
		answer, problem = s.describeInstances(call)
	case "DescribeAvailabilityZones":
		answer = s.describeZones()
	case "DescribeInstanceTopology":
		call.take("InstanceId")
		answer = topologyResponse{} // as for types of instances that have none
	default:
		return nil, &apiError{unknownAction, "the fake does not know " + call.action}
	}
	if problem == nil && len(call.values) > 0 {
		problem = &apiError{unknownSetting, fmt.Sprintf("the fake does not know %v", slices.Sorted(maps.Keys(call.values)))}
	}
	if problem == nil {
		s.calls[call.action]++
	}
	return answer, problem
}

// call is an action with those parameters that were not taken.
type call struct {
	action string
	values map[string]string
}

func newCall(form url.Values) call {
	c := call{action: form.Get("Action"), values: map[string]string{}}
	for key := range form {
		if key != "Action" && key != "Version" {
			c.values[key] = form.Get(key)
		}
	}
	return c
}

// take removes a parameter or a list of them, like InstanceId.1, and returns the values.
func (c call) take(name string) []string {
	var out []string
	rule := regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `(\.[0-9]+)?$`)
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		if rule.MatchString(key) {
			out = append(out, c.values[key])
			delete(c.values, key)
		}
	}
	return out
}

// describeInstances returns the instances with these IDs, or all instances that the filters select.
func (s *Server) describeInstances(c call) (any, *apiError) {
	c.take("MaxResults") // there are only a few instances
	ids := c.take("InstanceId")
	found := slices.Clone(s.instances)
	if len(ids) > 0 {
		found = slices.DeleteFunc(found, func(i Instance) bool { return !slices.Contains(ids, i.ID) })
		if len(found) < len(ids) {
			return nil, &apiError{noInstance, fmt.Sprintf("the instance IDs %v do not all exist", ids)}
		}
	}
	for n := 1; ; n++ {
		prefix := fmt.Sprintf("Filter.%d.", n)
		name := c.take(prefix + "Name")
		if len(name) == 0 {
			return newInstancesResponse(found), nil
		}
		values := c.take(prefix + "Value")
		field, known := filters()[name[0]]
		if !known {
			return nil, &apiError{unknownValue, "the fake does not know the filter " + name[0]}
		}
		found = slices.DeleteFunc(found, func(i Instance) bool { return !slices.Contains(values, field(i)) })
	}
}

// filters returns the known filters of instances.
func filters() map[string]func(Instance) string {
	return map[string]func(Instance) string{
		"private-dns-name":    func(i Instance) string { return i.Name },
		"instance-state-name": func(i Instance) string { return i.State },
	}
}

// describeZones returns all zones of the region.
func (s *Server) describeZones() any {
	var out zonesResponse
	for _, name := range slices.Sorted(maps.Keys(s.zones)) {
		out.Zones = append(out.Zones, zoneItem{
			Name: name, ID: s.zones[name], Region: s.region, State: "available", Type: "availability-zone",
		})
	}
	return out
}
