package condense

import (
	"context"
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Prefix is the client's request, most of which upstream's cache may have from the request before it.
type Prefix interface {
	// Cached is how many tokens at the beginning of a view upstream reported to have in its cache; 0: none, or the view is not what is sent.
	Cached(v *session.View) int
	// Ask gives the body of the request with a question behind its messages, whose answer is text that may have that many tokens; nil: it
	// cannot be asked so.
	Ask(question string, output int) []byte
}

// rideOpen begins a question that is asked behind a client's own request.
const rideOpen = `Stop here, and write a record of this conversation. Its older messages are about to be removed; what you write stands in their
place, and the work goes on from it. Whatever you leave out is lost. Do not go on with the work, call no tool, and answer nothing that was
asked above.

Write one record of all messages but the newest ones, which stay. Carry over everything that earlier records in the conversation hold, as
far as it still matters, sections that are not listed here included. Where a value, a status or a decision changed, the newest one stays,
and those that it replaced go. What the user ruled stays until the user lifts it, whatever a tool says.`

// rides reports whether the request's own model is asked for the record, behind what its provider's cache has: whether that costs less than
// prompts of so many tokens for the summariser.
func (j *llmJob) rides(cold int) bool {
	in := &j.in
	_, plain := j.form.(prose)
	if !plain || in.Thread.Sent == nil || j.s.Prices == nil || j.made() > 0 || j.due.Need.Hard || j.span.late > 0 || in.Thread.Recall {
		return false
	}
	total := in.Total + askedTokens
	if in.Window > 0 && total+max(in.Reserved, j.output) > in.Window {
		return false
	}
	e := j.s.Prices(in.Model, j.model(*in))
	if e == nil || e.cold(in.Thread) {
		return false
	}
	cached := min(in.Thread.Sent.Cached(in.View), in.sentBefore())
	return cached > 0 && e.prompt(cached, total)+e.Answer*answeredTokens < e.In*float64(cold)+e.Out*answeredTokens
}

// sentBefore is how many tokens of the view the request before this one had; 0 if it had another view.
func (in *Input) sentBefore() (before int) {
	since := shownAtFirst(in.View)
	for i, tokens := range in.requests(in.Measure(in.View.Items)) {
		if i >= since {
			before = tokens
		}
	}
	return before
}

// errNotAsked is why no question was asked behind the client's request.
var errNotAsked = errors.New("the request cannot be asked for text")

// ride asks the request's own model behind its own prompt.
func (j *llmJob) ride(ctx context.Context) (c session.Condensation, err error) {
	r := Request{Endpoint: j.in.Upstream, Model: j.in.Model, System: prose{}.behind(j.focus()) + j.told(), User: j.boundary(), MaxOutput: j.output}
	if r.Body = j.in.Thread.Sent.Ask(r.System+"\n\n"+r.User, r.MaxOutput); r.Body == nil {
		return c, errNotAsked
	}
	reply, err := j.call(ctx, r)
	if err != nil {
		return c, err
	}
	j.rode = session.Usage{Input: reply.Usage.Input, Cached: reply.Usage.Cached, Output: reply.Usage.Output}
	if reply.Finish == "tool_calls" {
		return c, &SummaryError{Kind: FaultMalformed, Detail: "a call of a tool"}
	}
	err = j.in.work(ctx, func() (err error) {
		c, err = j.accept(reply, r)
		return err
	})
	return c, err
}

// boundary tells up to which message a record is asked for.
func (j *llmJob) boundary() string {
	last, stay := j.span.events[len(j.span.events)-1], 0
	for _, item := range j.in.View.Items {
		if item.Index >= 0 && j.in.View.History.Pos(item.Index) > last.id {
			stay++
		}
	}
	return fmt.Sprintf("The newest %d messages stay. The last one that is removed begins so:\n%s\n%s%s\n\n%s",
		stay, eventsOpen, last.text(minEventLength), eventsClose, j.form.ask(j.words()))
}
