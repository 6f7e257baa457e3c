import sys

from pydantic import BaseModel

# [point
import instructor
from openai import OpenAI

client = instructor.from_openai(OpenAI(base_url="http://127.0.0.1:8080/v1"))
# point]


class Count(BaseModel):
    """What to do next."""

    command: str


messages = [{"role": "system", "content": "You count lines."}, {"role": "user", "content": sys.argv[1]}]
for step in range(25):
    count = client.chat.completions.create(model="gpt-5.5", messages=messages, response_model=Count)
    messages.append({"role": "assistant", "content": count.command})
    messages.append({"role": "user", "content": f"Part {step} has " + " ".join(map(str, range(200)))})
print(count.command)
