// Package split goes over request bodies for all dialects: it walks a body once, refuses what two parsers could read
// differently (invalid JSON or UTF-8, text after the body, duplicates or escaped spellings of the keys that are acted on,
// nesting beyond a bound), cuts the history out of it, and remembers how bodies began, so that the cost of one follows what is
// new in it. What a message is, a dialect says by its Format and its Reader.
//
// It is never stricter than the server behind: a body that is sound JSON but no conversation that the dialect understands gives
// dialect.CodeUnsupported, and is to be passed on unchanged.
package split

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Format is what a dialect tells of its bodies.
type Format struct {
	List    string                        // the member of the body that holds the history
	Element string                        // what an element of it is called
	Members []string                      // the other members of the body that the dialect reads, next to those of all
	Version string                        // of the canonical form; every digest begins with it
	Texts   []string                      // types of the parts of a content that are text; a lone one is what it says
	Drop    []string                      // members of parts that no digest counts, next to cache_control
	Skip    func(kind rawjson.Value) bool // parts of a content that no digest counts, by their type
	Reader  func(*Walker) Reader          // reads the history of one body
}

// Reader reads the elements of a history.
type Reader struct {
	Keys []string // that are known of an element
	// Element takes an object, and files the messages that it holds. It may hold back a copy, and file it later with what follows.
	Element func(*Object) error
	// Text files a history that is a text instead of a list; nil: there is none.
	Text func(text rawjson.Value)
	// Close files what was held back: the list has ended. It may be nil.
	Close func()
}

// Options say how to read. The zero value of each means its default.
type Options struct {
	// Fields are the dotted paths of the body's members that may name the session, such as metadata.session_id. Only
	// string values count, cut to 512 bytes. The value of metadata.user_id counts only if it is itself a JSON object, in
	// text, with a session_id: then that is the value.
	Fields []string
	// MaxDepth is how deep a body may be nested. Default rawjson.DefaultDepth (512).
	MaxDepth int
	// Remember bounds the bytes of bodies that are remembered, so that one that begins like an earlier one is read on from
	// there. Default 0: none.
	Remember int
}

// Splitter splits the bodies of one dialect. It is safe for concurrent use. Make one with New.
type Splitter struct {
	format  Format
	options Options
	keys    []string // of the body: the history's, those that all dialects read, those of Format.Members, and the first ones of Options.Fields
	memory  memory
}

// New makes a splitter.
func New(f Format, o Options) *Splitter {
	keys := append([]string{f.List, "model", "stream", "tools"}, f.Members...)
	for _, path := range o.Fields {
		if key, _, _ := strings.Cut(path, "."); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return &Splitter{format: f, options: o, keys: keys, memory: memory{limit: o.Remember}}
}

// Split checks and slices a body; then finish may ask the walker for the members of the body, and completes the request. The
// error is a *dialect.Error.
func (s *Splitter) Split(body []byte, finish func(*Walker, *dialect.Request)) (*dialect.Request, error) {
	w := newWalker(s, body)
	if err := w.body(); err != nil {
		return nil, err
	}
	fields, err := w.sessionFields()
	if err != nil {
		return nil, err
	}
	w.remember()
	r := &dialect.Request{
		Body: body, Messages: slices.Clip(w.messages), Inside: w.inside, Fields: fields, Model: w.Member("model").Text(),
		Stream: w.Member("stream").Kind == rawjson.True,
	}
	if tools := w.Member("tools"); tools.Kind == rawjson.Array {
		r.Tools = tools.Raw
	}
	finish(w, r)
	if err := w.unambiguous(); err != nil {
		return nil, err
	}
	return r, nil
}

// unsound tells the client what is wrong with its JSON.
func unsound(err error) error {
	code := dialect.CodeInvalidJSON
	var defect *rawjson.Error
	if errors.As(err, &defect) {
		switch defect.Code {
		case rawjson.TooDeep:
			code = dialect.CodeTooDeep
		case rawjson.BadUTF8:
			code = dialect.CodeInvalidUTF8
		}
	}
	return &dialect.Error{Code: code, Message: fmt.Sprintf("The body is not sound JSON: %v.", err)}
}

// Known is how many messages at the beginning of a body are remembered.
func (s *Splitter) Known(body []byte) int {
	_, n := s.memory.find(body)
	return n
}

// Held is how many bodies are remembered, and in how many bytes.
func (s *Splitter) Held() (bodies, bytes int) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return len(s.memory.begun), s.memory.bytes
}
