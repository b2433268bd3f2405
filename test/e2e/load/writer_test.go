package load

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// shelf is a fake API for ConfigMaps. Answers to the patches in mute are lost. Patches in forget are acknowledged but
// not stored. For those in stale, reads return the previous number.
type shelf struct {
	mu                  sync.Mutex
	maps                map[string]map[string]string
	mute, forget, stale map[string]bool
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var object corev1.ConfigMap
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	name := path.Base(r.URL.Path)
	switch r.Method {
	case http.MethodPost:
		name = object.Name
		s.maps[name] = object.Data
	case http.MethodPatch:
		for key, value := range object.Data {
			if key == "last" && !s.stale[value] || key != "last" && !s.forget[key] {
				s.maps[name][key] = value
			}
		}
		if last := object.Data["last"]; s.mute[last] {
			delete(s.mute, last)
			http.Error(w, "who knows", http.StatusServiceUnavailable)
			return
		}
	}
	data, ok := s.maps[name]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404}`))
		return
	}
	object.APIVersion, object.Kind, object.Name, object.Data = "v1", "ConfigMap", name, data
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// newShelfWriter returns a writer to the fake API.
func newShelfWriter(t *testing.T, s *shelf) *writer {
	t.Helper()
	s.maps = map[string]map[string]string{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return newWriter(client.CoreV1().RESTClient(), 0)
}

// writeCount makes count writes and reads each back.
func (w *writer) writeCount(t *testing.T, count int) {
	t.Helper()
	for n := 1; n <= count; n++ {
		if !w.writeAndRead(t.Context(), n) {
			t.Fatalf("write %d was given up", n)
		}
	}
}

func TestWritesSpanPages(t *testing.T) {
	t.Parallel()
	w := newShelfWriter(t, &shelf{mute: map[string]bool{"7": true}})
	w.writeCount(t, 2*page+3)
	got, err := w.reportWrites(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Acknowledged != 2*page+3 || got.Lost != nil || got.Wrong != nil || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	if got.Retries != 1 {
		t.Errorf("%d retries, want one, of the write whose answer was lost: %v", got.Retries, got.Errors)
	}
}

func TestLostWriteIsFound(t *testing.T) {
	t.Parallel()
	w := newShelfWriter(t, &shelf{forget: map[string]bool{"3": true, "150": true}})
	w.writeCount(t, page+80)
	got, err := w.reportWrites(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{3, 150}, got.Lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}

func TestStaleReadIsWrong(t *testing.T) {
	t.Parallel()
	w := newShelfWriter(t, &shelf{stale: map[string]bool{"2": true}})
	w.writeCount(t, 3)
	if diff := cmp.Diff([]string{"read 1 after 2 was acknowledged"}, w.wrong); diff != "" {
		t.Errorf("wrong reads (-want +got):\n%s", diff)
	}
}
