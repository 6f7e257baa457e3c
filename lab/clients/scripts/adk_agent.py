import asyncio
import sys

# [point
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm

model = LiteLlm(model="openai/gpt-5.5", api_base="http://127.0.0.1:8080/v1")
# point]

from google.adk.runners import InMemoryRunner
from google.genai import types


def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


async def main() -> None:
    runner = InMemoryRunner(LlmAgent(name="counter", model=model, instruction="You count lines.", tools=[run]), app_name="counter")
    session = await runner.session_service.create_session(app_name="counter", user_id="user")
    prompt = types.Content(role="user", parts=[types.Part(text=sys.argv[1])])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=prompt):
        for part in event.content.parts if event.content else []:
            if part.text:
                print(part.text)


asyncio.run(main())
