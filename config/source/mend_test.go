package source

import "testing"

// TestMisspeltValuesAreAnsweredWithTheRightOne: a message about a value that cannot be read says how to write what it seems to mean.
func TestMisspeltValuesAreAnsweredWithTheRightOne(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, err := buildText(".yaml", text, "VALUE=75%")
		for i := range want {
			want[i] += " (line 1)"
		}
		wantProblems(t, err, want...)
	}
	number, whole := "must be a number, not a string: write ", "must be a whole number, not a string: write "
	for given, want := range map[string]string{
		"75%": "0.75", "7.5 %": "0.075", "33.3%": "0.333", "100k": "100000", "1.5M": "1500000", "100,000": "100000", "'100 000'": "100000", "'0,75'": "0.75", "'80000'": "80000",
	} {
		f("condenser: {type: llm, max_tokens: "+quoteComma(given)+"}", "condenser.max_tokens: "+number+want)
	}
	f("condenser: {type: llm, max_tokens: most}", "condenser.max_tokens: must be a number, not a string: write it without quotes or unit")
	f("condenser: {type: llm, max_size: 1k, keep_first: '2'}", "condenser.max_size: "+whole+"1000", "condenser.keep_first: "+whole+"2")
	f("condenser: {type: llm, max_size: 75%}", "condenser.max_size: must be a whole number, not a string: write it without quotes, decimal point or unit")
	f("condenser: {type: llm, max_size: 80.0}", "condenser.max_size: must be a whole number, not a decimal number: write 80")
	f("condenser: {type: llm, max_size: 9999999M}", "condenser.max_size: must be a whole number, not a string: write it without quotes, decimal point or unit")

	for given, want := range map[string]string{"yes": "true", "On": "true", "'true'": "true", "no": "false", "off": "false"} {
		f("observe: "+given, "observe: must be true or false, not a string: write "+want)
	}
	f("observe: 1", "observe: must be true or false, not a whole number: write true")
	f("observe: maybe", "observe: must be true or false, not a string: write it without quotes")

	for given, want := range map[string]string{"30d": "720h", "2 weeks": "336h", "1.5d": "36h", "90 minutes": "90m", "5min": "5m", "10 s": "10s", "750 ms": "750ms"} {
		f("store: {ttl: "+given+"}", "store.ttl: is not a duration: write "+want)
	}
	f("store: {ttl: 30}", "store.ttl: is not a duration: write it with a unit, such as 30s, 5m or 720h")
	f("limits: {max_body: 64M, max_header: 16 ki}", "limits.max_body: is not a size: write 64MiB", "limits.max_header: is not a size: write 16KiB")

	// What comes from the environment is not shown.
	f("condenser: {type: llm, max_tokens: '${VALUE}'}", "condenser.max_tokens: is not a finite number: write it as 0.75")
}

// quoteComma quotes a value that a flow mapping would split.
func quoteComma(value string) string {
	if value == "100,000" {
		return "'" + value + "'"
	}
	return value
}

// TestMisspeltKeysAndTypes: camel case, OpenHands' class names, and what is no section at all are answered with what is meant.
func TestMisspeltKeysAndTypes(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, err := buildText(".yaml", text)
		for i := range want {
			want[i] += " (line 1)"
		}
		wantProblems(t, err, want...)
	}
	f("condenser: {type: llm, maxSize: 80, keep-first: 1, maxTokens: 1}",
		"condenser.maxSize: is not a known key: did you mean max_size?",
		"condenser.keep-first: is not a known key: did you mean keep_first?",
		"condenser.maxTokens: is not a known key: did you mean max_tokens?")
	f("upstream: {baseUrl: x, apiKey: y}", "upstream.baseUrl: is not a known key: did you mean base_url?", "upstream.apiKey: is not a known key: did you mean api_key?")
	for given, want := range map[string]string{
		"LLMSummarizingCondenser": "llm", "LLMSummarizingCondenserConfig": "llm", "LLMSummarizingCondenserSettings": "llm", "NoOpCondenser": "noop", "no_op": "noop",
		"ObservationMaskingCondenserConfig": "observation_masking", "BrowserOutputCondenserConfig": "browser_output", "RecentEventsCondenserConfig": "recent_events",
		"AmortizedForgettingCondenser": "amortized_forgetting", "LLMAttentionCondenserConfig": "llm_attention", "StructuredSummaryCondenserConfig": "structured_summary",
		"ConversationWindowCondenser": "conversation_window", "CondenserPipelineConfig": "pipeline", "PipelineCondenser": "pipeline", "lmm": "llm", "llmSummarizing": "llm",
	} {
		f("condenser: {type: "+given+"}", `condenser.type: "`+given+`" is not a condenser type: did you mean `+want+"?")
	}
	f("condenser: [{type: tool_output_trim}, {type: LLMSummarizingCondenser, max_size: 80}, recent, {}]",
		"condenser: must be a section of keys, not a list: write it as {type: pipeline, condensers: [{type: tool_output_trim}, {type: llm, ...}, {type: recent_events}, {type: ...}]}")
	f("condenser: llm", "condenser: must be a section of keys, not a string: write it as {type: llm}")
	f("condenser: 7", "condenser: must be a section of keys, not a whole number: write it as {type: ...}")
	f("condenser: {type: pipeline, condensers: [lossless_trim]}", "condenser.condensers[0]: must be a section of keys, not a string: write it as {type: lossless_trim}")
}
