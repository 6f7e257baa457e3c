package fakeupstream

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// models lists the models the server knows, or two if it takes any.
func (x *exchange) models() {
	var all []string
	for _, name := range x.server.options.known() {
		all = append(all, x.server.options.modelJSON(name))
	}
	x.sendJSON(`{"object":"list","data":[` + strings.Join(all, ",") + `]}`)
}

func (x *exchange) model(name string) {
	if known := x.server.options.Models; len(known) > 0 && !slices.Contains(x.server.options.known(), name) {
		x.refuse(unknownModel(name))
		return
	}
	x.sendJSON(x.server.options.modelJSON(name))
}

func (o Options) known() []string {
	names := map[string]bool{}
	for _, name := range slices.Concat(o.Models, o.SummariserModels, slices.Collect(maps.Keys(o.Windows))) {
		names[name] = true
	}
	if len(names) == 0 {
		return []string{"gpt-4o", "gpt-4o-mini"}
	}
	return slices.Sorted(maps.Keys(names))
}

func (o Options) modelJSON(name string) string {
	window := ""
	if n, ok := o.Windows[name]; ok {
		window = fmt.Sprintf(`,"max_model_len":%d`, n)
	}
	return fmt.Sprintf(`{"id":%s,"object":"model","created":%d,"owned_by":"fakeupstream"%s}`, mustJSON(name), created, window)
}

// embeddings echoes the input: one fixed vector for each, and the input itself under "echo".
func (x *exchange) embeddings() {
	top, err := parseBody(x.req.Body)
	if err == nil {
		err = cmp.Or(checkModel(top), checkInput(top))
	}
	if err != nil {
		x.refuse(err)
		return
	}
	inputs := 1
	if kindOf(top["input"]) == kindArray {
		inputs = len(asArray(top["input"]))
	}
	var all []string
	for i := range inputs {
		all = append(all, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[0.25,-0.5,0.125]}`, i))
	}
	tokens := x.server.options.CountTokens(top["input"])
	x.sendJSON(fmt.Sprintf(`{"object":"list","data":[%s],"model":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d},"echo":%s}`,
		strings.Join(all, ","), mustJSON(x.req.Model), tokens, tokens, top["input"]))
}

func checkInput(top object) *APIError {
	if !given(top["input"]) {
		return missingParameter("input")
	}
	return nil
}

func (x *exchange) sendJSON(body string) {
	x.play(Answer{Raw: &Raw{http.StatusOK, "application/json", []byte(body + "\n")}})
}
