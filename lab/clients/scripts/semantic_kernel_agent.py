import asyncio
import sys

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.functions import kernel_function

# [point
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

service = OpenAIChatCompletion(ai_model_id="gpt-5.5", async_client=AsyncOpenAI(base_url="http://127.0.0.1:8080/v1"))
# point]

from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior


class Shell:
    @kernel_function(name="run", description="Runs a command")
    def run(self, command: str) -> str:
        return f"ran {command}\n" + "\n".join(map(str, range(200)))


async def main() -> None:
    agent = ChatCompletionAgent(service=service, name="counter", instructions="You count lines.", plugins=[Shell()],
                                function_choice_behavior=FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=100))
    print(await agent.get_response(messages=sys.argv[1]))


asyncio.run(main())
