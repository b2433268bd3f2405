package v1beta2

import (
	"strings"
	"testing"
)

func TestRepositoriesOfImages(t *testing.T) {
	t.Parallel()
	for repository, says := range map[string]string{
		"":                                   "",
		"registry.example.com":               "",
		"registry.example.com/coredns":       "",
		"registry.example.com:5000/a/b-c__d": "",
		"10.0.0.1:5000":                      "",
		"[fd00::1]:5000/dns":                 "",
		"localhost/dns":                      "",
		"mirror:5000":                        "",
		"docker.io/coredns":                  "",

		"https://registry.example.com/dns":                        "contains a scheme",
		"registry.example.com/coredns:v1":                         "contains a tag",
		"registry.example.com:5000/a:v1/b":                        "contains a tag",
		"registry.example.com/a@sha256:00":                        "contains an @",
		"user:secret@registry.example.com/a":                      "contains an @",
		"coredns":                                                 "does not name a registry",
		"coredns/coredns":                                         "does not name a registry",
		"docker.io":                                               "does not name a docker.io user",
		"index.docker.io/coredns":                                 "is an alias of docker.io",
		"registry.example.com/":                                   "is not a valid image repository",
		"registry.example.com//dns":                               "is not a valid image repository",
		"registry.example.com/dns/":                               "is not a valid image repository",
		"registry.example.com/../dns":                             "is not a valid image repository",
		"registry.example.com/Dns":                                "is not a valid image repository",
		"registry.example.com/a b":                                "is not a valid image repository",
		" registry.example.com/dns":                               "is not a valid image repository",
		"registry.example.com/a\nb":                               "is not a valid image repository",
		"registry.example.com:65536/dns":                          "is not a valid image repository",
		"registry.example.com:x/dns":                              "is not a valid image repository",
		"registry.example.com:/dns":                               "is not a valid image repository",
		"[fd00::1/dns":                                            "is not a valid image repository",
		"/dns":                                                    "is not a valid image repository",
		"registry.example.com/$(reboot)":                          "is not a valid image repository",
		"r.example.com/" + strings.Repeat("a", longestRepository): "is not a valid image repository",
	} {
		f := &findings{}
		f.imageRepository("at", "x", repository)
		if (says == "") != (len(f.list) == 0) || len(f.list) > 1 ||
			says != "" && !strings.HasPrefix(f.list[0].Message, says) {
			t.Errorf("%q: got %+v, want %q", repository, f.list, says)
		}
		if len(f.list) > 0 && strings.Contains(f.list[0].Message, "secret") {
			t.Errorf("%q is repeated", repository)
		}
	}
}
