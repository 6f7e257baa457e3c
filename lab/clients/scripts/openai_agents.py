import sys

from agents import Runner, function_tool

# [point
from agents import Agent, set_default_openai_client
from openai import AsyncOpenAI

set_default_openai_client(AsyncOpenAI(base_url="http://127.0.0.1:8080/v1"), use_for_tracing=False)
# point]


@function_tool
def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


agent = Agent(name="counter", instructions="You count lines.", model="gpt-5.5", tools=[run])
print(Runner.run_sync(agent, sys.argv[1], max_turns=100).final_output)
