package gemini

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The known keys of a content, of a part, and of what a part holds.
var (
	contentKeys = []string{"role", "parts"}
	partKeys    = []string{
		"text", "thought", "functionCall", "function_call", "functionResponse", "function_response",
		"inlineData", "inline_data", "fileData", "file_data", "thoughtSignature", "thought_signature",
	}
	callKeys   = []string{"id", "name", "args"}
	resultKeys = []string{"id", "name", "response", "parts"}
)

// part is a part of a content.
type part struct {
	split.Object
	end  int       // offset of its end in the content
	of   procedure // what it calls or answers
	kind byte      // isCall, isAnswer, or 0 for any other part
}

// The kinds of parts that name a function.
const (
	isCall   = 'c'
	isAnswer = 'a'
)

// procedure is the inside of a call or a result.
type procedure struct {
	id, name rawjson.Value
	value    rawjson.Value // the arguments or the response
	parts    rawjson.Value // attachments of a result
}

// partOf returns a part of validated text.
func partOf(v rawjson.Value) part {
	p := part{Object: split.Read(v, partKeys)}
	p.read(func(of rawjson.Value, keys []string, _ string) split.Object { return split.Read(of, keys) })
	return p
}

// read reads the call or the result in a part, if it is one.
func (p *part) read(object func(of rawjson.Value, keys []string, name string) split.Object) {
	if call := p.get("functionCall", "function_call"); call.Kind == rawjson.Object {
		o := object(call, callKeys, "functionCall")
		p.kind, p.of = isCall, procedure{id: o.Get("id"), name: o.Get("name"), value: o.Get("args")}
	}
	if result := p.get("functionResponse", "function_response"); result.Kind == rawjson.Object {
		o := object(result, resultKeys, "functionResponse")
		p.kind, p.of = isAnswer, procedure{id: o.Get("id"), name: o.Get("name"), value: o.Get("response"), parts: o.Get("parts")}
	}
}

func (p *part) get(camel, snake string) rawjson.Value { return either(p.Get, camel, snake) }

func (p *part) isThought() bool { return p.Get("thought").Kind == rawjson.True }

// isText reports whether a part is nothing but text.
func (p *part) isText() bool { return p.Get("text").Kind == rawjson.String }

// hasAttachment reports whether one of the parts, or a part of a result, is anything but text, a call or a result.
func hasAttachment(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool {
		if p.kind != 0 {
			return split.HasElements(p.of.parts)
		}
		return !p.isText()
	})
}

func isResult(p part) bool { return p.kind == isAnswer }

// reader reads the messages of one body.
type reader struct {
	w     *split.Walker
	parts []part // of the current content

	waiting []waiting // calls of the newest message of the model that have no result yet; valid for that message
	of      int       // the number of messages up to that one; 0: none was read
}

// maxParts limits the parts of one content.
const maxParts = 16 << 10

// element reads one content, and adds it as a whole or in pieces.
func (r *reader) element(content *split.Object) error {
	if err := r.readParts(content.Raw, content.Get("parts")); err != nil || r.w.IsUnsupported() {
		return err
	}
	parts := r.parts
	m := session.Message{Raw: content.Raw, Kind: session.User, Attached: hasAttachment(parts)}
	role := roleOf(content.Get("role"))
	switch {
	case role == "model":
		m.Kind = session.Agent
		if m.Calls = callIDs(parts); len(m.Calls) > 0 {
			m.Kind = session.Action
		}
		if slices.ContainsFunc(parts, isResult) {
			r.w.Unsupported("a content of the model has a function response")
		}
	case role == "":
		r.w.Unsupported("a content has an unknown role")
	case slices.ContainsFunc(parts, func(p part) bool { return p.kind == isCall }):
		r.w.Unsupported("a content of the user has a function call")
	case slices.ContainsFunc(parts, isResult):
		if content.More {
			r.w.Unsupported("a content with function responses has unknown members")
		}
		if len(parts) > 1 {
			r.addPieces(content.Raw, parts)
			return nil
		}
		role, m.Kind, m.Result = "tool", session.Observation, r.answered(&parts[0])
	}
	m.Digest = digest(&r.w.Digest, role, parts)
	r.w.Add(m, r.w.ElementSpan().To)
	return nil
}

// roleOf returns the role of a content: "user", also for older names of the results of functions, "model", or empty for any other.
func roleOf(v rawjson.Value) string {
	switch {
	case v.Is("model"):
		return "model"
	case v.Kind == 0, v.Kind == rawjson.Null, v.Is("user"), v.Is("function"), v.Is("tool"):
		return "user"
	}
	return ""
}

// readParts reads the parts of a content.
func (r *reader) readParts(content []byte, list rawjson.Value) error {
	r.parts = r.parts[:0]
	switch list.Kind {
	case rawjson.Array:
	case 0, rawjson.Null:
		return nil
	default:
		r.w.Unsupported("parts is not an array")
		return nil
	}
	at := split.EndOffset(content, list) - len(list.Raw)
	return r.w.EachObject(list, partKeys, "parts.", "a part is not an object", func(o *split.Object, end int) error {
		if len(r.parts) == maxParts {
			r.w.Unsupported("a content has too many parts")
			return nil
		}
		r.parts = append(r.parts, part{Object: *o, end: at + end})
		return r.checkPart(&r.parts[len(r.parts)-1])
	})
}

// checkPart reads what a part holds. It rejects what two servers may read differently.
func (r *reader) checkPart(p *part) (err error) {
	for i := 2; i < len(partKeys); i += 2 {
		if p.Get(partKeys[i]).Kind != 0 && p.Get(partKeys[i+1]).Kind != 0 {
			r.w.Unsupported("a part has " + partKeys[i] + " in two spellings")
		}
	}
	p.read(func(of rawjson.Value, keys []string, name string) split.Object {
		o, wrong := r.w.Object(of, keys, "parts."+name+".", "")
		err = cmp.Or(err, wrong)
		return o
	})
	return err
}

// addPieces adds each result of a content, and each run of other parts, as a message.
func (r *reader) addPieces(content []byte, parts []part) {
	for len(parts) > 0 {
		n := slices.IndexFunc(parts, isResult)
		if n < 0 {
			n = len(parts)
		}
		if n == 0 {
			n = repeats(parts)
			m := session.Message{Kind: session.Observation, Result: r.answered(&parts[0]), Digest: digest(&r.w.Digest, "tool", parts[:1])}
			r.addPiece(content, parts[:n], m)
			parts = parts[n:]
			continue
		}
		r.addPiece(content, parts[:n], session.Message{Kind: session.User, Digest: digest(&r.w.Digest, "user", parts[:n])})
		parts = parts[n:]
	}
}

// repeats returns how many parts at the beginning are the same result. Gemini CLI sends each one twice when it resumes a session; they are one
// message, so that the conversation is recognised.
func repeats(parts []part) int {
	n := 1
	for n < len(parts) && len(parts[0].of.id.Inner()) > 0 && bytes.Equal(parts[n].Raw, parts[0].Raw) {
		n++
	}
	return n
}

// addPiece adds some parts of a content as a message.
func (r *reader) addPiece(content []byte, piece []part, m session.Message) {
	first, to := &piece[0], piece[len(piece)-1].end
	m.Raw, m.Attached = content[first.end-len(first.Raw):to:to], hasAttachment(piece)
	r.w.Add(m, r.w.ElementSpan().From+to)
}

// callIDs returns the ids of the calls among the parts of a message.
func callIDs(parts []part) (ids []string) {
	seen := map[string]int{}
	for i := range parts {
		if parts[i].kind == isCall {
			ids = append(ids, idOf(&parts[i], seen))
		}
	}
	return ids
}

// idOf returns the id of a call. If it has none, it is numbered among those of the same name in its message. Such an id identifies no run.
func idOf(call *part, seen map[string]int) string {
	if id := call.of.id.Text(); id != "" {
		return id
	}
	name := call.of.name.Text()
	seen[name]++
	return numbered(name, seen[name]-1)
}

func numbered(name string, n int) string { return "functions." + name + ":" + strconv.Itoa(n) }

// waiting is a call that has no result yet.
type waiting struct{ id, name string }

// answered returns the id of the call that a result belongs to: the one with its id, else the first one with its name that has no result yet.
func (r *reader) answered(p *part) string {
	id, name := p.of.id.Text(), p.of.name.Text()
	calls := r.waitingCalls()
	i := slices.IndexFunc(calls, func(c waiting) bool { return c.id == id })
	if i < 0 || id == "" {
		i = slices.IndexFunc(calls, func(c waiting) bool { return c.name == name })
	}
	if i < 0 {
		if id == "" {
			id = numbered(name, 0)
		}
		return id
	}
	id = calls[i].id
	r.waiting = slices.Delete(calls, i, i+1)
	return id
}

// waitingCalls returns the calls of the newest message of the model that have no result yet.
func (r *reader) waitingCalls() []waiting {
	all := r.w.Messages
	n := len(all)
	for n > 0 && !all[n-1].Kind.ByModel() {
		n--
	}
	if n == r.of {
		return r.waiting
	}
	r.of, r.waiting = n, r.waiting[:0]
	if n == 0 || len(all[n-1].Calls) == 0 {
		return r.waiting
	}
	ids := all[n-1].Calls
	for element := range rawjson.Elements(split.Member(rawjson.ValueOf(all[n-1].Raw), "parts").Raw) {
		if p := partOf(element); p.kind == isCall && len(r.waiting) < len(ids) {
			r.waiting = append(r.waiting, waiting{ids[len(r.waiting)], p.of.name.Text()})
		}
	}
	for i := n; i < len(all); i++ { // reading may continue behind some of the results
		if at := slices.IndexFunc(r.waiting, func(c waiting) bool { return c.id == all[i].Result && all[i].Kind == session.Observation }); at >= 0 {
			r.waiting = slices.Delete(r.waiting, at, at+1)
		}
	}
	return r.waiting
}

// The canonical form of a message is the version below, followed by frames for its role and each of its parts:
//
//	text               the text; none if it is empty
//	functionCall       id, name, arguments
//	functionResponse   id, name, response, parts
//	any other part     all of it
//
// Thoughts and signatures are ignored: clients leave them out.
const version = "dewpoint/gemini/1\n"

// Fields of a frame, in addition to those of all dialects.
const (
	fieldText      = 'T'
	fieldCall      = 'C' // starts a call
	fieldResult    = 'R' // starts a result
	fieldID        = 'i'
	fieldName      = 'n'
	fieldArguments = 'a'
	fieldResponse  = 'o'
	fieldParts     = 'P'
	fieldOther     = 'O'
)

func digest(h *split.Digest, role string, parts []part) session.Hash {
	h.Begin(role)
	for i := range parts {
		addPart(h, &parts[i])
	}
	return h.End()
}

func addPart(h *split.Digest, p *part) {
	text := p.Get("text")
	switch {
	case p.isThought():
	case p.kind == isCall:
		h.Mark(fieldCall)
		h.Value(fieldID, p.of.id)
		h.Value(fieldName, p.of.name)
		h.Arguments(fieldArguments, p.of.value)
	case p.kind == isAnswer:
		h.Mark(fieldResult)
		h.Value(fieldID, p.of.id)
		h.Value(fieldName, p.of.name)
		h.Value(fieldResponse, p.of.value)
		h.Value(fieldParts, p.of.parts)
	case p.isText() && len(text.Inner()) == 0 && !p.More:
	case p.isText() && !p.More:
		h.Value(fieldText, text)
	default:
		h.Value(fieldOther, rawjson.Value{Kind: rawjson.Object, Raw: unsigned(p)})
	}
}

// unsigned returns a part without its signature.
func unsigned(p *part) []byte {
	if p.get("thoughtSignature", "thought_signature").Kind == 0 {
		return p.Raw
	}
	return split.WithoutMember(split.WithoutMember(p.Raw, "thoughtSignature"), "thought_signature")
}

// systemDigest returns the digest of a system instruction.
func systemDigest(h *split.Digest, parts rawjson.Value) session.Hash {
	h.Begin("system")
	for element := range rawjson.Elements(parts.Raw) {
		p := partOf(element)
		addPart(h, &p)
	}
	return h.End()
}
