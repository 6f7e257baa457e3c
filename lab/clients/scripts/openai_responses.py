import json
import sys

# [point
from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8080/v1")
# point]

tool = {"type": "function", "name": "run", "description": "Runs a command", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
items = [{"role": "user", "content": sys.argv[1]}]
while True:
    response = client.responses.create(model="gpt-5.5", instructions="You count lines.", input=items, tools=[tool], store=False,
                                       include=["reasoning.encrypted_content"])
    items += [item.model_dump(exclude_none=True) for item in response.output]
    calls = [item for item in response.output if item.type == "function_call"]
    if not calls:
        break
    for call in calls:
        command = json.loads(call.arguments)["command"]
        items.append({"type": "function_call_output", "call_id": call.call_id,
                      "output": f"ran {command}\n" + "\n".join(map(str, range(200)))})
print(response.output_text)
