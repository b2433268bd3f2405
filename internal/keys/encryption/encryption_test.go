package encryption

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func keyOf(t *testing.T, name, seed string) Key {
	t.Helper()
	k, err := NewKey(name, strings.NewReader(strings.Repeat(seed, keySize)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAConfigurationIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	c := Config{keyOf(t, "kubeone-2", "b"), IdentityKey(), keyOf(t, "kubeone-1", "a")}
	got, err := Parse(c.Text())
	if err != nil || !slices.Equal(got, c) || got.Digest() != c.Digest() {
		t.Errorf("%v, %v", got, err)
	}
	if names := got.Names(); !slices.Equal(names, []string{"kubeone-2", "identity", "kubeone-1"}) {
		t.Errorf("names %v", names)
	}
	if got.Find("kubeone-1") == nil || got.Find("kubeone-3") != nil {
		t.Error("a key is found by its name")
	}
}

func TestForeignConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	good := string(Config{keyOf(t, "kubeone-1", "a")}.Text())
	for name, text := range map[string]string{
		"nothing":        "",
		"no YAML":        "\t{",
		"other kind":     strings.Replace(good, "EncryptionConfiguration", "Pod", 1),
		"more resources": strings.Replace(good, "  - secrets", "  - secrets\n  - configmaps", 1),
		"unknown field":  good + "more: x\n",
		"short key":      good[:len(good)-10] + "\n",
		"another cipher": strings.Replace(good, "secretbox", "aescbc", 1),
		"odd name":       strings.Replace(good, "kubeone-1", "a:b", 1),
		"no providers":   strings.SplitAfter(good, "providers:")[0] + " []\n",
		"one name twice": good + strings.SplitAfter(good, "providers:\n")[1],
		"too long":       good + strings.Repeat("#", longest),
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAKeyShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	k := keyOf(t, "kubeone-1", "a")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		text := fmt.Sprintf(verb+" "+verb, k, Config{k})
		if strings.Contains(text, k.secret) || strings.Contains(text, "YWFh") {
			t.Errorf("%s: %s", verb, text)
		}
	}
	if k.String() != "kubeone-1" || len(k.Digest()) != 64 || IdentityKey().Digest() != "" {
		t.Errorf("%s %s", k, k.Digest())
	}
}

func TestAKeyNeedsANameAndChance(t *testing.T) {
	t.Parallel()
	if _, err := NewKey("a:b", strings.NewReader(strings.Repeat("a", keySize))); err == nil {
		t.Error("a name with a colon would end in the middle of what is in etcd")
	}
	if _, err := NewKey("a", bytes.NewReader(nil)); err == nil {
		t.Error("a key is made of nothing")
	}
}

func TestTwoKeysOfOneNameAreAContradiction(t *testing.T) {
	t.Parallel()
	var known Keyring
	one, other := keyOf(t, "kubeone-1", "a"), keyOf(t, "kubeone-1", "b")
	if err := known.Add("cp-1", Config{one, IdentityKey()}); err != nil {
		t.Fatal(err)
	}
	if err := known.Add("cp-2", Config{one}); err != nil {
		t.Fatal(err)
	}
	var different *DifferentKeysError
	if err := known.Add("cp-3", Config{other}); !errors.As(err, &different) ||
		err.Error() != "cp-1 and cp-3 have different keys named kubeone-1" {
		t.Errorf("%v", err)
	}
	c, err := known.Config([]string{"identity", "kubeone-1"})
	if err != nil || !slices.Equal(c, Config{IdentityKey(), one}) {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := known.Config([]string{"kubeone-2"}); err == nil || known.Has("kubeone-2") {
		t.Error("no host has that key")
	}
}
