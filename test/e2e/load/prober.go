package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// probeTimeout is the time in which an available API answers.
const probeTimeout = time.Second

// prober requests an object that must come from etcd, with a new connection each time, like a new client.
type prober struct {
	client  *http.Client
	url     string
	every   time.Duration
	outages Outages
}

func newProber(config *rest.Config, every time.Duration) (*prober, error) {
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}
	return &prober{
		client: &http.Client{Transport: transport, Timeout: probeTimeout},
		url:    config.Host + "/api/v1/namespaces/" + namespace,
		every:  every,
	}, nil
}

func (p *prober) probeAPI(ctx context.Context) {
	for awaitNext(ctx, p.every) {
		began := time.Now()
		err := fetchURL(ctx, p.client, p.url)
		if ctx.Err() != nil {
			return
		}
		p.outages.noteRequest(began, time.Now(), err)
	}
}

// fetchURL makes one request and expects status 200.
func fetchURL(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, answer.Status)
	}
	return nil
}
