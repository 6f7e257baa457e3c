import asyncio
import os
import sys

# [point
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini

model = Gemini(model="gemini-3.1-pro-preview", base_url="http://127.0.0.1:8080")
# point]

from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types


def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


async def main() -> None:
    runner = InMemoryRunner(LlmAgent(name="counter", model=model, instruction="You count lines.", tools=[run]), app_name="counter")
    session = await runner.session_service.create_session(app_name="counter", user_id="user")
    prompt = types.Content(role="user", parts=[types.Part(text=sys.argv[1])])
    config = RunConfig(streaming_mode=StreamingMode.NONE if os.environ.get("STREAMED") == "no" else StreamingMode.SSE)
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=prompt, run_config=config):
        for part in event.content.parts if event.content and not event.partial else []:
            if part.text and not part.thought:
                print(part.text)


asyncio.run(main())
