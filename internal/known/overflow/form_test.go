package overflow

import (
	"encoding/json"
	"testing"
)

// ours is our count of the requests in the tests of forms.
const ours = 28000

// TestForms: wordings that no row has are recognised and believed of a long request, and their figures are read.
func TestForms(t *testing.T) {
	t.Parallel()
	type figures struct{ prompt, limit, output int }
	message := func(words string) string {
		text, err := json.Marshal(map[string]any{"error": map[string]any{"message": words, "type": "invalid_request_error", "param": nil, "code": nil}})
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	f := func(status int, body string, want figures) {
		t.Helper()
		o, ok := Recognise(status, "application/json", []byte(body))
		if !ok || o.Evidence == Stated || !o.Believable(ours) || o.ByOutput {
			t.Errorf("%d %s: %+v, recognised %t, believable %t", status, body, o, ok, o.Believable(ours))
		} else if got := (figures{o.Prompt, o.Limit, o.Output}); got != want {
			t.Errorf("%s: read %+v, want %+v", body, got, want)
		}
		if o.Believable(300) {
			t.Errorf("%s: believed of a short request", body)
		}
	}
	none := figures{}
	f(400, message("Unable to submit request because the input token count is 30123 but model only supports up to 16384. Reduce the input token count and try again."), figures{30123, 16384, 0})
	f(400, `{"detail":"Prompt too long: 30123 tokens exceeds max context window of 16384 tokens"}`, figures{30123, 16384, 0})
	f(413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4.1 model. Max size: 16384 tokens."}}`, figures{0, 16384, 0})
	f(400, message("Request length 30123 + 2048 is greater than max_seq_len 16384"), figures{30123, 16384, 2048})
	f(400, `{"error":{"message":"Prompt tokens (30123) exceeds context size (16384)","type":"context_exceeded","n_prompt_tokens":30123,"n_ctx":16384}}`, figures{30123, 16384, 0})
	f(400, `{"message":"ValidationException: Input exceeds the max input token limit"}`, none)
	f(400, message("input length 30123 > 16384"), figures{30123, 16384, 0})
	f(422, `{"detail":[{"type":"value_error","loc":["body","messages"],"msg":"Value error, the conversation has 30,123 tokens, which is over the 16,384 allowed","input":[]}]}`, figures{30123, 16384, 0})
	f(422, `{"detail":[{"loc":["body","prompt"],"msg":"prompt is longer than the model can take","type":"value_error"}]}`, none)
	f(400, message("Context window of 16.384 tokens surpassed: received 30.123"), figures{30123, 16384, 0})
	f(400, message("Your chat history is too long for this model."), none)
	f(400, message("Sequence length 30123 is out of bounds, this engine was built with max_input_len 16384"), figures{30123, 16384, 0})
	f(400, message("[TensorRT-LLM][ERROR] Prompt length (30123) exceeds maximum input length (16384). Set log level to info and check TRTLLM_MAX_INPUT_LEN"), figures{30123, 16384, 0})
	f(500-78, `{"error":"Input validation error: the prompt must have less than 16384 tokens, given 30123","error_type":"validation"}`, figures{30123, 16384, 0})
	f(400, `{"object":"error","message":"Requested token count 34219 (30123 input tokens + 4096 output tokens) goes beyond the context of 32768.","type":"BadRequestError","param":null,"code":400}`, figures{30123, 32768, 4096})
	f(400, message("The combined length of input (30123) and max_tokens (4096) must not exceed 32768."), figures{30123, 32768, 4096})
	f(400, message("Requested tokens exceed model capacity: 30k > 16k"), figures{30000, 16000, 0})
	f(400, `{"ErrorCode":"CLIENT_ERROR_FROM_MODEL","LogStreamArn":"","Message":"Received client error (400) from primary with message \"{\"error\":\"Input is longer than the context: 30123 vs 16384\"}\". See https://eu-west-1.console.aws.amazon.com/cloudwatch for more.","OriginalStatusCode":400}`, figures{30123, 16384, 0})
	f(400, `{"error_code":"BAD_REQUEST","message":"BAD_REQUEST: Total input tokens 30123 is higher than the endpoint's limit 16384\n"}`, figures{30123, 16384, 0})
	f(400, `"Prompt does not fit into the context window"`, none)
	f(400, "The dialog is too big for the model's context", none)
	f(400, `{"errors":[{"message":"AiError: context window limit reached (16384)","code":5021}],"success":false}`, figures{0, 16384, 0})
	f(400, `{"title":"Bad Request","detail":"This model accepts up to 16384 context tokens. You sent 30123.","status":400}`, figures{30123, 16384, 0})
	f(413, `{"error":{"message":"Please shorten your prompt: it has 30123 tokens and only 16384 are allowed"}}`, figures{30123, 16384, 0})
	f(400, `{"error":{"message":"bad request","code":"context_overflow"}}`, none)
	f(400, `{"error":{"message":"bad request","code":"InputTooLong"}}`, none)
	f(400, `{"error":{"type":"prompt_too_large","message":"bad request"}}`, none)
	f(200, `{"error":{"message":"Ran out of context: 30123 tokens needed, window is 16384","code":400}}`, figures{30123, 16384, 0})
	f(200, "event: error\ndata: {\"error\":{\"message\":\"Conversation exceeds what the model can hold\"}}\n\n", none)
	f(400, message("Cannot process 30123 tokens"), figures{30123, 0, 0})
	f(400, message("输入长度超过模型最大上下文长度限制 16384，当前 30123"), figures{30123, 16384, 0})
	f(400, message("上下文长度超限"), none)
	f(400, message("Die Eingabe ist zu lang: 30.123 Token, höchstens 16.384"), figures{30123, 16384, 0})
	f(400, message("Le contexte dépasse la limite de 16\u202f384 jetons"), figures{0, 16384, 0})
	f(400, message("La entrada supera el máximo de 16384 tokens"), figures{0, 16384, 0})
	f(400, message("プロンプトが長すぎます"), none)
	f(400, message("Слишком длинный промпт: 30123 токенов, максимум 16384"), figures{30123, 16384, 0})
	f(400, message("llm-7b-2024-08-06: prompt of 30_123 tokens, n_ctx=16384"), figures{30123, 16384, 0})
	f(400, message("Input tokens exceeded: 30123/16384"), figures{30123, 16384, 0})
	f(400, message("Prompt of 30123 tokens cannot fit in a KV cache of 16384 tokens"), figures{30123, 16384, 0})
	f(400, message("Sequence of 30123 tokens is longer than the specified maximum sequence length for this model (30123 > 16384). Running this sequence through the model will result in indexing errors"), figures{30123, 16384, 0})
	f(400, message("MLX: prompt (30123) > max_kv_size (16384)"), figures{30123, 16384, 0})
	f(400, message("n_tokens = 30123, n_ctx = 16384"), figures{30123, 16384, 0})
	f(400, message("Inputs tokens + max_new_tokens must be <= 16384. Given: 30123 input tokens and 512 max_new_tokens"), figures{30123, 16384, 512})
	f(400, message("Please reduce the length of the input"), none)
	f(400, message("the length of the conversation has outgrown the window of the model"), none)
	f(400, message("ctx overflow"), none)
	f(400, message("input_ids length 30123 exceeds max position embeddings 16384"), figures{30123, 16384, 0})
	f(400, message("token count 30 123 exceeds 16 384"), figures{30123, 16384, 0})
	f(400, message("Length of input: 30123. Limit: 16384."), figures{30123, 16384, 0})
	f(400, message("Over the token limit by 13739 tokens"), none)
	f(400, message("The total of 34219 tokens (30123 prompt + 4096 completion) exceeds the 32768 token context window"), figures{30123, 32768, 4096})
	f(400, message("TOKEN_LIMIT_EXCEEDED"), none)
	f(400, message("ContextLengthError"), none)
	f(400, message("The combined size of system prompt, tools and messages exceeds the context window"), none)
	f(400, message("decoder prompt (length 30123) is longer than 16384. Make sure that max_model_len is no smaller than the number of text tokens plus multimodal tokens. For image inputs, the number of image tokens depends on the number of images"), figures{30123, 16384, 0})
	f(400, message("invalid request: input too long for context window, max_tokens 1024"), figures{0, 0, 1024})
}

// TestFormsOfOtherErrors: errors about something else are not overflows, however long the request is.
func TestFormsOfOtherErrors(t *testing.T) {
	t.Parallel()
	f := func(status int, body string) {
		t.Helper()
		o, ok := Recognise(status, "application/json", []byte(body))
		if ok && o.Believable(ours) && !o.ByOutput {
			t.Errorf("%d %s: believed %+v", status, body, o)
		}
	}
	all := func(words string) {
		t.Helper()
		text, err := json.Marshal(words)
		if err != nil {
			t.Error(err)
		}
		for _, status := range []int{400, 413, 422} {
			f(status, `{"error":{"message":`+string(text)+`}}`)
			f(status, string(text))
		}
	}
	all("Rate limit: 30000 input tokens per minute exceeded")
	all("Limit of 16384 tokens per request and minute reached (TPM), 30123 requested")
	all("You have exceeded your monthly token allowance")
	all("Daily context limit exceeded for this key")
	all("Too many concurrent prompts, the maximum is 4")
	all("Your credit balance is too low for a prompt of 30123 tokens")
	all("Request exceeds the maximum size")
	all("Request too large (max 20MB)")
	all("failed to parse request: Payload Too Large")
	all("Input exceeds the limit of 20971520 bytes: got 33554432")
	all("Message is too large: 6.2 MB, at most 5 MB")
	all("Total input size 33554432 exceeds 20971520")
	all("Prompt is too long: at most 1000 characters are allowed")
	all("Too many images in the prompt: 21 > 20")
	all("messages.4.content.0.image: image exceeds 5 MB maximum")
	all("The input has too many PDF pages, maximum 100")
	all("At most 1 image(s) may be provided in one prompt.")
	all("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 300 instead.")
	all("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 64, but got a string with length 300 instead.")
	all("Invalid 'messages[2].name': string too long, maximum 64")
	all("Input tool name exceeds 64 characters")
	all("Function description of the input is too long, limit 1024")
	all("max_tokens is too large: 20480. This model supports at most 16384 completion tokens.")
	all("max_completion_tokens must not exceed 16384, got 32000")
	all("Invalid input: max_tokens must be less than or equal to 4096")
	all("Invalid request: max_new_tokens 40000 > 16384")
	all("max_output_tokens exceeds the model's limit")
	all("The sum of prompt tokens (500) and max_tokens (32000) exceeds 32768")
	all("thinking.budget_tokens: must be greater than 1024 and less than max_tokens")
	all("Requested 40000 output tokens, more than the maximum of 16384")
	all("Unsupported parameter: 'max_context_tokens'")
	all("Invalid value for 'max_prompt_tokens': must be a positive integer")
	all("Input should be less than or equal to 2")
	all("temperature: input is greater than 2")
	all("Too many stop sequences: 5, maximum 4")
	all("top_logprobs: input exceeds 20")
	all("messages: roles must alternate, too many user messages in sequence")
	all("The prompt was flagged by our content policy; the safety threshold was exceeded")
	all("Invalid API key: the token is too long")
	all("Your access token has exceeded its lifetime and expired")
	all("Unexpected token < at position 30123 of a JSON that is too long")
	all("The model context-max does not exist")
	all("Prompt processing timed out: deadline exceeded")
	all("tool_use.input: maximum nesting depth exceeded")
	all("messages: at least one message is required")
	all("Prompt has 900000 tokens, the limit is 800000") // far more than the request has
	all("This model's context is limited to 200k tokens, and the request is too long")
	all("See https://example.com/docs/context-length-exceeded for the format of a request.")
	all("Maximum number of tools exceeded: 300 > 128")
	all("Message content array exceeds 2048 items")
	all("The response would exceed max_tokens")
	all("Requested max_tokens 40000 is greater than limit 16384")
	all("max_tokens 32000 exceeds context window 16384")
	all("Too many tokens requested for completion: 40000 > 16384")
	all("TPM limit 30000 reached")
	all("upstream request timeout, prompt too long to process")
	all("Body exceeded 1mb limit")
	all("image dimensions exceed max allowed size: 8000 pixels")
	all("Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got a string with length 408 instead.")
	all("A maximum of 4 blocks with cache_control may be provided. Found 5.")
	all("Only up to 4 stop sequences are allowed")
	all("logit_bias: too many tokens, max 300")
	all("prompt_cache_retention exceeds the maximum")
	all("context_management: edits exceed 2")
	all("service_tier limit exceeded in messages")
	all("The session token limit of logins has been exceeded")
	all("Embedding input has too many items: 3000, maximum is 2048")
	f(422, `{"detail":[{"type":"less_than_equal","loc":["body","temperature"],"msg":"Input should be less than or equal to 2","input":30123}]}`)
	f(422, `{"detail":[{"type":"too_long","loc":["body","stop"],"msg":"The prompt has too many of them","input":[]}]}`)
	f(400, `{"error":{"message":"The input is too long.","param":"prompt_cache_key"}}`)
	f(400, `{"error":{"message":"The input is too long.","param":"tools[0].function.name"}}`)
	f(400, `{"error":{"message":"Bad value: input_value='the prompt exceeds the context'"}}`)
	f(500, `{"error":{"message":"The input is longer than the context"}}`)
	f(401, `{"error":{"message":"The input is longer than the context"}}`)
	f(429, `{"error":{"message":"The input is longer than the context"}}`)
	f(200, `{"error":{"message":"The input is longer than the context","code":429}}`)
	f(200, `{"choices":[{"message":{"content":"The input is longer than the context"}}]}`)
}
