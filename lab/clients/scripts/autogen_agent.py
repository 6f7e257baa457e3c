import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent

# [point
from autogen_ext.models.openai import OpenAIChatCompletionClient

model = OpenAIChatCompletionClient(model="gpt-4o", base_url="http://127.0.0.1:8080/v1")
# point]


async def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


async def main() -> None:
    agent = AssistantAgent("counter", model_client=model, tools=[run], system_message="You count lines.", max_tool_iterations=100)
    print((await agent.run(task=sys.argv[1])).messages[-1].content)


asyncio.run(main())
