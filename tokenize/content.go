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

// counter counts the tokens of a text: an Encoder, or Estimator where there is none.
type counter interface{ Count(text string) int }

// Message is the number of tokens that a message costs in a request: its framing, role, name, text, reasoning, tool
// calls, images and files. It is never 0.
func (e *Encoder) Message(c session.Content) int { return message(e, &c) }

// Tools is the number of tokens of a request's raw tools array, counted as the JSON text it is. Upstream rewrites it
// more tightly, so this is a little too much; Calibration learns by how much.
func (e *Encoder) Tools(raw []byte) int { return e.CountBytes(raw) }

// Estimator counts by size alone, for when no encoder can be had. It never fails, and is 0 only for empty text. Like
// Estimate it is meant to be too high.
type Estimator struct{}

// Count is Estimate of a text's size.
func (Estimator) Count(text string) int { return Estimate(len(text)) }

// CountBytes is Estimate of a text's size.
func (Estimator) CountBytes(text []byte) int { return Estimate(len(text)) }

// Message is as Encoder.Message, estimated.
func (e Estimator) Message(c session.Content) int { return message(e, &c) }

// Tools is as Encoder.Tools, estimated.
func (Estimator) Tools(raw []byte) int { return Estimate(len(raw)) }

// Estimate is a high guess at the tokens in a number of bytes: one for three, rounded up. Prose has about four bytes a
// token and code three and a half.
func Estimate(bytes int) int {
	if bytes <= 0 {
		return 0
	}
	return (bytes-1)/3 + 1
}

func message(by counter, c *session.Content) int {
	n := messageOverhead + by.Count(c.Role) + by.Count(c.Text) + by.Count(c.Reasoning)
	if c.Name != "" {
		n += nameOverhead + by.Count(c.Name)
	}
	for i := range c.Calls {
		n += callOverhead + by.Count(c.Calls[i].Name) + by.Count(c.Calls[i].Arguments)
	}
	for _, image := range c.Images {
		n += imageTokens(image)
	}
	for _, file := range c.Files {
		n += fileTokens(file)
	}
	return n
}
