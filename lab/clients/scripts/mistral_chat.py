import json
import sys

# [point
from mistralai.client import Mistral

client = Mistral(api_key="sk-client", server_url="http://127.0.0.1:8080")
# point]

tool = {"type": "function", "function": {"name": "run", "description": "Runs a command", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    message = client.chat.complete(model="mistral-large-latest", messages=messages, tools=[tool]).choices[0].message
    messages.append(message)
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        command = json.loads(call.function.arguments)["command"]
        messages.append({"role": "tool", "name": "run", "tool_call_id": call.id,
                         "content": f"ran {command}\n" + "\n".join(map(str, range(200)))})
print(message.content)
