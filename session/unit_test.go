package session

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// parseMessages parses a history in short notation: s u g (system, user, agent), aXY (an action with calls X and Y), AXY
// (the same with sealed reasoning), oX (the result of X). g<X and aY<X also answer X.
func parseMessages(short string) []Message {
	var out []Message
	for i, w := range strings.Fields(short) {
		m := Message{Raw: []byte(fmt.Sprintf("%q", w)), Digest: Hash{byte(i), w[0], byte(len(w))}}
		w, m.Result, _ = strings.Cut(w, "<")
		switch w[0] {
		case 's':
			m.Kind = System
		case 'u':
			m.Kind = User
		case 'g':
			m.Kind = Agent
		case 'a', 'A':
			m.Kind, m.Calls, m.Sealed = Action, strings.Split(w[1:], ""), w[0] == 'A'
		case 'o':
			m.Kind, m.Result = Observation, w[1:]
		}
		out = append(out, m)
	}
	return out
}

func TestUnits(t *testing.T) {
	f := func(short, want string) {
		t.Helper()
		var got []string
		for _, u := range Units(parseMessages(short)) {
			open := ""
			if u.Open {
				open = "?"
			}
			got = append(got, fmt.Sprintf("%d-%d%s", u.From, u.To-1, open))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", short, strings.Join(got, " "), want)
		}
	}
	f("s u g", "0-0 1-1 2-2")
	f("u aX oX aY oY", "0-0 1-2 3-4")
	f("u aXY oY oX g", "0-0 1-3 4-4")
	f("u aXY oX", "0-0 1-2?")
	f("u aX", "0-0 1-1?")
	f("u aX u oX", "0-0 1-1? 2-3")                    // a late result stays with the message before it
	f("u aX oX oX g", "0-0 1-3 4-4")                  // a duplicate
	f("oX u", "0-0 1-1")                              // an orphan at the beginning
	f("u aX oX aX oX", "0-0 1-2 3-4")                 // a reused id
	f("u aX s oX g", "0-0 1-3 4-4")                   // a system message between a call and its result
	f("u aX oX s s u", "0-0 1-2 3-3 4-4 5-5")         // and after it
	f("u AX oX aY oY aZ oZ g", "0-0 1-2 3-4 5-6 7-7") // sealed reasoning joins nothing
	f("u aX oX AY oY aZ oZ u", "0-0 1-2 3-4 5-6 7-7")
	f("u AX oX s aY oY g", "0-0 1-2 3-3 4-5 6-6")
	f("u AX oX g aY oY", "0-0 1-2 3-3 4-5")
	f("u AX oX aY", "0-0 1-2 3-3?")
	f("", "")
}

func TestUnitsCoverEverything(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		messages := drawMessages(t)
		units := Units(messages)
		next := 0
		for _, u := range units {
			if u.From != next || u.To <= u.From {
				t.Fatalf("unit %+v after %d", u, next)
			}
			next = u.To
		}
		if next != len(messages) {
			t.Fatalf("units end at %d of %d", next, len(messages))
		}
	})
}
