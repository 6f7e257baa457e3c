package tokenize

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The cookbook's example: six messages, 129 prompt tokens with gpt-3.5-turbo and gpt-4, 124 with gpt-4o.
func TestMessageEqualsOpenAIsExample(t *testing.T) {
	messages := []session.Content{
		{Role: "system", Text: "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
		{Role: "system", Name: "example_user", Text: "New synergies will help drive top-line growth."},
		{Role: "system", Name: "example_assistant", Text: "Things working well together will increase revenue."},
		{Role: "system", Name: "example_user", Text: "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
		{Role: "system", Name: "example_assistant", Text: "Let's talk later when we're less busy about how to do better."},
		{Role: "user", Text: "This late pivot means we don't have time to boil the ocean for the client deliverable."},
	}
	want := map[string]int{O200k: 124, Cl100k: 129}
	for _, s := range eachSubject(t) {
		n := 3 // the reply's opening, once per request
		for _, message := range messages {
			n += s.Message(message)
		}
		if n != want[s.Name()] {
			t.Errorf("%s: %d tokens, want %d", s.Name(), n, want[s.Name()])
		}
	}
}

func TestMessageCountsAllItsParts(t *testing.T) {
	s := eachSubject(t)[0]
	empty := s.Message(session.Content{})
	if empty != messageOverhead {
		t.Errorf("an empty message is %d", empty)
	}
	for name, c := range map[string]struct {
		content session.Content
		more    int
	}{
		"role":      {session.Content{Role: "user"}, 1},
		"text":      {session.Content{Text: "hello world"}, 2},
		"reasoning": {session.Content{Reasoning: "hello world"}, 2},
		"name":      {session.Content{Name: "hello"}, 2},
		"calls":     {session.Content{Calls: []session.Call{{ID: "call_1", Name: "hello", Arguments: "{}"}, {Name: "world"}}}, 2*callOverhead + 3},
		"result":    {session.Content{Role: "tool", Result: "call_1", Text: "hello world"}, 3},
		"images":    {session.Content{Images: []session.Image{{}, {Detail: "low"}}}, 765 + 85},
	} {
		if got := s.Message(c.content) - empty; got != c.more {
			t.Errorf("%s: %d more tokens, want %d", name, got, c.more)
		}
	}
}

// TestFileTokens checks that no file is free, and that the cost of large files is plausible.
func TestFileTokens(t *testing.T) {
	s := eachSubject(t)[0]
	f := func(file session.File, least, most int) {
		t.Helper()
		with := s.Message(session.Content{Files: []session.File{file}})
		if got := with - messageOverhead; got < least || got > most {
			t.Errorf("%+v is %d tokens, want %d to %d", file, got, least, most)
		}
	}
	f(session.File{Kind: session.FileDocument, Format: "application/pdf", Bytes: 2 << 20}, 30_000, 120_000) // forty pages
	f(session.File{Kind: session.FileDocument, Format: "application/pdf", Bytes: 9000}, 1000, 3000)
	f(session.File{Kind: session.FileDocument, ID: "file-1"}, 1000, 10_000)
	f(session.File{Kind: session.FileDocument, Format: "text/plain", ID: "file-1"}, 1000, 10_000) // its size is not known
	for _, text := range []string{"text/plain", "md", "application/json", "application/x-yaml"} {
		f(session.File{Kind: session.FileDocument, Format: text, Bytes: 3000}, 1000, 1000)
	}
	f(session.File{Kind: session.FileAudio, Seconds: 60}, 600, 2000)
	f(session.File{Kind: session.FileAudio}, 500, 5000)
	f(session.File{Kind: session.FileVideo, Seconds: 10}, 2500, 3500)
	f(session.File{Kind: session.FileVideo}, 5000, 20_000)
	f(session.File{Kind: "blob", Bytes: 64 << 10}, 1500, 30_000)
	f(session.File{Kind: "widget", Format: "json", Bytes: 90}, 30, 30)
	f(session.File{Kind: "empty"}, 1, 5000)
}

func TestImageTokens(t *testing.T) {
	f := func(detail string, width, height, want int) {
		t.Helper()
		if got := imageTokens(session.Image{Detail: detail, Width: width, Height: height}); got != want {
			t.Errorf("%s %dx%d: %d tokens, want %d", detail, width, height, got, want)
		}
	}
	f("low", 4096, 8192, 85)
	f("low", 0, 0, 85)
	f("high", 1024, 1024, 765)  // to 768x768: four tiles
	f("high", 2048, 4096, 1105) // to 1024x2048, then 768x1536: six
	f("high", 1334, 1000, 1105) // to 1024.5x768, rounded up: six
	f("auto", 512, 512, 255)
	f("", 513, 512, 425)
	f("", 1, 1, 255)
	f("", 0, 0, 765)
	f("", -1, 100, 765)
	f("", 100, 0, 765)
	f("", math.MaxInt, math.MaxInt, 765)
	f("", math.MaxInt, 1, 85+4*170)
}

// For English and code an estimate is not below the count, and it is 0 only for empty text.
func TestEstimateIsHigh(t *testing.T) {
	content := session.Content{
		Role:  "assistant",
		Text:  strings.Repeat("The quick brown fox jumps over the lazy dog, and doesn't look back. ", 10),
		Calls: []session.Call{{Name: "run_command", Arguments: `{"command":"go test ./... -run TestEverything","timeout":30}`}},
	}
	e := &Encoder{}
	for _, s := range eachSubject(t) {
		if high, exact := e.Message(content), s.Message(content); high < exact {
			t.Errorf("%s: estimated %d, counted %d", s.Name(), high, exact)
		}
	}
	if got := e.Count("") + 2*e.Count("x") + e.Count("[{}]"); got != 4 || e.Name() != "estimate" {
		t.Errorf("%s: %d", e.Name(), got)
	}
}

func TestMessageIsNeverZero(t *testing.T) {
	s := eachSubject(t)[0]
	property.Check(t, func(t *rapid.T) {
		content := session.Content{
			Role: rapid.String().Draw(t, "role"),
			Text: rapid.String().Draw(t, "text"),
			Images: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) session.Image {
				return session.Image{
					Detail: rapid.SampledFrom([]string{"", "low", "high", "auto", "?"}).Draw(t, "detail"),
					Width:  rapid.Int().Draw(t, "width"),
					Height: rapid.Int().Draw(t, "height"),
				}
			}), 0, 3).Draw(t, "images"),
		}
		least := messageOverhead + imageBase*len(content.Images)
		if n := min(s.Message(content), (&Encoder{}).Message(content)); n < least {
			t.Fatalf("%d tokens, at least %d expected", n, least)
		}
	})
}
