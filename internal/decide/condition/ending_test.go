package condition

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

const day = 24 * time.Hour

// A moment, a certificate that expires so many days later, and a CA that does.
func certificate(name string, left, life time.Duration) observed.Certificate {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	return observed.Certificate{Name: name, NotBefore: now.Add(left - life), NotAfter: now.Add(left), Left: left}
}

func TestWhatEndsIsWhatKubeadmRenewsWithLessThan90DaysAndAThirdOfItsLife(t *testing.T) {
	t.Parallel()
	const year = 365 * day
	for name, c := range map[string]struct {
		of       observed.Certificate
		validity time.Duration
		ca       time.Duration
		want     bool
	}{
		"a fresh one":                      {certificate("apiserver", year, year), year, 10 * year, false},
		"just 90 days left":                {certificate("apiserver", 90*day, year), year, 10 * year, false},
		"less":                             {certificate("apiserver", 90*day-1, year), year, 10 * year, true},
		"of etcd":                          {certificate("etcd/server", 10*day, year), year, 10 * year, true},
		"in a kubeconfig":                  {certificate("admin.conf", 10*day, year), year, 10 * year, true},
		"the kubelet's":                    {certificate("kubelet-client", 10*day, year), year, 10 * year, false},
		"an authority":                     {certificate("front-proxy-ca", 10*day, year), year, 10 * year, false},
		"custom":                           {certificate("audit-webhook", 10*day, year), year, 10 * year, false},
		"short-lived, new":                 {certificate("apiserver", 30*day, 30*day), 30 * day, 10 * year, false},
		"short-lived, a third left":        {certificate("apiserver", 10*day, 30*day), 30 * day, 10 * year, false},
		"short-lived, less":                {certificate("apiserver", 10*day-1, 30*day), 30 * day, 10 * year, true},
		"short-lived, begins with its CA":  {certificate("apiserver", 30*day, 3*year), 30 * day, 10 * year, false},
		"short-lived, by another issuer":   {certificate("apiserver", 30*day, 60*day), year, 10 * year, false},
		"ends with its authority":          {certificate("apiserver", 20*day, year), year, 20 * day, false},
		"expired, which is for the repair": {certificate("apiserver", 0, year), year, 10 * year, false},
	} {
		is := observed.Host{Certificates: []observed.Certificate{
			c.of, certificate("ca", c.ca, 10*year), certificate("etcd/ca", c.ca, 10*year),
		}}
		var want []string
		if c.want {
			want = []string{c.of.Name}
		}
		if diff := cmp.Diff(want, Ending(&is, c.validity)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A certificate that was just renewed is left alone, unless all must be renewed.
func TestARenewalIsForWhatGainsMoreThanAnHour(t *testing.T) {
	t.Parallel()
	const year = 365 * day
	expired := certificate("scheduler.conf", 0, year)
	expired.Expired = true
	is := observed.Host{Certificates: []observed.Certificate{
		certificate("apiserver", year-30*time.Minute, 3*year), certificate("etcd/peer", year-2*time.Hour, 3*year),
		certificate("ca", 9*year, 10*year), certificate("kubelet-client", 100*day, year), expired,
	}}
	if diff := cmp.Diff([]string{"etcd/peer", "scheduler.conf"}, Renewable(&is, year, false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"apiserver", "etcd/peer", "scheduler.conf"}, Renewable(&is, year, true)); diff != "" {
		t.Error(diff)
	}
	// For one that lives an hour, the third counts.
	is.Certificates = []observed.Certificate{
		certificate("apiserver", 50*time.Minute, time.Hour), certificate("admin.conf", 39*time.Minute, time.Hour),
	}
	if diff := cmp.Diff([]string{"admin.conf"}, Renewable(&is, time.Hour, false)); diff != "" {
		t.Error(diff)
	}
}
