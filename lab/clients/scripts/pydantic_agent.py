import sys

# [point
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel("gpt-5.5", provider=OpenAIProvider(base_url="http://127.0.0.1:8080/v1"))
# point]

agent = Agent(model, system_prompt="You count lines.")


@agent.tool_plain
def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


print(agent.run_sync(sys.argv[1], usage_limits=UsageLimits(request_limit=100)).output)
