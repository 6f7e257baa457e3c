import { createTool } from "@mastra/core/tools";
import { z } from "zod";

// [point
import { Agent } from "@mastra/core/agent";

const model = { id: "dewpoint/gpt-5.5", url: "http://127.0.0.1:8080/v1", apiKey: process.env.OPENAI_API_KEY };
// point]

const numbers = [...Array(200).keys()].join("\n");
const run = createTool({
  id: "run", description: "Runs a command", inputSchema: z.object({ command: z.string() }),
  execute: async (input) => ({ output: `ran ${JSON.stringify(input)}\n${numbers}` }),
});
const agent = new Agent({ id: "counter", name: "counter", instructions: "You count lines.", model, tools: { run } });
console.log((await agent.generate(process.argv[2], { maxSteps: 100 })).text);
