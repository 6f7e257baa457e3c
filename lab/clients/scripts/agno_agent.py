import sys

# [point
from agno.agent import Agent
from agno.models.openai import OpenAIChat

model = OpenAIChat(id="gpt-5.5", base_url="http://127.0.0.1:8080/v1")
# point]


def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


print(Agent(model=model, tools=[run], instructions="You count lines.", telemetry=False).run(sys.argv[1]).content)
