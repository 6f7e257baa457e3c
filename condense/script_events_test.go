package condense_test

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s *script) add(t *testing.T, text string) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line, n := filler(lines.Text())
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "system", "user", "agent":
			role := strings.Replace(verb, "agent", "assistant", 1)
			s.message(session.Content{Role: role, Text: rest + pad(n)}, false)
		case "call":
			s.call(rest, n)
		case "result":
			id, result, _ := strings.Cut(rest, " ")
			s.message(session.Content{Role: "tool", Result: id, Text: strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\e`, "\x1b").Replace(result) + pad(n)}, false)
		case "file":
			var id string
			var from, to int
			if _, err := fmt.Sscan(rest, &id, &from, &to); err != nil {
				t.Fatal(err)
			}
			text := ""
			for ; from <= to; from++ {
				text += fmt.Sprintf("%d: this line of the file is one of many others\n", from)
			}
			s.message(session.Content{Role: "tool", Result: id, Text: text}, false)
		case "turns":
			s.turns(t, rest, n)
		default:
			t.Fatalf("unknown event %q", line)
		}
	}
}

func (s *script) turns(t *testing.T, times string, n int) {
	count, err := strconv.Atoi(times)
	if err != nil {
		t.Fatal(err)
	}
	for range count {
		s.turn++
		id := fmt.Sprintf("t%d", s.turn)
		s.call(id, 0)
		s.message(session.Content{Role: "tool", Result: id, Text: fmt.Sprintf("output %d", s.turn) + pad(n)}, false)
	}
}

// call adds an assistant message with the tool calls that a line describes.
func (s *script) call(line string, n int) {
	fields := strings.Fields(line)
	name, url, answers, sealed := "run", "", "", false
	for _, f := range fields[1:] {
		switch key, value, _ := strings.Cut(f, "="); key {
		case "tool":
			name = value
		case "url":
			url = value
		case "sealed":
			sealed = true
		case "answers":
			answers = value
		}
	}
	c := session.Content{Role: "assistant", Result: answers}
	for _, id := range strings.Split(fields[0], ",") {
		arguments := `{"cmd":"` + id + pad(n) + `"}`
		if url != "" {
			arguments = `{"url":"` + url + `"}`
		}
		c.Calls = append(c.Calls, session.Call{ID: id, Name: name, Arguments: arguments})
	}
	s.message(c, sealed)
}

func (s *script) message(c session.Content, sealed bool) {
	m := condensetest.Message(c)
	m.Sealed = sealed
	s.messages = append(s.messages, m)
}

// filler cuts *N off a line.
func filler(line string) (string, int) {
	at := strings.LastIndex(line, " *")
	if at < 0 {
		return line, 0
	}
	n, err := strconv.Atoi(line[at+2:])
	if err != nil {
		return line, 0
	}
	return line[:at], n
}

func pad(n int) string { return strings.Repeat(" word", n) }
