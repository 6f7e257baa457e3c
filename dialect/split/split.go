// Package split reads request bodies for all dialects. It reads a body in a single pass, slices its history into messages,
// and remembers the beginnings of bodies, so that reading costs what is new. A Format and a Reader describe the messages of
// a dialect.
//
// It rejects a body that two parsers could read differently: invalid JSON or UTF-8, text after the body, nesting that is
// too deep, and keys the proxy acts on that are duplicated, escaped or in another case. It is never stricter than the
// server: a body that is valid JSON, but no conversation the dialect understands, gives dialect.CodeUnsupported and is to
// be forwarded unchanged.
package split

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Format describes the bodies of a dialect.
type Format struct {
	List    string                        // member of the body that holds the history
	Element string                        // what error messages call an element of it
	Members []string                      // members of the body that the dialect reads in addition to those of all dialects
	Version string                        // of the canonical form; every digest starts with it
	Texts   []string                      // types of text parts; content with a single text part equals its text
	Drop    []string                      // members of parts that digests ignore, in addition to cache_control
	Skip    func(kind rawjson.Value) bool // reports whether digests ignore parts of a type
	Reader  func(*Walker) Reader          // returns the reader of one body's history

	// Kept returns where upstream stores the history before the list. In that case the list may be missing. If Kept is nil, the list is
	// required.
	Kept func(member func(name string) rawjson.Value) session.Kept
}

// Reader reads the elements of a history.
type Reader struct {
	Keys []string // the known keys of an element
	// Element reads an object and adds its messages to the Walker. It may instead keep a copy of the object and add it later, together with
	// elements that follow.
	Element func(*Object) error
	// Text adds a history that is a string instead of a list. If nil, such a body is unsupported, and so is one whose history is a lone
	// element.
	Text func(text rawjson.Value)
	// Close is called at the end of the list, to add the objects that Element has kept. It may be nil.
	Close func()
}

// Options configures a Splitter. The zero value of each field selects its default.
type Options struct {
	// Fields are the dotted paths of members that may identify the session, such as metadata.session_id. Only string
	// values count, truncated to MaxField bytes. The value of metadata.user_id counts only if the string is itself a JSON
	// object with a session_id, whose value is used.
	Fields []string
	// Remember limits the size of remembered bodies, in bytes. If a body starts like a remembered one, only the rest is read. By default
	// nothing is remembered.
	Remember int
}

// Splitter splits the bodies of one dialect. It is safe for concurrent use.
type Splitter struct {
	format  Format
	options Options
	keys    []string // the members to read; the history list is the first
	memory  memory
}

// New returns a splitter.
func New(f Format, o Options) *Splitter {
	keys := append([]string{f.List, "model", "stream", "tools"}, f.Members...)
	for _, path := range o.Fields {
		if key, _, _ := strings.Cut(path, "."); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return &Splitter{format: f, options: o, keys: keys, memory: memory{limit: o.Remember}}
}

// Split validates and slices a body, then calls finish to complete the request from other members of the body. The error
// is a *dialect.Error.
func (s *Splitter) Split(body []byte, finish func(*Walker, *dialect.Request)) (*dialect.Request, error) {
	w := newWalker(s, body)
	if err := w.readBody(); err != nil {
		return nil, err
	}
	fields, err := w.sessionFields()
	if err != nil {
		return nil, err
	}
	w.remember()
	r := &dialect.Request{
		Body: body, Messages: slices.Clip(w.Messages), ListSpan: w.list, Fields: fields,
		Model: w.Member("model").Text(), Stream: w.Member("stream").Kind == rawjson.True, Kept: w.kept(),
	}
	if tools := w.Member("tools"); tools.Kind == rawjson.Array {
		r.Tools = tools.Raw
	}
	finish(w, r)
	if err := w.rejectAmbiguousPart(); err != nil {
		return nil, err
	}
	return r, nil
}

// invalid converts an error of a Scanner to one for the client.
func invalid(err error) error {
	code := dialect.CodeInvalidJSON
	if defect, ok := errors.AsType[*rawjson.Error](err); ok {
		switch defect.Code {
		case rawjson.TooDeep:
			code = dialect.CodeTooDeep
		case rawjson.BadUTF8:
			code = dialect.CodeInvalidUTF8
		}
	}
	return &dialect.Error{Code: code, Message: fmt.Sprintf("The body is not valid JSON: %v.", err)}
}

// Known returns how many messages at the beginning of a body are remembered.
func (s *Splitter) Known(body []byte) int {
	_, n := s.memory.find(body)
	return n
}

// Remembered returns how many bodies are remembered, and their size in bytes.
func (s *Splitter) Remembered() (bodies, bytes int) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return len(s.memory.prefixes), s.memory.bytes
}
