package ec2

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// authorization matches the header of a signed request.
var authorization = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/]+)/([0-9]{8}/([^/]+)/[a-z0-9]+/aws4_request), SignedHeaders=([a-z0-9;-]+), ` +
		`Signature=([0-9a-f]{64})$`)

// checkSignature returns an error unless the key signed the request for the region.
//
// Format: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func checkSignature(r *http.Request, body []byte, key Key, region string) error {
	found := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil {
		return errors.New("the request is not signed")
	}
	id, scope, where, headers, signature := found[1], found[2], found[3], found[4], found[5]
	switch {
	case id != key.ID:
		return fmt.Errorf("the access key %s does not exist", id)
	case where != region:
		return fmt.Errorf("the region is %s, not %s", region, where)
	}
	canonical := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery}
	for _, name := range strings.Split(headers, ";") {
		canonical = append(canonical, name+":"+headerOf(r, name))
	}
	canonical = append(canonical, "", headers, digestOf(body))
	text := strings.Join([]string{
		"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, digestOf([]byte(strings.Join(canonical, "\n"))),
	}, "\n")
	secret := []byte("AWS4" + key.Secret)
	for _, part := range append(strings.Split(scope, "/"), text) {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(part))
		secret = mac.Sum(nil)
	}
	if hex.EncodeToString(secret) != signature {
		return errors.New("the signature does not match the secret key")
	}
	return nil
}

// headerOf returns a header as it was signed. Some headers are fields of the request.
func headerOf(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	return strings.Join(strings.Fields(strings.Join(r.Header.Values(name), ",")), " ")
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
