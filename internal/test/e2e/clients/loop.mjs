// A tool loop as agents write it, on the openai package. It prints what the package made of each answer, as JSON.
//
//   OPENAI_BASE_URL=... OPENAI_API_KEY=... node loop.mjs stream|whole PROMPT
import OpenAI from "openai";

const [mode, prompt] = process.argv.slice(2);
const client = new OpenAI({ maxRetries: 0 });
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const request = {
  model: "gpt-4o",
  messages: [
    { role: "system", content: "You work in small steps." },
    { role: "user", content: prompt },
  ],
  tools: [{ type: "function", function: { name: "run", description: "Run a command.", parameters } }],
};

async function ask() {
  if (mode === "whole") {
    return client.chat.completions.create(request);
  }
  return client.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion();
}

function assistant({ content, tool_calls }) {
  const message = { role: "assistant", content };
  if (tool_calls?.length) {
    message.tool_calls = tool_calls.map(({ id, type, function: { name, arguments: text } }) => ({
      id, type, function: { name, arguments: text },
    }));
  }
  return message;
}

const steps = [];
for (;;) {
  const { choices, usage } = await ask();
  const { message, finish_reason } = choices[0];
  const answer = assistant(message);
  steps.push({ ...answer, finish_reason, prompt_tokens: usage.prompt_tokens });
  request.messages.push(answer);
  if (!answer.tool_calls) break;
  for (const call of answer.tool_calls) {
    const content = `ran ${JSON.parse(call.function.arguments).command}\n` + "a line of what it printed\n".repeat(40);
    request.messages.push({ role: "tool", tool_call_id: call.id, content });
  }
}
console.log(JSON.stringify(steps));
