package overflow

// limitErrors are the words of errors that mention tokens but are about a rate or an account. They take precedence over rows:
// the remedy is to wait or to pay.
var limitErrors = []string{
	"tokens per min", // OpenAI, Groq: "Request too large for model ... on tokens per minute (TPM)"
	"tokens per day",
	"requests per min",
	"rate limit",
	"rate_limit",
	"ratelimiterror",
	"too many requests",
	"please wait before trying again", // Bedrock: "Too many tokens, please wait before trying again."
	"throttlingexception",
	"quota",
}

// loadErrors are the words of errors that are about the load of a server, apart from those about a rate.
var loadErrors = []string{"overloaded", "rate-limited", "unavailable", "at capacity"}

// echoes are what validators write before a quoted part of the request. Words after them are the agent's own.
var echoes = []string{"input_value=", "'input':", `"input":`}

// rows lists the wordings of overflows. The first row that matches any text of an error decides, so the most specific rows come
// first, and words without numbers last. Each row has a source: "owner/repository#n" is an issue or a pull request on
// GitHub, "owner/repository path" a file there.
var rows = compile([]row{
	// ---- OpenAI's original wording, and variants of it. ----

	// OpenAI with functions and max_tokens: nanbingxyz/5ire#268.
	{words: "maximum context length is {limit} tokens. however, you requested {_} tokens ({prompt} in the messages, {prompt} in the functions, and {output} in the completion)"},
	// OpenAI: The-Vibe-Company/quivr#505. Azure: Azure/azure-sdk-for-net#41892. DeepSeek: FoundationAgents/OpenManus#62.
	// vLLM to 0.10.1: vllm-project/vllm#20409. llama-cpp-python: abetlen/llama-cpp-python llama_cpp/server/errors.py. Once without
	// the space before the parenthesis: ikechan8370/chatgpt-plugin#219.
	{words: "maximum context length is {limit} tokens. however, you requested {_}*({prompt} in the messages, {output} in the completion)"},
	// OpenAI's first form, with a comma: acheong08/ChatGPT#501, chat-ollama#130.
	{words: "maximum context length is {limit} tokens, however you requested {_} tokens ({prompt} in your prompt; {output} for the completion)"},
	// OpenAI without max_tokens, the sum first and its parts after it: bytedance/deer-flow#310, chathub-dev/chathub#126.
	{words: "maximum context length is {limit} tokens. however, your messages resulted in {prompt} tokens"},
	// OpenAI GPT-5: cline/cline#5474. Azure: BerriAI/litellm#15968. The limit is the input's.
	{words: "input tokens exceed the configured limit of {limit} tokens. your messages resulted in {prompt} tokens"},
	// The same, truncated by LiteLLM: BerriAI/litellm#18927.
	{words: "input tokens exceed the configured limit of {limit} tokens"},

	// ---- vLLM; versions as in vllm-project/vllm vllm/entrypoints/openai/serving_engine.py and vllm/renderers/params.py.

	// From 0.18: AIDotNet/OpenCowork#82, hotovo/aider-desk#919. It stops counting one token above the limit.
	{words: "maximum context length is {limit} tokens. however, you requested {output} output tokens and your prompt contains at least {prompt+} input tokens"},
	{words: "maximum context length is {limit} tokens. however, you requested {output} output tokens and your prompt contains {prompt} input tokens"},
	// From 0.18, for a text so long that it is not counted at all.
	{words: "maximum context length is {limit} tokens. however, you requested {output} output tokens and your prompt contains {_} characters (more than {_} characters, which is the upper bound for {prompt+} input tokens)"},
	// max_tokens above the window; early versions without a space before "cannot".
	{words: "_tokens={output}*cannot be greater than max_model_len=max_total_tokens={limit}"},
	// Before 0.18: vllm/renderers/params.py at 017638d, which also stops counting one token above the limit.
	{words: "you passed {prompt+} input tokens and requested {output} output tokens. however, the model's context length is only {limit}"},
	{words: "you passed {_} input characters and requested {output} output tokens. however, the model's context length is only {limit}*maximum input length of {prompt+}"},
	// 0.10.2 to 0.17: stepfun-ai/Step-Audio-R1#3, vllm-project/vllm#33418.
	{words: "is too large: {output}. this model's maximum context length is {limit} tokens and your request has {prompt} input tokens"},
	// 0.10.2 to 0.17, for the input alone.
	{words: "maximum context length is {limit} tokens. however, your request has {prompt} input tokens"},
	// To 0.10.1, without max_tokens: langchain-ai/langchain#24058.
	{words: "maximum context length is {limit} tokens. however, you requested {prompt} tokens in the messages"},
	// The engine's own check: xorbitsai/inference#3785, unslothai/unsloth#2666, QwenLM/Qwen3-Omni#122.
	{words: "prompt (length {prompt}) is longer than the maximum model length of {limit}"},
	// The same about 0.6: vllm-project/vllm#12165.
	{words: "prompt (total length {prompt}) is too long to fit into the model (context length {limit})"},
	// To 0.5, where max_tokens was what the prompt left: vllm-project/vllm#4667, #5700. Clients that send -1 mean no limit.
	{words: "max_tokens must be at least 1, got -{_}", but: "got -1."},

	// ---- SGLang; sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py. ----

	{words: "exceeds the model's maximum context length of {limit} tokens. you requested a total of {_} tokens: {prompt} tokens from the input messages and {output} tokens for the completion"},
	// QwenLM/Qwen3#1321, sgl-project/sglang#8096. Together uses the same words.
	{words: "the input ({prompt} tokens) is longer than the model's context length ({limit} tokens)"},
	// sgl-project/sglang#4048: the limit is what its memory holds.
	{words: "input length ({prompt} tokens) exceeds the maximum allowed length ({limit} tokens)"},
	// Through LiteLLM, truncated: earendil-works/pi packages/ai/src/utils/overflow.ts.
	{words: "exceeds the model's maximum context length of {limit} tokens"},

	// ---- llama.cpp and servers built on it. ----

	// llama.cpp from October 2025: langchain-ai/openwiki#648, with n_prompt_tokens and n_ctx.
	{words: "request ({prompt} tokens) exceeds the available context size ({limit} tokens)"},
	// llama.cpp from September 2025, with numbers: ggml-org/llama.cpp#15780, oobabooga/textgen#7257. Before: without.
	{words: "exceeds the available context size"},
	// llama-cpp-python: rllm-team/rllm#55.
	{words: "requested tokens ({prompt}) exceed context window of {limit}"},
	// LM Studio 0.4.21, as the first event of a stream with status 200: lmstudio-ai/lmstudio-bug-tracker#2322,
	// aaif-goose/goose#11318.
	{words: "the input has {prompt} tokens, but the context length only supports {limit} tokens"},
	// LM Studio 0.3.15: lmstudio-ai/lmstudio-bug-tracker#546, cline/cline#3664.
	{words: "trying to keep the first {prompt} tokens when context the overflows. however, the model is loaded with context length of only {limit} tokens"},
	// LM Studio: Gitlawb/openclaude#353.
	{words: "greater than the context length (n_keep: {prompt}>= n_ctx: {limit})"},
	{words: "greater than the context length (n_keep: {prompt} >= n_ctx: {limit})"},
	// LM Studio: anomalyco/opencode#11141.
	{words: "cannot truncate prompt with n_keep ({prompt}) >= n_ctx ({limit})"},
	// LM Studio: anomalyco/opencode#2259.
	{words: "tokens to keep from the initial prompt is greater than the context length"},
	// LM Studio: lmstudio-ai/lmstudio-bug-tracker#1251; in 2023: lmstudio-ai/examples#29.
	{words: "reached context length of {limit} tokens"},
	{words: "input length {prompt} exceeds context length {limit}"},
	// LM Studio's MLX engine: lmstudio-ai/lmstudio-bug-tracker#2339.
	{words: "context size has been exceeded"},
	// Ollama's cloud, and Fireworks (ogx-ai/ogx#697): openclaw/openclaw src/agents/pi-embedded-helpers/errors.ts.
	{words: "the prompt is too long: {prompt}, model maximum context length: {limit}"},
	// Ollama's cloud: openclaw/openclaw src/agents/pi-embedded-helpers/errors.ts, earendil-works/pi
	// packages/ai/src/utils/overflow.ts. A local Ollama truncates silently unless configured not to.
	{words: "prompt too long; exceeded max context length by {_} tokens"},
	{words: "prompt too long; exceeded context length"},
	// Ollama configured not to truncate: ollama/ollama runner/ollamarunner/runner.go; older: server/routes.go.
	{words: "input length exceeds the context length"},
	{words: "input length exceeds maximum context length"},

	// ---- Gateways. ----

	// OpenRouter, with one part for each kind of input: earendil-works/pi#6378, Aider-AI/aider#3721,
	// OpenHands/OpenHands#9937.
	{words: "maximum context length is {limit} tokens. however, you requested about {total} tokens (*, {output} in the output)"},
	// OpenRouter without max_tokens: aaif-goose/goose#1303, topoteretes/cognee#1061.
	{words: "maximum context length is {limit} tokens. however, you requested about {prompt} tokens ("},
	// GitHub Copilot: microsoft/vscode#289219, opencode-ai/opencode#305.
	{words: "prompt token count of {prompt} exceeds the limit of {limit}"},
	// SiliconFlow: chatboxai/chatbox#2060, langgenius/dify#19394; with max_tokens: bytedance/deer-flow#376.
	{words: "length of prompt_tokens ({prompt}) must be less than max_seq_len ({limit})"},
	{words: "max_total_tokens ({_}) must be less than or equal to max_seq_len ({limit})"},
	// Together: stanford-crfm/helm#2079. TGI: huggingface/text-generation-inference#628.
	{words: "tokens + `max_new_tokens` must be <= {limit}. given: {prompt} `inputs` tokens and {output} `max_new_tokens`"},
	// TGI, for the input alone: huggingface/text-generation-inference#695.
	{words: "`inputs` must have less than {limit} tokens. given: {prompt}"},
	// Poolside and others through OpenRouter: earendil-works/pi packages/ai/src/utils/overflow.ts.
	{words: "input length ({prompt}) exceeds model's maximum context length ({limit})"},
	{words: "input length {prompt} exceeds the maximum allowed input length of {limit} tokens"},
	{words: "prompt has {prompt} tokens, but the configured context size is {limit} tokens"},

	// ---- Other model vendors. ----

	// Anthropic, and Bedrock with "The model returned the following errors:" before it: earendil-works/pi#102,
	// aaif-goose/goose#7504.
	{words: "prompt is too long: {prompt} tokens > {limit} maximum"},
	// Anthropic: anthropics/claude-code#228, BrokkAi/brokk-app#540; without the backticks: stackblitz/bolt.new#7414.
	{words: "exceed context limit: {prompt} + {output} > {limit}"},
	// Gemini: google-gemini/gemini-cli#6678, #4231; since 2.5 without the count: BerriAI/litellm#18282.
	{words: "input token count ({prompt}) exceeds the maximum number of tokens allowed ({limit})"},
	{words: "input token count exceeds the maximum number of tokens allowed ({limit})"},
	{words: "input token count exceeds the maximum number of tokens allowed"},
	// Mistral, code 3051: recorded by danny-avila/agents src/scripts/context-overflow-probe.ts.
	{words: "prompt contains {prompt} tokens*too large for model with {limit} maximum context length"},
	// xAI, whose error is a string: cline/cline#3120, chenyme/grok2api#693. The limit is the input's.
	{words: "maximum prompt length is {limit} but the request contains {prompt} tokens"},
	// Moonshot: MoonshotAI/kimi-cli#2011. The requested number includes max_tokens.
	{words: "exceeded model token limit: {limit} (requested: {_})"},
	// Cerebras: cline/cline#5140, anomalyco/opencode#1551. The length includes max_tokens.
	{words: "current length is {_} while limit is {limit}"},
	// Qwen on DashScope: QwenLM/qwen-code#98, agentscope-ai/QwenPaw#6255. The limit is the input's.
	{words: "range of input length should be [1, {limit}]"},
	// Cohere: cohere-ai/sandbox-topically#4, stanford-crfm/helm#1412; the last from its error documentation.
	{words: "total number of tokens (prompt and prediction) cannot exceed {limit} - received {_}"},
	{words: "total number of tokens in the prompt exceeds the limit of {limit}"},
	{words: "total number of tokens in the prompt cannot exceed {limit} - received {prompt}"},
	// Zhipu, code 1261: zeroclaw-labs/zeroclaw#4124, NousResearch/hermes-agent#1877.
	{words: "prompt exceeds max length"},
	// MiniMax, where (2013) is the error code: MiniMax-AI/MiniMax-M2#119, agentscope-ai/QwenPaw#1873.
	{words: "context window exceeds limit"},
	// Doubao on Volcengine Ark, code OutofContextError: bytedance/deer-flow#549.
	{words: "total tokens of image and text exceed max message tokens"},
	// Bedrock's Nova, in a stream with status 200: the same probe of danny-avila/agents.
	{words: "number of input tokens exceeds maximum length"},
	// Bedrock: aws-samples/bedrock-chat#95, continuedev/continue#6005.
	{words: "input is too long for requested model"},

	// ---- Words without numbers, and codes. ----

	// OpenAI's Responses API, and Codex: anomalyco/opencode#6071, dyad-sh/dyad#1672.
	{words: "input exceeds the context window of this model"},
	// Bedrock's Llama (the same probe), THUDM/LongBench#104, and any other wording with this beginning.
	{words: "maximum context length is {limit} tokens"},
	// Niek/chatgpt-web#525.
	{words: "maximum context length has been exceeded"},
	// Groq: OpenHands/OpenHands#1902, letta-ai/letta#1963.
	{words: "reduce the length of the messages or completion"},
	// Vertex through OpenRouter: tailcallhq/forgecode#1146. The error for an image prompt counts characters.
	{words: "prompt is too long", but: "characters"},
	{words: "context_length_exceeded"},
	// llama.cpp's type, Copilot's code and Ark's: as above.
	{words: "exceed_context_size_error"},
	{words: "model_max_prompt_tokens_exceeded"},
	{words: "outofcontexterror"},
	// Z.ai, as an error code: earendil-works/pi packages/ai/src/utils/overflow.ts.
	{words: "model_context_window_exceeded"},
	// LiteLLM, for any error it wraps: OpenHands/OpenHands#4894, #5350.
	{words: "contextwindowexceedederror"},
})

// alternation lists the wordings of errors that ask for alternating user and assistant messages, with sources as in rows.
var alternation = compile([]row{
	// Raised by the chat templates of Mistral, Gemma and Llama, in vLLM, llama.cpp and others, mostly with "conversation" before it:
	// simular-ai/Agent-S#70, OpenSecretCloud/opensecret#120, charmbracelet/crush#279. Anthropic, and Bedrock before it merged
	// messages itself: FlowiseAI/Flowise#2006, etkecc/baibot#13.
	{words: "roles must alternate"},
	// Mistral, code 3230: datapizza-labs/datapizza-ai#98, avante-corp/avante.nvim#2562.
	{words: "unexpected role 'user' after role"},
	{words: "unexpected role 'assistant' after role"},
	// Bedrock's Converse: microsoft/semantic-kernel#10281, CopilotKit/CopilotKit#736.
	{words: "conversation must alternate between user and assistant roles"},
	// Gemini, where an answer precedes a call: google-gemini/gemini-cli#26486, continuedev/continue#11164.
	{words: "function call turn comes immediately after a user turn"},
})
