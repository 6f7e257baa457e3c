// [point
import { GoogleGenAI } from "@google/genai";

const client = new GoogleGenAI({ httpOptions: { baseUrl: "http://127.0.0.1:8080" } });
// point]

const run = {
  name: "run",
  description: "Runs a command",
  parametersJsonSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
};
const numbers = [...Array(200).keys()].join("\n");
const chat = client.chats.create({
  model: "gemini-3.1-pro-preview",
  config: { tools: [{ functionDeclarations: [run] }], systemInstruction: "You count lines." },
});
let message = process.argv[2];
for (;;) {
  const calls = [];
  let text = "";
  const whole = process.env.STREAMED === "no";
  for await (const piece of whole ? [await chat.sendMessage({ message })] : await chat.sendMessageStream({ message })) {
    calls.push(...(piece.functionCalls ?? []));
    for (const part of piece.candidates?.[0]?.content?.parts ?? []) {
      text += part.thought ? "" : (part.text ?? "");
    }
  }
  if (!calls.length) {
    console.log(text);
    break;
  }
  message = calls.map((call) => ({
    functionResponse: { id: call.id, name: call.name, response: { output: `ran ${call.args.command}\n${numbers}` } },
  }));
}
