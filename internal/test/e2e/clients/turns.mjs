// A tool loop as agents write it for the Messages API, on the anthropic package. It prints what the package made of each answer, as JSON.
//
//   ANTHROPIC_BASE_URL=... ANTHROPIC_API_KEY=... node turns.mjs stream|whole PROMPT
import Anthropic from "@anthropic-ai/sdk";

const [mode, prompt] = process.argv.slice(2);
const client = new Anthropic({ maxRetries: 0 });
const schema = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const request = {
  model: "claude-sonnet-5",
  max_tokens: 8000,
  thinking: { type: "adaptive" },
  system: [{ type: "text", text: "You work in small steps.", cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content: prompt }],
  tools: [{ name: "run", description: "Run a command.", input_schema: schema }],
};

async function ask() {
  return mode === "whole" ? client.messages.create(request) : client.messages.stream(request).finalMessage();
}

const steps = [];
for (;;) {
  const { role, content, usage, stop_reason: reason } = await ask();
  const text = content.filter(({ type }) => type === "text").map((block) => block.text).join("");
  const calls = content.filter(({ type }) => type === "tool_use");
  steps.push({
    role,
    content: text || null,
    tool_calls: calls.map(({ id, name, input }) => ({ id, type: "function", function: { name, arguments: JSON.stringify(input) } })),
    finish_reason: { tool_use: "tool_calls", end_turn: "stop" }[reason],
    prompt_tokens: usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
  });
  request.messages.push({ role, content });
  if (!calls.length) break;
  request.messages.push({
    role: "user",
    content: calls.map(({ id, input }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: `ran ${input.command}\n` + "a line of what it printed\n".repeat(40),
    })),
  });
}
console.log(JSON.stringify(steps));
