import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

// [point
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const provider = createOpenAICompatible({ name: "dewpoint", baseURL: "http://127.0.0.1:8080/v1", apiKey: process.env.OPENAI_API_KEY });
const model = provider("gpt-5.5");
// point]

const numbers = [...Array(200).keys()].join("\n");
const run = tool({ description: "Runs a command", inputSchema: z.object({ command: z.string() }), execute: async ({ command }) => `ran ${command}\n${numbers}` });
const { text } = await generateText({ model, system: "You count lines.", prompt: process.argv[2], tools: { run }, stopWhen: stepCountIs(100) });
console.log(text);
