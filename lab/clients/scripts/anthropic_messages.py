import sys

# [point
from anthropic import Anthropic

client = Anthropic(base_url="http://127.0.0.1:8080")
# point]

tool = {"name": "run", "description": "Runs a command", "input_schema": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    with client.messages.stream(model="claude-sonnet-5-5", max_tokens=8000, system="You count lines.", messages=messages,
                                tools=[tool]) as stream:
        message = stream.get_final_message()
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]})
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls:
        break
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"ran {call.input}\n" + "\n".join(map(str, range(200)))} for call in calls]})
print("".join(block.text for block in message.content if block.type == "text"))
