import sys
from typing import Annotated

from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import tool

# [point
from haystack.components.generators.chat import OpenAIChatGenerator

generator = OpenAIChatGenerator(model="gpt-5.5", api_base_url="http://127.0.0.1:8080/v1")
# point]


@tool
def run(command: Annotated[str, "the command"]) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


agent = Agent(chat_generator=generator, tools=[run], system_prompt="You count lines.", max_agent_steps=100)
print(agent.run(messages=[ChatMessage.from_user(sys.argv[1])])["last_message"].text)
