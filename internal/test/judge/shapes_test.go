package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// agent writes requests as agents do: it keeps a history, sends it whole, and appends the answer.
type agent struct {
	headers map[string]string
	system  string
	history []any
	calls   int
	name    string
	out     *[]wire
}

func newAgent(out *[]wire, name string, headers ...string) *agent {
	a := &agent{system: "You are an agent.", name: name, out: out, headers: map[string]string{"authorization": "x", "content-type": "application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		a.headers[headers[i]] = headers[i+1]
	}
	return a
}

func msg(role, content string) map[string]any {
	return map[string]any{"role": role, "content": content}
}

func (a *agent) user(text string) *agent { a.history = append(a.history, msg("user", text)); return a }

// send sends a history with an answer, without storing it.
func (a *agent) send(status int, text string, calls []any, messages ...any) {
	w := wire{Path: "/v1/chat/completions", Headers: a.headers}
	all := append([]any{msg("system", a.system)}, messages...)
	body, err := json.Marshal(map[string]any{"model": "gpt-4o", "messages": all})
	if err != nil {
		panic(err)
	}
	w.body, w.Answer.Status, w.Answer.Text = body, status, text
	for _, c := range calls {
		f := c.(map[string]any)["function"].(map[string]string)
		w.Answer.ToolCalls = append(w.Answer.ToolCalls, struct{ ID, Name, Arguments string }{
			c.(map[string]any)["id"].(string), f["name"], f["arguments"],
		})
	}
	*a.out = append(*a.out, w)
}

// says ends a turn with a text.
func (a *agent) says(text string) *agent {
	a.send(200, text, nil, a.history...)
	a.history = append(a.history, msg("assistant", text))
	return a
}

// does makes a tool call and appends its result.
func (a *agent) does(arguments, result string) *agent {
	a.calls++
	call := map[string]any{"id": fmt.Sprintf("call_%s_%012d", a.name, a.calls), "type": "function",
		"function": map[string]string{"name": "tool", "arguments": arguments}}
	a.send(200, "", []any{call}, a.history...)
	a.history = append(a.history, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}},
		map[string]any{"role": "tool", "tool_call_id": call["id"], "content": result})
	return a
}

// message returns a message of the request by its index, not counting the system message.
func (w *wire) message(i int) any {
	var body struct{ Messages []any }
	if err := json.Unmarshal(w.body, &body); err != nil {
		panic(err)
	}
	return body.Messages[i+1]
}

// fails sends the history, which upstream refuses with the given status.
func (a *agent) fails(status int) *agent { a.send(status, "", nil, a.history...); return a }

// Messages that Aider 0.86 inserts.
const aidersFiles = "I have *added these files to the chat* so you can go ahead and edit them.\n\n"

var aidersReminder = strings.Repeat("Each change is a block with what is searched for and what takes its place.\n", 3)

// putBehind appends a run to out with files after the history, which change with each step, and optionally with a map before the history and a
// reminder after its newest message.
func putBehind(out *[]wire, what, files, before, reminder string) {
	a := newAgent(out, "a")
	tasks := []string{"Add a counter to the " + what + ".", "Now count the errors, too.", "Print both at the end."}
	if reminder != "" {
		a.system += "\n" + reminder
	}
	for step, task := range tasks {
		answer := fmt.Sprintf("Step %d is done: %s.go has what you asked for, and its test.", step, what)
		var messages []any
		if before != "" {
			messages = append(messages, msg("user", before+fmt.Sprint("parser.go: ", step, " functions")), msg("assistant", "Ok, I won't edit those."))
		}
		messages = append(messages, a.history...)
		asked := task
		if reminder != "" {
			asked += "\n\n" + reminder
		}
		messages = append(messages, msg("user", fmt.Sprintf("%sparser.go, version %d", files, step)), msg("assistant", "Ok."), msg("user", asked))
		a.send(200, answer, nil, messages...)
		a.history = append(a.history, msg("user", task), msg("assistant", answer))
		if step == 0 {
			a.history = append(a.history, msg("user", "I committed the changes with git hash 1a2b3c4."), msg("assistant", "Ok."))
		}
	}
}

// TestIdentity checks the sessions and threads of agents' requests against those that a person would see.
func TestIdentity(t *testing.T) {
	shapes := map[string]struct {
		play func(out *[]wire)
		want string
	}{
		"a loop without any id": {func(out *[]wire) {
			newAgent(out, "a").user("count the lines").does(`{"c":"ls"}`, "notes.txt").does(`{"c":"wc"}`, "3").says("Three lines.").
				user("and words?").does(`{"c":"wc -w"}`, "9").says("Nine.")
		}, "A1 A1 A1 A1 A1"},
		"two runs that begin alike": {func(out *[]wire) {
			newAgent(out, "a").user("count the lines").does(`{"c":"ls"}`, "notes.txt").says("Three.")
			newAgent(out, "b").user("count the lines").does(`{"c":"find"}`, "notes.txt").says("Three.")
		}, "A1 A1 B1 B1"},
		"two runs in turns": {func(out *[]wire) {
			var one, two []wire
			newAgent(&one, "a").user("count the lines").does(`{"c":"ls"}`, "n").does(`{"c":"wc"}`, "3").says("Three.")
			newAgent(&two, "b").user("count the words").does(`{"c":"ls"}`, "n").does(`{"c":"wc"}`, "9").says("Nine.")
			for i := range one {
				*out = append(*out, one[i], two[i])
			}
		}, "A1 B1 A1 B1 A1 B1"},
		"refused and sent again": {func(out *[]wire) {
			newAgent(out, "a").user("count the lines").fails(429).fails(429).does(`{"c":"ls"}`, "n").fails(500).says("Three.")
		}, "A1 A1 A1 A1 A1"},
		"the system prompt changes": {func(out *[]wire) {
			a := newAgent(out, "a").user("wait for midnight").does(`{"c":"date"}`, "23:59")
			a.system = "You are an agent. It is another day."
			a.does(`{"c":"date"}`, "00:00").says("Midnight.")
		}, "A1 A1 A1"},
		"a title under the same id": {func(out *[]wire) {
			title := newAgent(out, "t", "x-session-id", "s-1")
			title.system = "You are a title generator. You output ONLY a title."
			title.user("Generate a title for this conversation:\n").user("count the lines").says("Counting lines")
			newAgent(out, "a", "x-session-id", "s-1").user("count the lines").does(`{"c":"ls"}`, "n").says("Three.")
		}, "A1 A2 A2"},
		"a title without an id, quoting the answer": {func(out *[]wire) {
			a := newAgent(out, "a").user("count the lines").does(`{"c":"ls"}`, "n")
			a.send(200, "I read the file.", nil, a.history...)
			newAgent(out, "t").user("Given the following... please reply with a title for the chat.\n\nI read the file.").says("Title")
			a.history = append(a.history, msg("assistant", "I read the file."))
			a.user("go on").says("Done.")
		}, "A1 A1 A2 A1"},
		"a sub-agent with a parent id": {func(out *[]wire) {
			a := newAgent(out, "a", "x-session-id", "main").user("delegate").does(`{"task":"read"}`, "started")
			newAgent(out, "s", "x-session-id", "sub", "x-parent-session-id", "main").user("read").does(`{"c":"cat"}`, "x").says("Read.")
			a.says("Done.")
		}, "A1 A2 A2 A1"},
		"a sub-agent without any id": {func(out *[]wire) {
			a := newAgent(out, "a").user("delegate").does(`{"description":"look","prompt":"read notes.txt and summarise what it says"}`, "started")
			newAgent(out, "s").user("<reminder>\nbe brief\n</reminder>\nread notes.txt and summarise what it says").does(`{"c":"cat"}`, "x").says("Read.")
			a.says("Done.")
		}, "A1 A2 A2 A1"},
		"sub-agents in turns under one id": {func(out *[]wire) {
			var one, two, three []wire
			newAgent(&one, "a", "x-session-id", "s").user("delegate").does(`{"t":"x"}`, "ok").does(`{"t":"y"}`, "ok").says("Done.")
			newAgent(&two, "b", "x-session-id", "s").user("task x").does(`{"c":"1"}`, "ok").does(`{"c":"2"}`, "ok").says("x.")
			newAgent(&three, "c", "x-session-id", "s").user("task y").does(`{"c":"3"}`, "ok").does(`{"c":"4"}`, "ok").says("y.")
			for i := range one {
				*out = append(*out, one[i], two[i], three[i])
			}
		}, "A1 A2 A3 A1 A2 A3 A1 A2 A3"},
		"guesses of the user's next words": {func(out *[]wire) {
			a := newAgent(out, "a").user("count the lines").does(`{"c":"ls"}`, "n").says("Three lines.")
			a.send(200, "count the words", nil, append(append([]any{}, a.history...), msg("user", "[SUGGESTION MODE: Suggest what the user types next.]"))...)
			a.user("print the first line").says("alpha")
			a.send(200, "print the second", nil, append(append([]any{}, a.history...), msg("user", "[SUGGESTION MODE: Suggest what the user types next.]"))...)
			a.user("thanks").says("Welcome.")
		}, "A1 A1 A2 A1 A3 A1"},
		"the client compacts, without any id": {func(out *[]wire) {
			a := newAgent(out, "a").user("count the lines").does(`{"c":"ls"}`, "n").does(`{"c":"wc"}`, "3")
			const summary = "The user asked to count the lines of notes.txt; ls and wc were run: three lines."
			a.send(200, summary, nil, append(append([]any{}, a.history...), msg("user", "Your task is to create a detailed summary of the conversation so far, paying attention to detail."))...)
			b := newAgent(out, "b").user("This session is being continued from a previous conversation.\n" + summary + "\nGo on.")
			b.does(`{"c":"cat"}`, "x").says("Done.")
		}, "A1 A1 A2 A3 A3"},
		"the client compacts and keeps its newest calls": {func(out *[]wire) {
			a := newAgent(out, "a").user("count the lines").does(`{"c":"ls"}`, "n").does(`{"c":"wc"}`, "3")
			tail := a.history[len(a.history)-2:]
			b := newAgent(out, "b").user("Earlier work was left out.")
			b.history = append(b.history, tail...)
			b.says("Three.")
		}, "A1 A1 A2"},
		"the client cuts old results": {func(out *[]wire) {
			a := newAgent(out, "a").user("study").does(`{"c":"cat"}`, "very long").does(`{"c":"grep"}`, "short")
			a.history[2].(map[string]any)["content"] = "[cut]"
			a.does(`{"c":"wc"}`, "3").says("Done.")
		}, "A1 A1 A2 A2"},
		"an answer is asked for again": {func(out *[]wire) {
			a := newAgent(out, "a").user("a poem").says("Roses are red").user("more").says("Violets are blue")
			b := newAgent(out, "a").user("a poem").says("Roses are red").user("another one")
			*out = (*out)[:2] // b repeats the rest
			_ = a
			b.says("Sky so wide")
		}, "A1 A1 A2"},
		"the agent speaks first": {func(out *[]wire) {
			newAgent(out, "a").says("Hello, how can I help you today?").user("count the lines").does(`{"c":"wc"}`, "3").says("Three.")
			newAgent(out, "b").says("Hello, how can I help you today?").user("count the words").says("Nine.").user("sure?").says("Yes.")
		}, "A1 A1 A1 B1 B1 B1"},
		"runs that share an instruction": {func(out *[]wire) {
			newAgent(out, "a").user("You work in a sandbox.").user("count the lines").does(`{"c":"ls"}`, "n").says("Three.")
			newAgent(out, "b").user("You work in a sandbox.").user("count the words").does(`{"c":"ls"}`, "n").says("Nine.")
			newAgent(out, "c").user("You work in a sandbox.").user("sort the lines").says("Done.")
		}, "A1 A1 B1 B1 C1"},
		"runs that share examples": {func(out *[]wire) {
			for _, name := range []string{"a", "b", "c"} {
				a := newAgent(out, name).user("How many lines has x?")
				a.history = append(a.history, msg("assistant", "I run wc -l x."))
				a.user("It says 4.")
				a.history = append(a.history, msg("assistant", "Four."))
				a.user("Now do "+name).does(`{"c":"wc"}`, name).says("That is it.")
			}
		}, "A1 A1 B1 B1 C1 C1"},
		"runs that are answered alike": {func(out *[]wire) {
			newAgent(out, "a").user("You are a tester.").says("Ready.").user("test a").does(`{"c":"a"}`, "ok").says("Good.")
			newAgent(out, "b").user("You are a tester.").says("Ready.").user("test b").does(`{"c":"b"}`, "ok").says("Good.")
		}, "A1 A1 A1 B1 B1 B1"},
		"files are put behind the history": {func(out *[]wire) { // in an unknown form: each step forks the thread at the position of the files
			putBehind(out, "parser", "These are my files:", "", "")
		}, "A1 A2 A3"},
		"Aider's files, map and reminder": {func(out *[]wire) {
			putBehind(out, "parser", aidersFiles, "Here are summaries of some files present in my git repository.\n", aidersReminder)
		}, "A1 A1 A1"},
		"two runs of Aider's": {func(out *[]wire) {
			putBehind(out, "lexer", aidersFiles, "Here are summaries of some files present in my git repository.\n", aidersReminder)
			putBehind(out, "parser", aidersFiles, "Here are some READ ONLY files, provided for your reference.\n", "")
		}, "A1 A1 A1 B1 B1 B1"},
		"a first task is asked for again, in other words": {func(out *[]wire) {
			newAgent(out, "a").user("count the lines").user("of x").does(`{"c":"wc x"}`, "3").says("Three.")
			b := newAgent(out, "b").user("count the lines")
			b.history = append(b.history, (*out)[1].message(2), (*out)[1].message(3))
			b.user("of y").says("Nine.")
		}, "A1 A1 A2"},
		"two ids, one history": {func(out *[]wire) {
			newAgent(out, "a", "x-session-id", "one").user("count the lines").does(`{"c":"ls"}`, "n").says("Three.")
			newAgent(out, "a", "x-session-id", "two").user("count the lines").does(`{"c":"ls"}`, "n").says("Three.")
		}, "A1 A1 B1 B1"},
	}
	for name, s := range shapes {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var requests []wire
			s.play(&requests)
			if got := exchangeAll(t, newTestStage(t), newNamer(), requests); got != s.want {
				t.Errorf("\ngot  %s\nwant %s", got, s.want)
			}
		})
	}
}
