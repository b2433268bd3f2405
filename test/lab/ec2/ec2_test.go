package ec2

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func newTestServer(t *testing.T) (*Server, string) {
	t.Helper()
	s := NewServer("eu-central-1", map[string]string{"eu-central-1a": "euc1-az2"}, Key{"id", "secret"},
		Instance{ID: "i-1", Name: "a.internal", Address: "127.0.0.1", Zone: "eu-central-1a", State: "running"},
		Instance{ID: "i-2", Name: "b.internal", Address: "127.0.0.2", Zone: "eu-central-1a", State: "stopped"})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// The documented example of a signature.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func TestSignature(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "+
		"SignedHeaders=content-type;host;x-amz-date, "+
		"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")
	key := Key{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	if err := checkSignature(r, nil, key, "us-east-1"); err != nil {
		t.Error(err)
	}
	for name, check := range map[string]error{
		"another secret": checkSignature(r, nil, Key{key.ID, "secret"}, "us-east-1"),
		"another key":    checkSignature(r, nil, Key{"AKID", key.Secret}, "us-east-1"),
		"another region": checkSignature(r, nil, key, "us-west-1"),
		"another body":   checkSignature(r, []byte("a"), key, "us-east-1"),
	} {
		if check == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestInstancesAreSelected(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	for form, want := range map[string]string{
		"InstanceId.1=i-2": "i-2",
		"Filter.1.Name=private-dns-name&Filter.1.Value.1=a.internal":       "i-1",
		"Filter.1.Name=instance-state-name&Filter.1.Value.1=running":       "i-1",
		"InstanceId.1=i-2&InstanceId.2=i-3":                                noInstance,
		"Filter.1.Name=vpc-id&Filter.1.Value.1=vpc-1":                      unknownValue,
		"Filter.1.Name=instance-state-name&Filter.1.Value.1=shutting-down": "",
	} {
		values, err := http.NewRequest(http.MethodPost, "/?Action=DescribeInstances&Version=2016-11-15&"+form, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, problem := s.describeInstances(newCall(values.URL.Query()))
		got := ""
		if problem != nil {
			got = problem.code
		} else if found := answer.(instancesResponse).Instances; len(found) == 1 {
			got = found[0].ID
		}
		if got != want {
			t.Errorf("%s: %q, want %q", form, got, want)
		}
	}
}

// sendRequest sends a request and returns the status and the body.
func sendRequest(t *testing.T, method, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("Action=DescribeInstances"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(tokenHeader, token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s, url := newTestServer(t)
	status, text := sendRequest(t, http.MethodPost, url, "")
	if status != http.StatusBadRequest || !strings.Contains(text, wrongKey) {
		t.Errorf("without a signature: %d %s", status, text)
	}
	status, _ = sendRequest(t, http.MethodGet, url+"/latest/meta-data/instance-id", "")
	if status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	_, token := sendRequest(t, http.MethodPut, url+"/latest/api/token", "")
	if status, id := sendRequest(t, http.MethodGet, url+"/latest/meta-data/instance-id", token); id != "i-1" {
		t.Errorf("with a token: %d %s", status, id)
	}
	if status, _ := sendRequest(t, http.MethodGet, url+"/latest/user-data", token); status != http.StatusNotFound {
		t.Errorf("an unknown path: %d", status)
	}
	if problems := s.Problems(); len(problems) != 1 || problems[0] != "GET /latest/user-data" {
		t.Errorf("%q", problems)
	}
}
