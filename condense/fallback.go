package condense

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// plain makes the condensation of a request that must become smaller while no model is to be had: what was recorded before stays,
// with a note of what is missing, the user's words and exact references. It is the one place where that is made, for every condenser
// that asks a model. It calls nobody.
func (j *llmJob) plain() (session.Condensation, error) {
	c, err := j.condensation(j.span.unsummarised())
	c.Provisional = true
	if err != nil {
		return c, fmt.Errorf("condense %s without a model: %w", j.s.Name, err)
	}
	return c, nil
}

// plain goes without a ranking as a rolling summary goes without a model. Where there is no room for a note, the newest events stay.
func (j *attentionJob) plain() session.Condensation {
	cut, ok := j.s.Cut(j.in, j.due, session.Size{Events: 1, Tokens: j.allowance(j.in, j.due.Target.Tokens)})
	if ok {
		rolling := llmJob{LLM: j.LLM, in: j.in, need: j.due.Need, cut: cut, span: readSpan(j.in, cut), usage: j.usage}
		if c, err := rolling.plain(); err == nil {
			return c
		}
	}
	c := j.newest.condensation(j.due.Need.Reason, j.s.Name)
	c.Usage, c.Provisional = j.usage, true
	return c
}
