import { Agent, run as runAgent, tool } from "@openai/agents";
import { z } from "zod";

// [point
import { setDefaultOpenAIClient, setTracingDisabled } from "@openai/agents";
import OpenAI from "openai";

setDefaultOpenAIClient(new OpenAI({ baseURL: "http://127.0.0.1:8080/v1" }));
setTracingDisabled(true);
// point]

const numbers = [...Array(200).keys()].join("\n");
const run = tool({
  name: "run", description: "Runs a command", parameters: z.object({ command: z.string() }),
  execute: async ({ command }) => `ran ${command}\n${numbers}`,
});
const agent = new Agent({ name: "counter", instructions: "You count lines.", model: "gpt-5.5", tools: [run] });
console.log((await runAgent(agent, process.argv[2], { maxTurns: 100 })).finalOutput);
