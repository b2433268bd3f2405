package authority

import (
	"bytes"
	"slices"
	"testing"
)

func caPair(t *testing.T, name string) Pair {
	t.Helper()
	p, err := ParsePair(ca(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// follower returns the next CA and the succession that includes it.
func follower(t *testing.T, former Pair, succession []byte) (Pair, []byte) {
	t.Helper()
	next, err := New(made, former.Public.Text())
	if err != nil {
		t.Fatal(err)
	}
	word, err := SignFollower(next, former)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := SignFollower(next, former); err != nil || !bytes.Equal(again, word) {
		t.Errorf("it is another one the second time: %v", err)
	}
	return next, AddSuccession(succession, former.Public, word)
}

func TestFormerCALeadsToSuccessors(t *testing.T) {
	t.Parallel()
	first := caPair(t, "kubernetes")
	second, succession := follower(t, first, nil)
	third, succession := follower(t, second, succession)
	other := caPair(t, "kubernetes")
	if got := Followers(first.ID(), succession); !slices.Equal(got, []string{first.ID(), second.ID(), third.ID()}) {
		t.Errorf("followers of the first: %v", got)
	}
	if got := Followers(third.ID(), succession); !slices.Equal(got, []string{third.ID()}) {
		t.Errorf("a CA is known by one that follows it: %v", got)
	}
	if got := Followers(other.ID(), succession); !slices.Equal(got, []string{other.ID()}) {
		t.Errorf("followers of a foreign CA: %v", got)
	}
	both := first.Public.With(third.Public)
	if !IsKnown(first.ID(), both.Text(), succession) || IsKnown(third.ID(), both.Text(), succession) {
		t.Error("a file is taken for known that has one that is not, or the other way round")
	}
	if IsKnown(first.ID(), first.Public.With(other.Public).Text(), succession) || IsKnown(first.ID(), nil, succession) {
		t.Error("a file with a foreign CA, or without any, is taken for known")
	}
}

// Only the former key can sign for a successor.
func TestOnlyFormerKeySignsSuccessor(t *testing.T) {
	t.Parallel()
	first, poser := caPair(t, "kubernetes"), caPair(t, "kubernetes")
	_, theirs := follower(t, poser, nil)
	for name, succession := range map[string][]byte{
		"no file": nil, "no PEM": []byte("x"), "another's": theirs,
		"another's, beside the certificate that is known": append(first.Public.Text(), theirs...),
		"not signed by it": append(first.Public.Text(), poser.Public.Text()...),
	} {
		if got := Followers(first.ID(), succession); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The file stays small and keeps the latest CAs.
func TestASuccessionOfMany(t *testing.T) {
	t.Parallel()
	now := caPair(t, "kubernetes")
	var succession []byte
	var ids []string
	for range 12 {
		ids = append(ids, now.ID())
		now, succession = follower(t, now, succession)
	}
	if n := len(parseBlocks(succession)); n == 0 || n > maxKeys {
		t.Errorf("%d certificates", n)
	}
	if got := Followers(ids[len(ids)-3], succession); !slices.Contains(got, now.ID()) {
		t.Error("the last but two does not lead to the present one")
	}
}
