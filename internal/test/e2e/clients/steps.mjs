// A tool loop on Vercel's AI SDK, which refers to the model's items by their ids. It prints the last answer.
//
//   OPENAI_BASE_URL=... OPENAI_API_KEY=... node steps.mjs stream|whole PROMPT
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [mode, prompt] = process.argv.slice(2);
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const request = {
  model: openai.responses("gpt-5"),
  system: "You work in small steps.",
  prompt,
  maxRetries: 0,
  stopWhen: stepCountIs(100),
  tools: {
    run: tool({
      description: "Run a command.",
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => `ran ${command}\n` + "a line of what it printed\n".repeat(40),
    }),
  },
};
console.log(mode === "whole" ? (await generateText(request)).text : await streamText(request).text);
