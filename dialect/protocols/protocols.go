// Package protocols lists the wire protocols, one row each. Everything that serves or speaks all of them goes through the list.
package protocols

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// Protocol is a wire protocol. Its paths are below the base URL, such as /chat/completions. Instead of the name of a model they may have {model},
// as in /models/{model}:generateContent; anything may then precede it in a request's path.
type Protocol struct {
	Name     string // of its dialect, in configurations and logs
	New      func(split.Options) dialect.Dialect
	Answers  []string // of requests for an answer
	Counts   []string // of requests for a token count
	Compacts []string // of requests that want their history back as one item
}

// protocols lists all protocols. The first is spoken where none is named.
var protocols = [...]Protocol{
	{
		Name: "chat", New: func(o split.Options) dialect.Dialect { return chat.New(o) },
		Answers: []string{chat.Path},
	},
	{
		Name: "messages", New: func(o split.Options) dialect.Dialect { return messages.New(o) },
		Answers: []string{messages.Path}, Counts: []string{messages.CountPath},
	},
	{
		Name: "responses", New: func(o split.Options) dialect.Dialect { return responses.New(o) },
		Answers: []string{responses.Path}, Counts: []string{responses.CountPath}, Compacts: []string{responses.CompactPath},
	},
	{
		Name: "gemini", New: func(o split.Options) dialect.Dialect { return gemini.New(o) },
		Answers: []string{gemini.GeneratePath, gemini.StreamPath, gemini.AssistGeneratePath, gemini.AssistStreamPath},
		Counts:  []string{gemini.CountPath, gemini.AssistCountPath},
	},
}

// All returns all protocols, the usual one first.
func All() []Protocol { return slices.Clone(protocols[:]) }

// Names returns the names of all protocols, in the same order.
func Names() (names []string) {
	for _, p := range protocols {
		names = append(names, p.Name)
	}
	return names
}

// Named returns the protocol of that name. The empty name stands for the usual one, and so does one that is not known.
func Named(name string) Protocol {
	for _, p := range protocols {
		if p.Name == name {
			return p
		}
	}
	return protocols[0]
}

// Routes are dialects by the paths that they serve.
type Routes struct{ Answers, Counts, Compacts map[string]dialect.Dialect }

// Serve returns the routes of all protocols.
func Serve(o split.Options) Routes {
	r := Routes{Answers: map[string]dialect.Dialect{}, Counts: map[string]dialect.Dialect{}, Compacts: map[string]dialect.Dialect{}}
	for _, p := range protocols {
		d := p.New(o)
		for _, path := range p.Answers {
			r.Answers[path] = d
		}
		for _, path := range p.Counts {
			r.Counts[path] = d
		}
		for _, path := range p.Compacts {
			r.Compacts[path] = d
		}
	}
	return r
}
