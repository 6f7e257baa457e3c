import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent

# [point
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(model="gpt-5.5", api_base="http://127.0.0.1:8080/v1", context_window=400000, is_chat_model=True, is_function_calling_model=True)
# point]


def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


async def main() -> None:
    agent = FunctionAgent(tools=[run], llm=llm, system_prompt="You count lines.")
    print(await agent.run(user_msg=sys.argv[1], max_iterations=100))


asyncio.run(main())
