import sys

# [point
from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-5.5", base_url="http://127.0.0.1:8080/v1")
# point]


def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


agent = create_deep_agent(model=model, tools=[run])
result = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]}, {"recursion_limit": 400})
print(result["messages"][-1].text)
