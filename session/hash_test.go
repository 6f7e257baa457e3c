package session

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func TestScopesShareNothing(t *testing.T) {
	secret := Secret("a secret of the server")
	scopes := []Scope{
		{}, {Tenant: "a"}, {Tenant: "b"}, {Tenant: "a", Key: "k"}, {Tenant: "a", Credential: "k"}, {Tenant: "ak"},
		{Tenant: "a", Credential: "c", Key: "k"}, {Tenant: "a", Credential: "ck"}, {Tenant: "", Credential: "a", Key: "k"},
	}
	seeds, sessions := map[Hash]Scope{}, map[SessionID]Scope{}
	for _, s := range scopes {
		seed, id := secret.Seed(s), secret.SessionID(s)
		if other, ok := seeds[seed]; ok {
			t.Errorf("%+v and %+v have one seed", s, other)
		}
		if other, ok := sessions[id]; ok {
			t.Errorf("%+v and %+v have one session id", s, other)
		}
		seeds[seed], sessions[id] = s, s
		if Secret("another secret").Seed(s) == seed {
			t.Errorf("%+v: the seed does not depend on the secret", s)
		}
	}
}

func TestChainDependsOnEverythingBefore(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		messages := drawMessages(t)
		seed := Hash{1}
		h := NewHistory(seed, messages)
		at := rapid.IntRange(0, len(messages)-1).Draw(t, "changed")
		changed := append([]Message(nil), messages...)
		changed[at].Digest[0]++
		g := NewHistory(seed, changed)
		for p := 0; p <= h.Len(); p++ {
			covers := messages[at].Kind == System || h.Pos(at) > p
			if (h.Chain[p] == g.Chain[p]) != covers {
				t.Fatalf("message %d changed: position %d equal is %v", at, p, !covers)
			}
		}
		if h.Len() > 0 && NewHistory(Hash{2}, messages).Head() == h.Head() {
			t.Fatal("the chain does not depend on its seed")
		}
	})
}

func drawMessages(t *rapid.T) []Message {
	kinds := rapid.SampledFrom([]Kind{System, User, Agent, Action, Observation})
	n := rapid.IntRange(1, 40).Draw(t, "messages")
	out := make([]Message, n)
	for i := range out {
		out[i] = Message{Kind: kinds.Draw(t, "kind"), Raw: []byte{byte(i)}}
		out[i].Digest = Hash{byte(i), byte(i >> 8), 7}
		switch out[i].Kind {
		case Action:
			out[i].Calls = []string{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "call")}
			out[i].Sealed = rapid.IntRange(0, 3).Draw(t, "sealed") == 0
		case Observation:
			out[i].Result = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "result")
		}
	}
	return out
}
