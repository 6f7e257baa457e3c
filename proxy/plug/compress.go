package plug

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Compress is the wire of Headroom's POST /v1/compress in its form with sessions, which other gateways have copied.
type Compress struct {
	Chat, Messages, Items string // where a client would send messages of OpenAI's form, those of Anthropic's, and items of the Responses API
}

// CompressPath is where it is sent, below the base URL.
const CompressPath = "/compress"

// Name implements Wire.
func (Compress) Name() string { return "compress" }

// Patience implements Wire.
func (Compress) Patience() time.Duration { return 0 }

// Read implements Wire. What it can't read may still have the list that Write returns.
func (w Compress) Read(text []byte) (Ask, error) {
	o, err := open(text, "messages", "input", "config", "token_budget")
	if err != nil {
		return Ask{}, err
	}
	ask := Ask{Path: w.Chat, Body: text}
	switch {
	case o.has("messages", rawjson.Array):
		ask.List = o["messages"].Raw
		if anthropic(ask.List) {
			ask.Path = w.Messages
		}
	case o.has("input", rawjson.Array):
		ask.List, ask.Path = o["input"].Raw, w.Items
	default:
		return Ask{}, ErrNothing
	}
	config, err := members(o["config"].Raw, "session_id", "mode")
	if err != nil {
		return ask, err
	}
	ask.Session, ask.Trims = config["session_id"].Text(), config["mode"].Is("ccr")
	if budget := o["token_budget"]; budget.Kind == rawjson.Number {
		n, err := strconv.Atoi(string(budget.Raw))
		if err != nil || n <= 0 {
			return ask, ErrBudget
		}
		ask.Limit = n
	}
	return ask, nil
}

// anthropic reports whether messages are of Anthropic's form: a block of one has a type that only that has.
func anthropic(list []byte) bool {
	for m := range rawjson.Elements(list) {
		for block := range rawjson.Elements(member(m.Raw, "content")) {
			kind := rawjson.ValueOf(member(block.Raw, "type"))
			if kind.Is("tool_use") || kind.Is("tool_result") || kind.Is("thinking") || kind.Is("redacted_thinking") {
				return true
			}
		}
	}
	return false
}

// Write implements Wire. Without a list there is none in the answer, which callers take for a failure of ours and not for an empty history.
func (w Compress) Write(ask Ask, done Done) []byte {
	key, list := "messages", ask.List
	if ask.Path == w.Items && w.Items != "" {
		key = "input"
	}
	if done.Body != nil {
		list = member(done.Body, key)
	}
	out := []byte{'{'}
	if list != nil {
		out = append(append(append(out, `"messages":`...), list...), ',')
		if key == "input" {
			out = append(append(append(out, `"input":`...), list...), ',')
		}
	}
	out = fmt.Appendf(out, `"tokens_before":%d,"tokens_after":%d,"tokens_saved":%d,"compression_ratio":%s,"transforms_applied":`,
		done.Before, done.After, done.Before-done.After, ratio(done))
	out = appendStrings(out, done.Applied)
	out = append(out, `,"ccr_hashes":[]`...)
	if done.Session != "" {
		out = append(out, `,"session":{"id":`...)
		out = rawjson.AppendQuote(out, done.Session)
		out = rawjson.AppendQuote(append(out, `,"thread":`...), done.Thread)
		out = append(rawjson.AppendQuote(append(out, `,"request":`...), done.Request), '}')
	}
	if done.Why != "" {
		out = rawjson.AppendQuote(append(out, `,"compression_skipped":true,"skip_reason":`...), done.Why)
	}
	return append(out, '}')
}

// ratio returns what is left of the history's tokens, 1 for all.
func ratio(done Done) string {
	r := float64(done.After) / float64(cmp.Or(done.Before, 1))
	if done.Before == 0 {
		r = 1
	}
	return strconv.FormatFloat(math.Round(r*1e4)/1e4, 'f', -1, 64)
}

func appendStrings(out []byte, all []string) []byte {
	out = append(out, '[')
	for i, s := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuote(out, s)
	}
	return append(out, ']')
}
