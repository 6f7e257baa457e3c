package condense

import (
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

func TestReadReply(t *testing.T) {
	long := "I'm sorry to report: " + strings.Repeat("the build failed. ", 30)
	for name, c := range map[string]struct {
		reply Reply
		want  string
		fault Fault
	}{
		"plain":           {Reply{Text: " STATE: fine \n", Finish: "stop"}, "STATE: fine", ""},
		"no finish":       {Reply{Text: "STATE: fine"}, "STATE: fine", ""},
		"fenced":          {Reply{Text: "```markdown\nSTATE: fine\n```"}, "STATE: fine", ""},
		"fenced, no info": {Reply{Text: "```\nSTATE: fine\n```"}, "STATE: fine", ""},
		"fence inside":    {Reply{Text: "STATE:\n```\nx\n```"}, "STATE:\n```\nx\n```", ""},
		"tagged":          {Reply{Text: "<summary>\nSTATE: fine\n</summary>"}, "STATE: fine", ""},
		"tagged in fence": {Reply{Text: "```xml\n<summary>STATE: fine</summary>\n```"}, "STATE: fine", ""},
		"thoughts":        {Reply{Text: "<think>hm</think>\nSTATE: fine"}, "STATE: fine", ""},
		"no beginning":    {Reply{Text: "hm, so\n</think>\n\nSTATE: fine"}, "STATE: fine", ""},
		"no end":          {Reply{Text: "STATE: fine\n<think>\nwas that all?"}, "STATE: fine", ""},
		"thinking":        {Reply{Text: "<thinking>hm</thinking>STATE: fine"}, "STATE: fine", ""},
		"analysis":        {Reply{Text: "<Analysis>\nhm\n</Analysis>\n<summary>STATE: fine</summary>"}, "STATE: fine", ""},
		"nested":          {Reply{Text: "<think>a <think>b</think> c</think>STATE: fine"}, "STATE: fine", ""},
		"twice":           {Reply{Text: "<think>a</think>STATE:\n<think>b</think>\nfine"}, "STATE:\n\nfine", ""},
		"spoken of":       {Reply{Text: "STATE: strips <think> and </think> tags"}, "STATE: strips <think> and </think> tags", ""},
		"never ends":      {Reply{Text: "<think>STATE: fine"}, "", FaultEmpty},
		"own tags":        {Reply{Text: record.Summary{Record: "STATE: fine"}.String()}, "STATE: fine", ""},
		"long apology":    {Reply{Text: long}, strings.TrimSpace(long), ""},
		"empty":           {Reply{Finish: "stop"}, "", FaultEmpty},
		"blank":           {Reply{Text: " \n"}, "", FaultEmpty},
		"only a tag":      {Reply{Text: "<summary></summary>"}, "", FaultEmpty},
		"only thoughts":   {Reply{Text: "<think>hm</think>"}, "", FaultEmpty},
		"refusal field":   {Reply{Text: "STATE: fine", Refusal: "no"}, "", FaultRefused},
		"content filter":  {Reply{Text: "STATE: fine", Finish: "content_filter"}, "", FaultRefused},
		"too long":        {Reply{Text: "STATE: fi", Finish: "length"}, "", FaultTruncated},
	} {
		got, err := ReadReply(c.reply)
		var fault Fault
		if e, ok := errors.AsType[*SummaryError](err); ok {
			fault = e.Kind
		}
		if got != c.want || fault != c.fault {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestSectioned(t *testing.T) {
	for text, want := range map[string]bool{
		"USER_CONTEXT: build it": true, "fine\n- CURRENT_STATE: done": true, "## User context\nbuild it": true, "**Goals**: build": true,
		"КОНТЕКСТ: дом": true, "1. TASKS: none": true, "ok": false, "Sure, I will now run the tests: go test": false, "Note: done": false,
	} {
		if hasSection(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
