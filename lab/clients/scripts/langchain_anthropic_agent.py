import sys

# [point
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic

model = ChatAnthropic(model="claude-sonnet-5-5", base_url="http://127.0.0.1:8080")
# point]


def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


agent = create_agent(model, tools=[run], system_prompt="You count lines.")
result = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]}, {"recursion_limit": 200})
print(result["messages"][-1].text)
