import sys

from smolagents import ToolCallingAgent, tool

# [point
from smolagents import OpenAIServerModel

model = OpenAIServerModel(model_id="gpt-5.5", api_base="http://127.0.0.1:8080/v1")
# point]


@tool
def run(command: str) -> str:
    """Runs a command.

    Args:
        command: the command
    """
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


agent = ToolCallingAgent(tools=[run], model=model, max_steps=100)
print(agent.run(sys.argv[1]))
