import { createAgent, tool } from "langchain";
import { z } from "zod";

// [point
import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({ model: "gpt-5.5", configuration: { baseURL: "http://127.0.0.1:8080/v1" } });
// point]

const numbers = [...Array(200).keys()].join("\n");
const run = tool(({ command }) => `ran ${command}\n${numbers}`, { name: "run", description: "Runs a command", schema: z.object({ command: z.string() }) });
const agent = createAgent({ model, tools: [run], systemPrompt: "You count lines." });
const { messages } = await agent.invoke({ messages: [{ role: "user", content: process.argv[2] }] }, { recursionLimit: 200 });
console.log(messages.at(-1).text);
