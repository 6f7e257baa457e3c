package condensetest

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Generator draws a conversation piece by piece, with the defects that agents have. Each conversation it returns continues the one
// before it.
type Generator struct {
	t        *rapid.T
	messages []session.Message
	ids      int
	lastID   string
}

// NewGenerator starts a conversation with a user message, in some cases after a system message.
func NewGenerator(t *rapid.T) *Generator {
	g := &Generator{t: t}
	if rapid.Bool().Draw(t, "system first") {
		g.say("system")
	}
	g.say("user")
	return g
}

// Grow adds up to n pieces and returns the whole conversation.
func (g *Generator) Grow(n int) []session.Message {
	for range rapid.IntRange(1, n).Draw(g.t, "pieces") {
		g.piece()
	}
	return slices.Clone(g.messages)
}

func (g *Generator) piece() {
	switch rapid.IntRange(0, 12).Draw(g.t, "piece") {
	case 0:
		g.say("system")
	case 1:
		g.say("user")
	case 2, 3:
		g.say("assistant")
	case 4, 5, 6:
		g.exchange(false)
	case 7:
		g.sealed()
	case 8: // a result without a call
		g.ids++
		g.result(fmt.Sprintf("orphan_%d", g.ids))
	case 9: // a duplicate result
		if g.lastID != "" {
			g.result(g.lastID)
		}
	case 10: // calls with missing results
		g.calls(false, g.fresh(), g.fresh())
		if rapid.Bool().Draw(g.t, "one result") {
			g.result(g.messages[len(g.messages)-1].Calls[0])
		}
	case 11: // a call with a late result, in an assistant message if the provider runs the tool
		id := g.fresh()
		g.calls(false, id)
		g.say(rapid.SampledFrom([]string{"user", "system", "assistant"}).Draw(g.t, "between"))
		g.add(session.Content{Role: rapid.SampledFrom([]string{"tool", "assistant"}).Draw(g.t, "answered by"), Result: id, Text: g.text()})
	case 12: // reused IDs
		g.calls(false, "call_0")
		g.result("call_0")
	}
}

// sealed adds exchanges, some with sealed reasoning.
func (g *Generator) sealed() {
	for i := range rapid.IntRange(1, 4).Draw(g.t, "sealed exchanges") {
		g.exchange(i == 0 || rapid.Bool().Draw(g.t, "signed"))
		if rapid.IntRange(0, 4).Draw(g.t, "reminder") == 0 {
			g.say("system")
		}
	}
}

func (g *Generator) exchange(sealed bool) {
	ids := make([]string, rapid.IntRange(1, 4).Draw(g.t, "calls"))
	for i := range ids {
		ids[i] = g.fresh()
	}
	g.calls(sealed, ids...)
	for _, id := range ids {
		g.result(id)
	}
	if rapid.IntRange(0, 6).Draw(g.t, "duplicate") == 0 {
		g.result(ids[0])
	}
}

func (g *Generator) fresh() string {
	g.ids++
	return fmt.Sprintf("call_%d", g.ids)
}

func (g *Generator) say(role string) { g.add(session.Content{Role: role, Text: g.text()}) }

func (g *Generator) result(id string) {
	g.lastID = id
	g.add(session.Content{Role: "tool", Result: id, Text: g.text() + g.printed()})
}

// printed returns tool output for some results: parts of a file that other results show too, coloured lines and repeated lines.
func (g *Generator) printed() string {
	kind := rapid.IntRange(0, 5).Draw(g.t, "printed")
	if kind > 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	if kind == 0 {
		b.WriteString("\x1b[31mred\x1b[0m\n" + strings.Repeat("waiting for the lock\n", 5))
	}
	from := rapid.SampledFrom([]int{0, 3, 10}).Draw(g.t, "from line")
	for n := from; n < rapid.SampledFrom([]int{4, 12, 25, 40}).Draw(g.t, "to line"); n++ {
		fmt.Fprintf(&b, "line %d of a file, which stands there in full length, and ends here\n", n)
	}
	return b.String()
}

func (g *Generator) calls(sealed bool, ids ...string) {
	c := session.Content{Role: "assistant"}
	for _, id := range ids {
		c.Calls = append(c.Calls, g.call(id))
	}
	g.add(c)
	g.messages[len(g.messages)-1].Sealed = sealed
}

// call returns a call, in some cases to a browser.
func (g *Generator) call(id string) session.Call {
	n := len(g.messages)
	switch rapid.IntRange(0, 4).Draw(g.t, "tool") {
	case 0:
		return session.Call{ID: id, Name: "browser_navigate", Arguments: fmt.Sprintf(`{"url":"https://site.example/page/%d"}`, n)}
	case 1:
		return session.Call{ID: id, Name: "browser_click", Arguments: fmt.Sprintf(`{"n":%d}`, n)}
	}
	return session.Call{ID: id, Name: "run", Arguments: fmt.Sprintf(`{"n":%d}`, n)}
}

// Edit changes one message, like a user who edits it, and returns the whole conversation. The generator goes on from there.
func (g *Generator) Edit() []session.Message {
	at := rapid.IntRange(0, len(g.messages)-1).Draw(g.t, "edit")
	content, err := Codec{}.Read(g.messages[at].Raw)
	if err != nil {
		panic(err) // the generator wrote it
	}
	content.Text += " edited"
	sealed := g.messages[at].Sealed
	g.messages[at] = Message(content)
	g.messages[at].Sealed = sealed
	return slices.Clone(g.messages)
}

// Fork goes back to an earlier message and continues from there.
func (g *Generator) Fork() []session.Message {
	at := rapid.IntRange(1, len(g.messages)).Draw(g.t, "fork")
	g.messages = g.messages[:at]
	g.piece()
	return slices.Clone(g.messages)
}

// Compact replaces all but the newest messages by one, like a client that writes its own summaries.
func (g *Generator) Compact() []session.Message {
	at := rapid.IntRange(0, len(g.messages)).Draw(g.t, "compact")
	rest := g.messages[at:]
	g.messages = nil
	g.say("user")
	g.messages = append(g.messages, rest...)
	return slices.Clone(g.messages)
}

func (g *Generator) add(c session.Content) { g.messages = append(g.messages, Message(c)) }

// text returns a text that no other message has.
func (g *Generator) text() string {
	n := rapid.SampledFrom([]int{0, 1, 5, 20, 100, 400}).Draw(g.t, "length")
	return fmt.Sprintf("message %d%s", len(g.messages), strings.Repeat(" words of it", n))
}
