package gemini

import (
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Paths of the endpoints. {model} stands for the name of the model, and anything may precede /models, as the project, the location and the
// publisher do on Vertex AI. Code Assist's have no model.
const (
	GeneratePath = "/models/{model}:generateContent"
	StreamPath   = "/models/{model}:streamGenerateContent"
	CountPath    = "/models/{model}:countTokens"

	AssistGeneratePath = "/v1internal:generateContent"
	AssistStreamPath   = "/v1internal:streamGenerateContent"
	AssistCountPath    = "/v1internal:countTokens"
)

// target is what the target of a request says, which is its path and its query.
type target struct {
	model  string
	assist bool // the request is inside another object
	counts bool // it may be
	events bool // the answer is streamed as server-sent events
	pieces bool // it is streamed as a list
}

func readTarget(raw string) (t target) {
	path, query, _ := strings.Cut(raw, "?")
	name, method, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	if name == "v1internal" {
		t.assist = true
	} else if decoded, err := url.PathUnescape(name); err == nil {
		t.model = decoded
	}
	t.counts = method == "countTokens"
	if method == "streamGenerateContent" {
		values, _ := url.ParseQuery(query)
		t.events = values.Get("alt") == "sse" || values.Get("$alt") == "sse"
		t.pieces = !t.events
	}
	return t
}

// wrappers are the members of a body that may hold the request: Code Assist's, and that of countTokens.
var wrappers = [...]string{"request", "generateContentRequest", "generate_content_request"}

// requestIn returns the request inside a body, or the body if that is a request itself, is invalid, or holds more than one.
func requestIn(body []byte) rawjson.Value {
	all, found := rawjson.Value{Kind: rawjson.Object, Raw: body}, rawjson.Value{}
	if rawjson.Valid(body, 0) != nil {
		return all
	}
	for key, v := range rawjson.Members(body) {
		switch name := string(key.Name(nil)); {
		case name == list, slices.Contains(wrappers[:], name) && found.Kind != 0:
			return all
		case slices.Contains(wrappers[:], name) && v.Kind == rawjson.Object:
			found = v
		}
	}
	if found.Kind == 0 {
		return all
	}
	return found
}

// answerIn returns the answer in a validated body or event, which Code Assist wraps.
func answerIn(v rawjson.Value) rawjson.Value {
	if inner := split.Member(v, "response"); inner.Kind == rawjson.Object {
		return inner
	}
	return v
}
