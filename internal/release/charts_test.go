package release

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"kubeone/internal/addons/chart"
)

const chartUser, chartPassword = "puller", "secret"

// withPassword answers 401 to requests without the password.
func withPassword(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != chartUser || password != chartPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const chartIndex = `apiVersion: v1
entries:
  web:
  - {name: web, version: 1.0.0, urls: [charts/web-1.0.0.tgz]}
  - {name: web, version: 1.2.0, urls: [charts/web-1.2.0.tgz]}
  - {name: web, version: 2.0.0-rc.1, urls: [charts/web-2.tgz]}
  - null
  altered:
  - {name: altered, version: 1.0.0, urls: [charts/web-1.0.0.tgz], digest: "0000"}
  huge:
  - {name: huge, version: 1.0.0, urls: [huge.tgz]}
  away:
  - {name: away, version: 1.0.0, urls: ["AWAY/charts/web-1.0.0.tgz"]}
`

func TestChartsOfARepository(t *testing.T) {
	t.Parallel()
	var asked []string // with credentials
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, found := r.BasicAuth(); found {
			t.Error("another host got the credentials")
		}
		_, _ = w.Write([]byte("chart from another host"))
	}))
	defer away.Close()
	server := httptest.NewTLSServer(withPassword(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch {
		case r.URL.Path == "/stable/index.yaml":
			_, _ = w.Write([]byte(strings.ReplaceAll(chartIndex, "AWAY", away.URL)))
		case r.URL.Path == "/stable/huge.tgz":
			_, _ = io.Copy(w, bytes.NewReader(make([]byte, chart.MaxArchiveBytes+1)))
		case strings.HasPrefix(r.URL.Path, "/stable/charts/"):
			_, _ = w.Write([]byte("chart " + strings.TrimPrefix(r.URL.Path, "/stable/charts/")))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})))
	defer server.Close()
	from := func(name, version string) chart.Source {
		return chart.Source{
			RepoURL: server.URL + "/stable", Name: name, Version: version, Insecure: true,
			Username: chartUser, Password: chartPassword,
		}
	}
	src := Source{RetryPause: 1}
	for _, c := range []struct{ name, version, want, fails string }{
		{"web", "1.0.0", "chart web-1.0.0.tgz", ""},
		{"web", "", "chart web-1.2.0.tgz", ""},
		{"web", "~1.0", "chart web-1.0.0.tgz", ""},
		{"web", "2.0.0-rc.1", "chart web-2.tgz", ""},
		{"web", "v1.2.0", "chart web-1.2.0.tgz", ""},
		{"web", "1.0.1", "", "version =1.0.1 is not among"},
		{"other", "", "", "is not among the 0 available ones"},
		{"web", "not a version", "", "improper constraint"},
		{"altered", "", "", "but its publisher lists 0000"},
		{"huge", "", "", "larger than 20 MiB"},
		{"away", "", "chart from another host", ""},
	} {
		got, err := src.FetchChart(t.Context(), from(c.name, c.version))
		if string(got) != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s %s: %.40q, %v", c.name, c.version, got, err)
		}
		if missing := strings.Contains(c.fails, "is not among"); errors.Is(err, ErrNoChart) != missing {
			t.Errorf("%s %s: missing %v, %v", c.name, c.version, missing, err)
		}
	}
	if len(asked) == 0 {
		t.Error("nothing was asked with credentials")
	}
	wrong := from("web", "")
	wrong.Password = "wrong"
	if _, err := src.FetchChart(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "HTTP 401") ||
		errors.Is(err, ErrNoChart) {
		t.Errorf("with a wrong password: %v", err)
	}
	verified := from("web", "")
	verified.Insecure = false
	if _, err := src.FetchChart(t.Context(), verified); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with an unknown certificate: %v", err)
	}
	plain := chart.Source{URL: "http://127.0.0.1/web.tgz"}
	if _, err := src.FetchChart(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "does not use HTTPS") {
		t.Errorf("over plain HTTP: %v", err)
	}
	gone := from("", "")
	gone.URL, gone.RepoURL = server.URL+"/gone.tgz", ""
	if _, err := src.FetchChart(t.Context(), gone); !errors.Is(err, ErrNoChart) {
		t.Errorf("of a URL that does not exist: %v", err)
	}
}

func TestChartsOfARegistry(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(withPassword(registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	push := func(repository, tag, media, content string) {
		t.Helper()
		ref, err := name.NewTag(host+"/"+repository+":"+tag, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		img := mutate.MediaType(empty.Image, "application/vnd.oci.image.manifest.v1+json")
		img, err = mutate.AppendLayers(img, static.NewLayer([]byte(content), "application/"+
			"vnd.cncf.helm.chart.content.v1.tar+"+"gzip"))
		if media != "" {
			img, err = mutate.AppendLayers(empty.Image, static.NewLayer([]byte(content), "application/x-other"))
		}
		if err != nil {
			t.Fatal(err)
		}
		auth := remote.WithAuth(&authn.Basic{Username: chartUser, Password: chartPassword})
		if err := remote.Write(ref, img, auth, remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	push("charts/web", "1.0.0", "", "first")
	push("charts/web", "1.1.0_build.5", "", "second")
	push("charts/image", "1.0.0", "other", "no chart")
	src := Source{RetryPause: 1}
	for _, c := range []struct{ name, version, want, fails string }{
		{"web", "1.0.0", "first", ""},
		{"web", "", "second", ""},
		{"web", "1.1.0+build.5", "second", ""},
		{"web", "3.0.0", "", "no such chart"},
		{"none", "1.0.0", "", "no such chart"},
		{"image", "1.0.0", "", "is not a Helm chart"},
	} {
		got, err := src.FetchChart(t.Context(), chart.Source{
			URL: "oci://" + host + "/charts/" + c.name, Version: c.version, Insecure: true,
			Username: chartUser, Password: chartPassword,
		})
		if string(got) != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s %s: %q, %v", c.name, c.version, got, err)
		}
	}
}
