import os
import sys

# [point
from strands import Agent, tool
from strands.models.openai import OpenAIModel

model = OpenAIModel(model_id="gpt-5.5", client_args={"base_url": "http://127.0.0.1:8080/v1", "api_key": os.environ["OPENAI_API_KEY"]})
# point]


@tool
def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


print(Agent(model=model, tools=[run], system_prompt="You count lines.", callback_handler=None)(sys.argv[1]))
