"""An agent of the openai-agents package with its defaults: it speaks the Responses API. It prints what it says at the end.

    OPENAI_BASE_URL=... OPENAI_API_KEY=... python runner.py stream|whole PROMPT
"""

import asyncio
import sys

from agents import Agent, Runner, function_tool, set_tracing_disabled

mode, prompt = sys.argv[1:]
set_tracing_disabled(True)


@function_tool
def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}\n" + "a line of what it printed\n" * 40


async def main():
    agent = Agent(name="Worker", instructions="You work in small steps.", tools=[run])
    if mode == "whole":
        return await Runner.run(agent, prompt, max_turns=100)
    result = Runner.run_streamed(agent, prompt, max_turns=100)
    async for _ in result.stream_events():
        pass
    return result


print(asyncio.run(main()).final_output)
