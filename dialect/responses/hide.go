package responses

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// CanHideTools reports whether the client sends tools (in the request or as an item) and leaves the choice to the model, and upstream does
// not store the answer. Otherwise a later request could refer to an answer with a call that the client has never seen.
func (d *Dialect) CanHideTools(r *dialect.Request) bool {
	return !r.Stores && r.Kept == (session.Kept{}) && assemble.AcceptsTools(asList(r).Outside(), r.DefinesTools)
}

// Offer appends tools to those of a request. A history that was given as a string becomes a list.
func (d *Dialect) Offer(r *dialect.Request, tools []dialect.Tool) *dialect.Request {
	return d.Tools.Offer(asList(r), tools)
}

// FilterAnswers returns a filter that removes calls of hidden tools from answers.
func (d *Dialect) FilterAnswers(streamed bool, hidden func(tool string) bool) dialect.AnswerFilter {
	return assemble.NewFilter(streamed, &filter{State: assemble.State{Hidden: hidden, Numbers: map[int]int{}}, sequence: -1})
}

// filter implements assemble.Reader. The parts in its State are items.
//
// A reasoning item is bound to the item after it. If that is a hidden call, the client does not receive the reasoning
// either, so the reasoning items of a stream wait for the next item. The items after it in the same answer then get other
// ids for the client, since upstream would look for their reasoning by id.
type filter struct {
	assemble.State
	id       []byte // of the first answer
	complete bool   // this answer was completed
	closed   bool   // this answer has its end mark
	items    bool   // this answer had items
	begun    bool   // a hidden call of this answer has begun

	open  map[string]int // calls of this answer that the client has to answer, by id
	bound bool           // the last item is reasoning that the client received

	renames  bool  // reasoning of this answer was removed, and no other reasoning has followed yet
	waiting  []int // indexes of the reasoning items that wait for the next item
	sequence int   // sequence number of the next event for the client; negative before the first event
	resumeAt int   // sequence number of the first event that waits, or that the client does not receive until Finish
}

// Next starts another answer.
func (f *filter) Next() {
	f.NextAnswer()
	f.complete, f.closed, f.items, f.begun, f.renames, f.waiting = false, false, false, false, false, nil
	f.open, f.bound = nil, false
	f.sequence = f.resumeAt
}

// Forget drops the answers and keeps no more of them. No reasoning waits any longer.
func (f *filter) Forget() {
	f.State.Forget()
	f.waiting = nil
}

// PassesUnread reports whether an event that is too long to be read can be passed on.
func (f *filter) PassesUnread(head []byte) bool { return !f.begun && f.State.PassesUnread(head) }

// isHidden reports whether an item is a call of a hidden tool.
func (f *filter) isHidden(it *item) bool {
	return it.is("function_call") && f.Hidden(it.Get("name").Text())
}

// addItem adds a complete item to Parts. It returns the item as the client receives it, nil if it does not.
func (f *filter) addItem(v rawjson.Value) (shown []byte) {
	it := itemOf(v)
	f.items = true
	part := assemble.Part{Raw: v.Raw}
	if !f.Forgot {
		part.Raw = bytes.Clone(v.Raw)
	}
	switch {
	case f.isHidden(it):
		f.Concealed++
		call := it.call()
		if len(call.Arguments) > dialect.MaxArguments {
			call.Arguments = strings.Clone(call.Arguments[:dialect.MaxArguments+1])
			part.Raw = bytes.Clone(split.WithMember(v.Raw, "arguments", []byte(`"{}"`))) // its buffer is as large as the item was
		}
		part.Call = &call
		f.removeReasoning()
	case it.isReasoning():
		part.Shown = part.Raw
		f.renames = false
	case it.class() == toolResult: // of a call that the server has executed itself
		part.Shown = part.Raw
		id := it.resultID().Text()
		f.Own -= f.open[id]
		delete(f.open, id)
	default:
		part.Shown = f.renamed(part.Raw, "id")
		if id := it.callID(); id.Kind == rawjson.String {
			f.Own++
			if f.open == nil {
				f.open = map[string]int{}
			}
			f.open[id.Text()]++
		}
	}
	f.bound = it.isReasoning()
	f.AddPart(part)
	return part.Shown
}

// removeReasoning removes the reasoning at the end of this answer.
func (f *filter) removeReasoning() {
	f.renames = f.renames || f.bound
	f.bound = false
	for i := len(f.Parts) - 1; i >= 0; i-- {
		part := &f.Parts[i]
		if part.Shown == nil || !itemOf(rawjson.ValueOf(part.Raw)).isReasoning() {
			return
		}
		part.Shown = nil
		f.renames = true
	}
}

// renamed replaces the id in an object if upstream would use it to look for reasoning that was removed. It does not change the id of an
// approval request, since the client's answer refers to it.
func (f *filter) renamed(object []byte, key string) []byte {
	v := rawjson.ValueOf(object)
	id := split.Member(v, key)
	if !f.renames || id.Kind != rawjson.String || split.Member(v, "type").Is("mcp_approval_request") {
		return object
	}
	return split.WithMember(object, key, slices.Concat([]byte{'"'}, id.Inner(), []byte(`-1"`)))
}

// Said returns what the model said in this answer, with the message as it is sent back to upstream. It leaves out reasoning
// whose content only upstream has, and the ids of the items that are bound to it.
func (f *filter) Said() dialect.Said {
	said, items := f.Summary(f.complete || f.Framed && !f.closed)
	lost := false
	var kept [][]byte
	for _, raw := range items {
		it := itemOf(rawjson.ValueOf(raw))
		switch {
		case it.isReasoning() && it.isHollow():
			lost = true
			continue
		case it.isReasoning():
			lost = false
		case lost:
			raw = it.withoutID()
		}
		kept = append(kept, raw)
	}
	if len(kept) > 0 {
		said.Message = split.Join(kept)
	}
	return said
}

// isHollow reports whether a reasoning item has neither text nor sealed content.
func (it *item) isHollow() bool {
	sealed := split.Member(rawjson.ValueOf(it.Raw), "encrypted_content")
	return len(sealed.Inner())+len(it.Get("signature").Inner()) == 0 && !split.HasElements(it.Get("content"))
}

// Echo returns the items that the client received.
func (f *filter) Echo() []byte {
	if all := f.Shown(); len(all) > 0 {
		return split.Join(all)
	}
	return nil
}

// end reads the response object at the end of an answer. The object contains all items, which are read if the stream had none. If another
// answer follows, the client does not receive the reasoning at the end of this one, since the item that it is bound to never arrived.
func (f *filter) end(response rawjson.Value) {
	if !f.items {
		for element := range rawjson.Elements(split.Member(response, "output").Raw) {
			f.addItem(element)
		}
	}
	f.complete, f.closed = split.Member(response, "status").Is("completed"), true
	if f.OnlyHidden(f.complete) {
		f.removeReasoning()
	}
	f.SetUsage(split.Member(response, "usage"))
	if f.id == nil {
		f.id = bytes.Clone(split.Member(response, "id").Raw)
	}
}

// Whole reads an answer that is not streamed.
func (f *filter) Whole(body []byte) { f.end(rawjson.ValueOf(body)) }

// Rest returns an answer that is not streamed as the client receives it.
func (f *filter) Rest(body []byte) []byte { return f.total(f.withoutHidden(rawjson.ValueOf(body))) }

// withoutHidden removes the hidden tools from a response object.
func (f *filter) withoutHidden(response rawjson.Value) []byte {
	tools := split.Member(response, "tools")
	rest := split.Without(tools, func(t rawjson.Value) bool { return f.Hidden(split.Member(t, "name").Text()) })
	if rest == nil && tools.Kind == rawjson.Array {
		rest = []byte("[]")
	}
	return split.WithMember(response.Raw, "tools", rest)
}

// total returns the response object at the end, with all items that the client received, and the usage of all answers.
func (f *filter) total(response []byte) []byte {
	if !f.Differs() {
		return response
	}
	output := slices.Concat([]byte{'['}, f.Echo(), []byte{']'})
	if f.Forgot { // what is left of this answer
		items := split.Member(rawjson.ValueOf(response), "output")
		if output = split.Without(items, func(v rawjson.Value) bool { return f.isHidden(itemOf(v)) }); output == nil {
			output = []byte("[]")
		}
	}
	response = split.WithMember(response, "output", output)
	response = split.WithMember(response, "usage", f.TotalUsage())
	return split.WithMember(response, "id", f.id)
}

// Event reads an event of a stream.
func (f *filter) Event(data []byte) assemble.Output {
	event := rawjson.ValueOf(data)
	if n := split.Member(event, "sequence_number"); f.sequence < 0 && n.Kind == rawjson.Number {
		f.sequence = split.Integer(n)
	}
	kind := split.Member(event, "type").Text()
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if f.Answers > 0 {
			return assemble.Output{}
		}
		response := f.withoutHidden(split.Member(event, "response"))
		return assemble.Output{Text: f.renumbered(split.WithMember(data, "response", response))}
	case "response.completed", "response.incomplete", "response.failed":
		return f.endEvent(data, split.Member(event, "response"))
	}
	wasWaiting := len(f.waiting) > 0
	if kind == "response.output_item.added" || kind == "response.output_item.done" {
		item, index := split.Member(event, "item"), split.Integer(split.Member(event, "output_index"))
		done := kind == "response.output_item.done"
		if f.isHidden(itemOf(item)) {
			f.begun = true
			drop := f.dropWaiting()  // the reasoning before it
			delete(f.Numbers, index) // another item may have had it before
			if done {
				f.addItem(item)
			}
			return assemble.Output{Drop: drop}
		}
		data = f.itemEvent(data, item, index, done)
	}
	if at := split.Member(event, "output_index"); at.Kind == rawjson.Number {
		data = f.Renumber(f.renamed(data, "item_id"), "output_index", split.Integer(at))
	}
	if data == nil {
		return assemble.Output{}
	}
	waits := len(f.waiting) > 0
	if waits && !wasWaiting {
		f.resumeAt = f.sequence
	}
	return assemble.Output{Text: f.renumbered(data), Wait: waits}
}

// endEvent reads the event with the end of an answer, which is held back if the model called hidden tools only.
func (f *filter) endEvent(data []byte, response rawjson.Value) assemble.Output {
	f.end(response)
	onlyHidden := f.OnlyHidden(f.complete)
	drop := onlyHidden && f.dropWaiting()
	f.waiting = nil
	f.resumeAt = f.sequence
	data = f.renumbered(split.WithMember(data, "response", f.total(f.withoutHidden(response))))
	if onlyHidden {
		return assemble.Output{End: data, Drop: drop}
	}
	return assemble.Output{Text: data}
}

// dropWaiting takes back the numbers of the items that wait, and reports whether there are any.
func (f *filter) dropWaiting() bool {
	if len(f.waiting) == 0 {
		return false
	}
	f.sequence = f.resumeAt
	f.TakeBackNumbers(f.waiting)
	f.waiting = nil
	return true
}

// itemEvent reads an event with the start or the end (done) of an item that is not hidden.
func (f *filter) itemEvent(data []byte, item rawjson.Value, index int, done bool) []byte {
	if _, seen := f.Numbers[index]; !done || !seen {
		f.AssignNumber(index)
	}
	if done {
		return split.WithMember(data, "item", f.addItem(item))
	}
	if itemOf(item).isReasoning() {
		if !f.Forgot {
			f.waiting = append(f.waiting, index)
		}
		f.renames = false
		return data
	}
	f.waiting = nil
	return split.WithMember(data, "item", f.renamed(item.Raw, "id"))
}

// renumbered sets the sequence number of an event to the next one for the client.
func (f *filter) renumbered(event []byte) []byte {
	n := split.Member(rawjson.ValueOf(event), "sequence_number")
	if n.Kind != rawjson.Number {
		return event
	}
	if split.Integer(n) != f.sequence {
		event = split.WithMember(event, "sequence_number", assemble.Encode(f.sequence))
	}
	f.sequence++
	return event
}
