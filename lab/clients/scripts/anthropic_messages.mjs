// [point
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "http://127.0.0.1:8080" });
// point]

const tool = { name: "run", description: "Runs a command", input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } };
const numbers = [...Array(200).keys()].join("\n");
const messages = [{ role: "user", content: process.argv[2] }];
for (;;) {
  const message = await client.messages
    .stream({ model: "claude-sonnet-5-5", max_tokens: 8000, system: "You count lines.", messages, tools: [tool] })
    .finalMessage();
  messages.push({ role: "assistant", content: message.content });
  const calls = message.content.filter((block) => block.type === "tool_use");
  if (!calls.length) {
    console.log(message.content.map((block) => block.text ?? "").join(""));
    break;
  }
  messages.push({
    role: "user",
    content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: `ran ${JSON.stringify(call.input)}\n${numbers}` })),
  });
}
