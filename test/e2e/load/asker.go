package load

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// nodePort is the port of the Deployment on every node.
const nodePort = 30085

// asker requests the pods' names of the Deployment through the nodes' port, one node after the other.
type asker struct {
	nodes   []string
	every   time.Duration
	outages Outages
	refused map[string]*Refusal
}

// Refusal records the requests that a node did not answer.
type Refusal struct {
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

func (a *asker) newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
}

func (a *asker) urlOf(n int) string {
	return "http://" + net.JoinHostPort(a.nodes[n%len(a.nodes)], strconv.Itoa(nodePort)) + "/hostname"
}

// awaitEverywhere waits until the Deployment answers at each node.
func (a *asker) awaitEverywhere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := a.newClient()
	for n := range a.nodes {
		for {
			err := fetchURL(ctx, client, a.urlOf(n))
			if err == nil {
				break
			}
			if !awaitNext(ctx, a.every) {
				return fmt.Errorf("the Deployment does not answer at every node: %w", err)
			}
		}
	}
	return nil
}

func (a *asker) askNodes(ctx context.Context) {
	client := a.newClient()
	for n := 0; awaitNext(ctx, a.every); n++ {
		began := time.Now()
		err := fetchURL(ctx, client, a.urlOf(n))
		if ctx.Err() != nil {
			return
		}
		a.outages.noteRequest(began, time.Now(), err)
		if err != nil {
			a.noteRefusal(a.nodes[n%len(a.nodes)], began)
		}
	}
}

func (a *asker) noteRefusal(node string, at time.Time) {
	if a.refused == nil {
		a.refused = map[string]*Refusal{}
	}
	if a.refused[node] == nil {
		a.refused[node] = &Refusal{First: at}
	}
	a.refused[node].Count++
	a.refused[node].Last = at
}

func (a *asker) reportOutages() (Outages, map[string]*Refusal) {
	return a.outages.closedAt(time.Now()), a.refused
}
