// Package plug has the wires by which other gateways ask for a condensed history: each maps what a gateway sends to a request in a protocol that
// is served, and what came of it to the gateway's answer. Nothing goes upstream: the gateway sends the request itself.
//
// A wire never fails a request. What it cannot read, and whatever goes wrong behind it, is answered with "unchanged".
package plug

import (
	"errors"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Wire is how a gateway asks.
type Wire interface {
	// Name names the wire in records and logs.
	Name() string
	// Read reads what a gateway sends. The result aliases text. An error says why it is answered with Done.Why.
	Read(text []byte) (Ask, error)
	// Write returns the answer to what was asked.
	Write(ask Ask, done Done) []byte
	// Patience is how long the gateway waits for a condensation, so that it does not give up before it is answered. 0: as long as a client.
	Patience() time.Duration
}

// Ask is what a gateway asks for.
type Ask struct {
	Path    string            // where a client would send Body, below the base URL
	Body    []byte            // a request in the protocol of that path
	List    []byte            // the history as it came, to be returned if nothing is done; nil: it was not found, or the wire needs none
	Header  map[string]string // of the gateway's client, as far as the gateway shows it, by names in lower case
	User    string            // by which the gateway knows its client; empty: it does not say
	KeyHash string            // SHA-256 of the client's key, in hexadecimal; empty: it does not say
	Session string            // by which the gateway's client names its session; empty: it does not
	ID      string            // of the gateway's request, by which its usage may be reported; empty: none
	Trims   bool              // only results may be shortened: the gateway expects as many messages as it sent
	Limit   int               // tokens above which the history is to be condensed; 0: none
}

// Done is what came of it.
type Done struct {
	Body          []byte // the request as it is to go upstream; nil: unchanged
	Why           string // why it could not be looked at, in a word; empty: it was
	Before, After int    // tokens, by our own count
	Applied       []string
	Request       string // id of the request
	Session       string
	Thread        string
}

// Reasons of errors of Read.
var (
	ErrJSON    = errors.New("invalid_json")   // the text is no JSON object
	ErrNothing = errors.New("no_history")     // it has no history
	ErrKind    = errors.New("not_a_request")  // it is about something else than a request to a model
	ErrTwice   = errors.New("duplicate_key")  // a key stands twice, so that two readers may read two things
	ErrBudget  = errors.New("invalid_limits") // a limit is no number of tokens
)

// object is the members of a JSON object that a wire knows, by their names.
type object map[string]rawjson.Value

// members returns the members of a valid JSON object with one of these names.
func members(text []byte, names ...string) (object, error) {
	found := object{}
	var buf [64]byte
	for key, value := range rawjson.Members(text) {
		name := string(key.Name(buf[:]))
		if !slices.Contains(names, name) {
			continue
		}
		if _, twice := found[name]; twice {
			return nil, ErrTwice
		}
		found[name] = value
	}
	return found, nil
}

// open checks that a text is a JSON object and returns its members with one of these names.
func open(text []byte, names ...string) (object, error) {
	if rawjson.Valid(text, 0) != nil || rawjson.ValueOf(text).Kind != rawjson.Object {
		return nil, ErrJSON
	}
	return members(text, names...)
}

// has reports whether a member is there, with a value of this kind.
func (o object) has(name string, kind rawjson.Kind) bool { return o[name].Kind == kind }

// compose returns an object of these members, as they came, leaving out those that are not there or null.
func (o object) compose(names ...string) []byte {
	out := []byte{'{'}
	for _, name := range names {
		value := o[name]
		if value.Kind == 0 || value.Kind == rawjson.Null {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuote(out, name)
		out = append(append(out, ':'), value.Raw...)
	}
	return append(out, '}')
}

// member returns the value of a member of a JSON object, nil if there is none.
func member(text []byte, name string) []byte {
	o, err := members(text, name)
	if err != nil {
		return nil
	}
	return o[name].Raw
}
