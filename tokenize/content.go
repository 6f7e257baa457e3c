package tokenize

import "github.com/dewpoint-proxy/dewpoint/session"

// What a request costs on top of its text. The first three are from OpenAI's cookbook ("How to count tokens with
// tiktoken"); a tool call's framing is not published, and 8 is what its requests come to at most.
const (
	// ReplyPriming is counted once a request: the reply's opening.
	ReplyPriming = 3

	messageOverhead = 3
	nameOverhead    = 1
	callOverhead    = 8
)

// Message is the number of tokens that a message costs in a request: its framing, role, name, text, reasoning, tool
// calls, images and files. It is never 0.
func (e *Encoder) Message(c session.Content) int {
	n := messageOverhead + e.Count(c.Role) + e.Count(c.Text) + e.Count(c.Reasoning)
	if c.Name != "" {
		n += nameOverhead + e.Count(c.Name)
	}
	for _, call := range c.Calls {
		n += callOverhead + e.Count(call.Name) + e.Count(call.Arguments)
	}
	for _, image := range c.Images {
		n += imageTokens(image)
	}
	for _, file := range c.Files {
		n += fileTokens(file)
	}
	return n
}

// Tools is the number of tokens of a request's raw tools array, counted as the JSON text it is. Upstream rewrites it
// more tightly, so this is a little too much; Calibration learns by how much.
func (e *Encoder) Tools(raw []byte) int { return e.CountBytes(raw) }

// estimate is a high guess at the tokens in a number of bytes: one for three, rounded up. Prose has about four bytes a
// token and code three and a half.
func estimate(bytes int) int { return (bytes + 2) / 3 }
