import sys

from crewai import Agent, Crew, Task
from crewai.tools import tool

# [point
from crewai import LLM

llm = LLM(model="openai/gpt-5.5", base_url="http://127.0.0.1:8080/v1")
# point]


@tool("run")
def run(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + "\n".join(map(str, range(200)))


agent = Agent(role="counter", goal="Count lines.", backstory="You count lines.", llm=llm, tools=[run], max_iter=100, cache=False)
print(Crew(agents=[agent], tasks=[Task(description=sys.argv[1], expected_output="the number", agent=agent)]).kickoff().raw)
