package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"kubeone/internal/text/redact"
)

const (
	canary = "Canary42SquawksLoudlyIn7Mines"
	keyPEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJcLQwJXzWGxtuFloAoGCCqGSM49\n" +
		"CanaryAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----"
)

func TestSecretsAreRemovedHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString([]byte(keyPEM))
	for name, text := range map[string]string{
		"a PEM key": "before\n" + keyPEM + "\nafter",
		"a PEM key behind prefixes": "Nov 21 cp-1 kubelet[1]: " +
			strings.ReplaceAll(keyPEM, "\n", "\nNov 21 cp-1 kubelet[1]: "),
		"a PEM key on one line":       strings.ReplaceAll(keyPEM, "\n", `\n`),
		"a key without its end":       keyPEM[:len(keyPEM)-35],
		"a key without its beginning": keyPEM[40:],
		"a key in base64":             "data: " + encoded,
		"an age key":                  "AGE-SECRET-KEY-1" + strings.ToUpper(canary),
		"a JWT":                       "token is eyJhbGciOiJSUzI1NiJ9." + canary + "." + canary,
		"a bootstrap token":           "kubeadm join with abcdef.0123456789abcdef",
		"an AWS key":                  "key AKIAIOSFODNN7CANARYX",
		"a proxy's password":          "HTTP_PROXY=http://user:" + canary + "@proxy:3128",
		"a password with an @":        "https://user:a@" + canary + "@proxy:3128/x",
		"a token as a user":           "cloning https://" + canary + "@git.example.com/x",
		"a header":                    "Authorization: Bearer " + canary,
		"a header in a log":           `headers="authorization: [Basic ` + canary + `]" more`,
		"a header in JSON":            `{\"Authorization\":\"Negotiate ` + canary + `\"}`,
		"bearer in words":             "sent bearer " + canary,
		"basic in words":              "sent Basic " + canary,
		"a YAML value":                "db_password: " + canary,
		"a quoted YAML value":         `apiKey: "two words ` + canary + `"`,
		"a JSON value":                `{"secretAccessKey":"` + canary + `"}`,
		"JSON in a string":            `{\"token\":\"` + canary + `\"}`,
		"single quotes":               "password = '" + canary + "'",
		"an environment variable":     "AWS_SECRET_ACCESS_KEY=" + canary,
		"a flag":                      "run --token " + canary + " now",
		"a flag with =":               "run --certificate-key=" + canary,
		"a flag with quotes":          "run --password '" + canary + "'",
		"a kubeconfig's key":          "client-key-data: " + canary,
		"a kubeconfig's certificate":  "client-certificate-data: " + canary,
		"a kubeconfig's CA":           "certificate-authority-data: " + canary,
		"a short word":                "REDIS_PASS=" + canary,
		"a shorter one":               "db-pwd: " + canary,
		"a registry's login":          `{"auths":{"r.example.com":{"auth": "` + canary + `"}}}`,
		"a login in a string":         `{\"auth\":\"` + canary + `\"}`,
		"a cookie":                    "Set-Cookie: " + canary,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redact.New()
			for _, out := range []string{r.Text(text), string(r.JSON([]byte(text)))} {
				lower := strings.ToLower(out)
				if strings.Contains(lower, "canary") || strings.Contains(out, "0123456789abcdef") ||
					strings.Contains(out, encoded[:40]) {
					t.Errorf("%q", out)
				}
				if !strings.Contains(out, redact.Removed) {
					t.Errorf("nothing says that something was removed: %q", out)
				}
			}
		})
	}
}

func TestWhatAReaderNeedsStays(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"registry.k8s.io/kube-apiserver:v1.36.3@" +
			"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"ssh-ed25519 SHA256:uNiVztksCsDhcc0u9e8BrA9ZYLLsWLzbgxIoZYEXAWM",
		"/var/lib/kubelet/pods/0b5e7c1c-1d0e-4a9b-8a3f-2d5a0b0d8f1e/" +
			"volumes/kubernetes.io~projected/kube-api-access-abcde",
		"sshPrivateKeyFile: ~/.ssh/id_ed25519", "--discovery-token-ca-cert-hash sha256:0011",
		"automountServiceAccountToken: false",
		"secretName: default-token", "basic authentication is off", "-----BEGIN CERTIFICATE-----",
		"https://api.example.com:6443/readyz: connection refused",
		"etcd member 8e9e05c52164694d at https://10.0.0.1:2380",
		"KubeOneUpgraded node/cp-1: upgraded to 1.36.3",
		"Nov 21 04:17:15 cp-1 kubelet[812]: E1121 04:17:15.123456 node not found",
	} {
		if got := redact.New().Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestKnownSecretsAreFoundAnywhere(t *testing.T) {
	t.Parallel()
	const secret = `pa"ss wörd/1`
	r := redact.New("", "abc", secret, secret+"-longer")
	quoted, err := json.Marshal(map[string]string{"note": secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"it is " + secret, "it is " + secret + "-longer, too", string(quoted), "?q=pa%22ss+w%C3%B6rd%2F1",
		"auths: " + base64.StdEncoding.EncodeToString([]byte(secret)),
	} {
		got := r.Text(text) + string(r.JSON([]byte(text)))
		if strings.Contains(got, "ss w") || strings.Contains(got, "rd") || strings.Contains(got, "longer") ||
			!strings.Contains(got, redact.Removed) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := r.Text("abc"); got != "abc" {
		t.Errorf("a short one makes %q", got)
	}
}

func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	doc := `{"password":"` + canary + `","tokens":["` + canary +
		`"],"n":12345678901234567890,"ok":true,"secretName":"x",` +
		`"deep":[{"auth":"` + canary + `","author":"me","text":"--token ` + canary + ` <&>"}],"empty":{"token":""}}`
	var b strings.Builder
	b.WriteString(doc + "\n" + doc + "\nno JSON, password=" + canary +
		"\n{\"line\":\"-----BEGIN PRIVATE KEY-----\"}\n{\"line\":\"" +
		canary + "\"}\n{\"line\":\"-----END PRIVATE KEY-----\"}\n" + doc)
	for _, in := range []string{doc, b.String()} {
		out := string(redact.New().JSON([]byte(in)))
		if strings.Contains(out, canary) {
			t.Errorf("got %s", out)
		}
		for _, kept := range []string{"12345678901234567890", `"ok"`, "me", "<&>", `"secretName"`} {
			if !strings.Contains(out, kept) {
				t.Errorf("%s is gone from %s", kept, out)
			}
		}
		if in == doc && !json.Valid([]byte(out)) {
			t.Errorf("no JSON any more: %s", out)
		}
		first, _, _ := strings.Cut(out, "\n")
		if in != doc && !json.Valid([]byte(first)) {
			t.Errorf("no JSON any more: %s", first)
		}
	}
}

// FuzzText checks that a PEM key, a token and a known secret are removed in any surroundings.
func FuzzText(f *testing.F) {
	f.Add("a", "b")
	f.Add("-----BEGIN", "\"}\n")
	f.Add("token: ", "\\")
	f.Fuzz(func(t *testing.T, before, after string) {
		r := redact.New("known-" + canary)
		for _, text := range []string{before + keyPEM + after, before + " known-" + canary + after} {
			for _, out := range []string{r.Text(text), string(r.JSON([]byte(text)))} {
				if strings.Contains(out, canary) || strings.Contains(out, "CanaryAwEHoUQDQgAE") {
					t.Fatalf("%q became %q", text, out)
				}
			}
		}
	})
}
