// A tool loop as agents write it for the Responses API, on the openai package. It prints what the package made of each answer, as JSON.
//
//   OPENAI_BASE_URL=... OPENAI_API_KEY=... node items.mjs stream|whole PROMPT
import OpenAI from "openai";

const [mode, prompt] = process.argv.slice(2);
const client = new OpenAI({ maxRetries: 0 });
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const request = {
  model: "gpt-4o",
  instructions: "You work in small steps.",
  input: [{ role: "user", content: prompt }],
  store: false,
  include: ["reasoning.encrypted_content"],
  tools: [{ type: "function", name: "run", description: "Run a command.", parameters, strict: false }],
};

async function ask() {
  return mode === "whole" ? client.responses.create(request) : client.responses.stream(request).finalResponse();
}

const steps = [];
for (;;) {
  const { output, usage } = await ask();
  const text = output.flatMap(({ type, content }) => (type === "message" ? content : [])).map((part) => part.text).join("");
  const calls = output.filter(({ type }) => type === "function_call");
  steps.push({
    role: "assistant",
    content: text || null,
    tool_calls: calls.map(({ call_id: id, name, arguments: json }) => ({ id, type: "function", function: { name, arguments: json } })),
    finish_reason: calls.length ? "tool_calls" : "stop",
    prompt_tokens: usage.input_tokens,
  });
  // What a stream parses beside the arguments is the package's own.
  request.input.push(...output.map(({ parsed_arguments, ...item }) => item));
  if (!calls.length) break;
  for (const { call_id, arguments: json } of calls) {
    const printed = `ran ${JSON.parse(json).command}\n` + "a line of what it printed\n".repeat(40);
    request.input.push({ type: "function_call_output", call_id, output: printed });
  }
}
console.log(JSON.stringify(steps));
