// [point
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "http://127.0.0.1:8080/v1" });
// point]

const tool = {
  type: "function",
  function: { name: "run", description: "Runs a command", parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } },
};
const numbers = [...Array(200).keys()].join("\n");
const messages = [{ role: "system", content: "You count lines." }, { role: "user", content: process.argv[2] }];
for (;;) {
  const { message } = (await client.chat.completions.create({ model: "gpt-5.5", messages, tools: [tool] })).choices[0];
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: `ran ${call.function.arguments}\n${numbers}` });
  }
}
