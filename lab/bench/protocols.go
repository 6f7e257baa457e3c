package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// API is the protocol of a cell's requests; empty: Chat Completions.
type API string

// The other protocols.
const (
	Messages  API = "messages"
	Responses API = "responses"
)

// apiBudget is what p50 may be over that of Chat Completions, measured in turn.
const apiBudget = 1.3

// path is where the protocol is served.
func (a API) path() string {
	if a == "" {
		return chatPath
	}
	return "/v1/" + string(a)
}

// head and tail are what a body has around its history.
func (a API) head() string {
	quoted := string(rawjson.AppendQuote(nil, systemPrompt))
	switch a {
	case Messages:
		return `{"max_tokens":8000,"system":` + quoted + `,"messages":[`
	case Responses:
		return `{"store":false,"instructions":` + quoted + `,"input":[`
	}
	return bodyHead
}

func (a API) tail(stream bool) string {
	switch {
	case a == Messages:
		return `],"model":"` + Model + `",` + strings.NewReplacer(`"type":"function","function":{`, "", `"parameters"`, `"input_schema"`, `}}}}`, `}}}`, `}}},`, `}},`,
			`"tool_choice":"auto"`, `"temperature":0.2`).Replace(bodyTools) + "}"
	case a == Responses:
		return `],"model":"` + Model + `",` + strings.NewReplacer(`"function":{`, "", `}}}}`, `}}}`, `}}},`, `}},`).Replace(bodyTools) + "}"
	case stream:
		return bodyTailStreamed
	}
	return bodyTail
}

// turn adds what a model says, with a call, and the call's result, as the protocol has them.
func (w *writer) turn(u stamped) {
	thought, arguments := w.thought(), w.arguments()
	if w.h.api == Messages {
		said := []any{`{"role":"assistant","content":[`}
		if thought != nil {
			said = append(said, `{"type":"text","text":`, thought, `},`)
		}
		w.message(append(said, `{"type":"tool_use","id":"call_`, u, `","name":"bash","input":`+string(arguments)+`}]}`)...)
		w.message(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_`, u, `","content":"run `, u, `\n`+w.output()+`"}]}`)
		return
	}
	var said []any
	if thought != nil {
		said = append(said, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`, thought, `,"annotations":[]}]},`)
	}
	w.message(append(said, `{"type":"function_call","call_id":"call_`, u, `","name":"bash","arguments":`, arguments, `}`)...)
	w.message(`{"type":"function_call_output","call_id":"call_`, u, `","output":"run `, u, `\n`+w.output()+`"}`)
}

// turn answers with a call in another protocol.
func (x *exchange) turn(api API, received int) error {
	call := fmt.Sprintf("call_%d", mix(x.id))
	usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":24}`, received/bytesPerToken+1)
	body := fmt.Sprintf(`{"id":"chatcmpl-%d","type":"message","role":"assistant","model":%q,"content":[{"type":"tool_use","id":%q,"name":"bash",`+
		`"input":{"command":"go test ./...","timeout":60}}],"stop_reason":"tool_use","stop_sequence":null,%s}`, x.id, Model, call, usage)
	if api == Responses {
		body = fmt.Sprintf(`{"id":"chatcmpl-%d","object":"response","status":"completed","model":%q,"output":[{"type":"function_call","id":"fc_%d","status":"completed",`+
			`"call_id":%q,"name":"bash","arguments":"{\"command\": \"go test ./...\"}"}],%s}`, x.id, Model, x.id, call, usage)
	}
	return x.write([]byte(body))
}

// protocols writes what the other protocols take, over Chat Completions.
func (r *Result) protocols(w io.Writer) {
	var rows [][]string
	for _, c := range r.ordered() {
		for _, t := range c.Targets {
			if c.API == "" || t.Name != nameEmbedded && t.Name != nameRedis {
				continue
			}
			rows = append(rows, []string{
				string(c.API), string(c.Kind), sizeName(c.Size), t.Name, ms(t.P50), t.OverChat.String(), number(apiBudget), verdict(t.OverChat.Median, apiBudget),
			})
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(w, "### Other protocols\n\np50 over that of Chat Completions in the same block, one connection: the middle of the blocks [least, most].\n\n")
	table(w, []string{"protocol", "request", "body", "", "p50", "over chat", "budget", ""}, rows)
}
