package summariser

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// lacksTTL is how long Lacks remembers what a server lacks, since servers change.
const lacksTTL = time.Hour

// Lacks remembers in which form servers were found to accept calls, by URL and model. Safe for concurrent use. A nil *Lacks
// remembers nothing.
type Lacks struct {
	known lru.Cache[subject, lacksEntry]
}

type lacksEntry struct {
	lacks
	at time.Time
}

// NewLacks returns an empty Lacks.
func NewLacks() *Lacks {
	known := lru.New[subject, lacksEntry](maxRemembered)
	return &Lacks{known}
}

// lacks is how calls of one server differ from the usual ones, which it refused. The zero value is a usual call.
type lacks struct {
	omitted string // parameters that are left out, each with a space behind it
	limit   string // the parameter for the limit on the answer, in Chat Completions; empty: the usual one
	most    int    // the largest limit that the server accepts; 0: any
	role    string // of the instructions, in Chat Completions; roleUser: they stand in front of the prompt, in each protocol; empty: the usual one
}

// The roles of instructions that are not a system message.
const (
	roleDeveloper = "developer"
	roleUser      = "user"
)

// maxRefusal bounds how much of a refusal is read, in bytes.
const maxRefusal = 4 << 10

// maxAdaptations is how many times a call is repeated in another form.
const maxAdaptations = 6

func (l lacks) omits(parameter string) bool { return strings.Contains(l.omitted, parameter+" ") }

func (l *lacks) omit(parameters ...string) {
	for _, name := range parameters {
		if !l.omits(name) {
			l.omitted += name + " "
		}
	}
}

// body returns the body of a call. A schema that cannot be sent as a parameter is sent in words.
func (l lacks) body(c Caller, r condense.Request) ([]byte, error) {
	if l.most > 0 {
		r.MaxOutput = min(r.MaxOutput, l.most)
	}
	if f := r.Function; f != nil && l.omits("tools") {
		r.System, r.Function = r.System+inWords(f), nil
	}
	if f := r.Format; f != nil && (l.omits("response_format") || l.omits("text") || l.omits("tools")) {
		r.System, r.Format = r.System+inWords(f), nil
	}
	if l.role == roleUser && r.System != "" {
		r.User, r.System = r.System+"\n\n"+r.User, ""
	}
	body := protocolOf(r.Endpoint).Question(l.question(c, r))
	for name := range strings.FieldsSeq(l.omitted) {
		delete(body, name)
	}
	return json.Marshal(body)
}

// question returns what a call asks.
func (l lacks) question(c Caller, r condense.Request) dialect.Question {
	return dialect.Question{
		Model: r.Model, System: r.System, User: r.User, MaxOutput: r.MaxOutput, Temperature: c.Temperature, Effort: c.Effort,
		LeastEffort: effortOf(r.Model), Function: (*dialect.Schema)(r.Function), Format: (*dialect.Schema)(r.Format), Streamed: !l.omits("stream"),
		Before: r.Endpoint.Way.Path, Limit: cmp.Or(l.limit, r.Endpoint.Way.Limit), Role: l.role,
	}
}

// inWords is the part of the instructions that stands for a schema.
func inWords(f *condense.Schema) string {
	return "\n\nAnswer with nothing but JSON of this schema:\n" + string(f.JSON)
}

func (l *Lacks) of(r condense.Request) lacks {
	if l == nil {
		return lacks{}
	}
	known, ok := l.known.Get(modelOf(r))
	if !ok || time.Since(known.at) > lacksTTL {
		return lacks{}
	}
	return known.lacks
}

// modelOf identifies the server and the model of a request, for all credentials.
func modelOf(r condense.Request) subject {
	return serverOf(condense.Attempt{Endpoint: condense.Endpoint{BaseURL: r.Endpoint.BaseURL}, Model: r.Model})
}

// parameter is a parameter of our calls, as errors mention it.
type parameter struct {
	words   *regexp.Regexp
	members []string // its names in a body; none: the role of the instructions
	limit   bool     // it limits the answer, and each protocol has names of its own for it
}

// parameters lists all parameters that a call has beside its model and its messages.
var parameters = []parameter{
	{regexp.MustCompile(`\bmax_(completion_|output_|new_)?tokens\b|\bmaxtokens\b`), nil, true},
	{regexp.MustCompile(`\b(reasoning_)?effort\b|\breasoning\b`), []string{"reasoning_effort", "reasoning"}, false},
	{regexp.MustCompile(`\bstream_options\b|\binclude_usage\b`), []string{"stream_options"}, false},
	{regexp.MustCompile(`\bstream(s|ed|ing)?\b`), []string{"stream"}, false},
	{regexp.MustCompile(`\btemperature\b`), []string{"temperature"}, false},
	{regexp.MustCompile(`\bresponse_format\b|\bjson_schema\b|\bstructured[ _]outputs?\b|\btext\.format\b`), []string{"response_format", "text"}, false},
	{regexp.MustCompile(`\btool_choice\b`), []string{"tool_choice"}, false},
	{regexp.MustCompile(`\btools?\b|\bfunctions?\b`), []string{"tools"}, false},
	{regexp.MustCompile(`\bstore\b`), []string{"store"}, false},
	{regexp.MustCompile(`\b(system|developer)[ _]?(role|message|prompt|instruction)|['"` + "`" + `](system|developer)['"` + "`" + `]|\broles?\b|\binstructions\b|\bsystem:`), nil, false},
}

// number matches a number in an error.
var number = regexp.MustCompile(`\b\d{3,7}\b`)

// learn derives from the error of a call how the next one must differ, and reports whether it must. sent is the body of the call. A server that
// sent nothing before the timeout may write the whole answer before sending any of it, so the next call allows that.
func (l *lacks) learn(err error, r condense.Request, sent []byte) bool {
	before := *l
	e, answered := errors.AsType[*refused](err)
	switch {
	case err == nil:
	case answered && slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}, e.status):
		if e.over == (overflow.Overflow{}) || e.over.Evidence != overflow.Stated {
			l.obey(strings.ToLower(e.text[:min(len(e.text), maxRefusal)]), r, sent)
		}
	case answered && e.status > 0, !protocolOf(r.Endpoint).Servers().Differ:
	case errors.Is(err, errNotStreamed), errors.Is(err, errSilent), errors.Is(err, errGarbled):
		l.omit("stream", "stream_options")
	}
	return *l != before
}

// obey changes what a refusal objects to: the parameter that it mentions first. Nothing changes if the call does not have it.
func (l *lacks) obey(text string, r condense.Request, sent []byte) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(sent, &members) // it is ours
	first, found := len(text), parameter{}
	for _, p := range parameters {
		if at := p.words.FindStringIndex(text); at != nil && at[0] < first {
			first, found = at[0], p
		}
	}
	switch {
	case first == len(text):
	case found.limit:
		for _, name := range protocolOf(r.Endpoint).Servers().Limits {
			if members[name] != nil {
				l.changeLimit(name, text, r)
			}
		}
	case found.members == nil:
		l.moveInstructions(text, r)
	default:
		for _, name := range found.members {
			if members[name] != nil {
				l.change(name)
			}
		}
	}
}

// change leaves out a parameter that was refused, and those that make no sense without it.
func (l *lacks) change(name string) {
	switch name {
	case "stream":
		l.omit("stream", "stream_options")
	case "tools":
		l.omit("tools", "tool_choice", "toolConfig")
	default:
		l.omit(name)
	}
}

// changeLimit lowers the limit on the answer to one that the refusal names, asks for it by its other name, or leaves it out where that is allowed.
func (l *lacks) changeLimit(name, text string, r condense.Request) {
	for _, digits := range number.FindAllString(text, maxAdaptations) {
		if n, _ := strconv.Atoi(digits); n >= minLimit && n < r.MaxOutput && (l.most == 0 || n < l.most) {
			l.most = n
			return
		}
	}
	servers := protocolOf(r.Endpoint).Servers()
	other := slices.IndexFunc(servers.Limits, func(known string) bool { return known != name })
	switch {
	case servers.Required:
	case other < 0, l.limit == name: // the other name was refused before
		l.omit(name)
	default:
		l.limit = servers.Limits[other]
	}
}

// minLimit is the smallest limit, in tokens, that leaves room for a summary.
const minLimit = 256

// moveInstructions changes the role of the instructions, and finally lets them stand in front of the prompt.
func (l *lacks) moveInstructions(text string, r condense.Request) {
	if protocolOf(r.Endpoint).Servers().Differ && l.role == "" && strings.Contains(text, roleDeveloper) {
		l.role = roleDeveloper
		return
	}
	l.role = roleUser
}

// effort is the lowest reasoning_effort that a family of models accepts. A summary needs little reasoning, and reasoning reduces the
// room for the answer.
type effort struct {
	family, lowest string // family: the beginning of the models' names
}

// efforts returns the known families, of which the first match applies. They are as of November 2025, from OpenAI's API reference for
// reasoning_effort, which names gpt-5.1 (none and up), the models before it (no none) and gpt-5-pro (high only). The parameter is
// not sent to models with an empty effort and to unlisted ones, which do not reason, accept only one value, or are not
// documented.
func efforts() []effort {
	return []effort{
		{"o1-mini", ""}, {"o1-preview", ""}, {"o1-pro", ""}, {"o3-pro", ""},
		{"o1", "low"}, {"o3", "low"}, {"o4", "low"},
		{"gpt-5-pro", ""}, {"gpt-5-chat", ""}, {"gpt-5-codex", ""}, {"gpt-5.1-chat", ""}, {"gpt-5.1-codex", ""},
		{"gpt-5.1", "none"}, {"gpt-5-mini", "minimal"}, {"gpt-5-nano", "minimal"}, {"gpt-5-2", "minimal"},
	}
}

// effortOf returns the lowest effort that a model is known to accept, or an empty string.
func effortOf(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if name == "gpt-5" {
		return "minimal"
	}
	for _, e := range efforts() {
		if strings.HasPrefix(name, e.family) {
			return e.lowest
		}
	}
	return ""
}
