import json
import sys

# [point
import litellm

litellm.api_base = "http://127.0.0.1:8080/v1"
# point]

tool = {"type": "function", "function": {"name": "run", "description": "Runs a command", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    message = litellm.completion(model="openai/gpt-5.5", messages=messages, tools=[tool]).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        command = json.loads(call.function.arguments)["command"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"ran {command}\n" + "\n".join(map(str, range(200)))})
print(message.content)
