"""A tool loop as agents write it for the Messages API, on the anthropic package. It prints what the package made of each answer, as JSON.

    ANTHROPIC_BASE_URL=... ANTHROPIC_API_KEY=... python turns.py stream|whole PROMPT
"""

import json
import sys

from anthropic import Anthropic

mode, prompt = sys.argv[1:]
client = Anthropic(max_retries=0)
schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
messages = [{"role": "user", "content": prompt}]
request = {
    "model": "claude-sonnet-5",
    "max_tokens": 8000,
    "thinking": {"type": "adaptive"},
    "system": [{"type": "text", "text": "You work in small steps.", "cache_control": {"type": "ephemeral"}}],
    "messages": messages,
    "tools": [{"name": "run", "description": "Run a command.", "input_schema": schema}],
}


def ask():
    if mode == "whole":
        return client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        return stream.get_final_message()


steps = []
while True:
    message = ask()
    usage = message.usage
    calls = [block for block in message.content if block.type == "tool_use"]
    steps.append({
        "role": message.role,
        "content": "".join(block.text for block in message.content if block.type == "text") or None,
        "tool_calls": [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.input, ensure_ascii=False, separators=(",", ":"))}} for c in calls],
        "finish_reason": {"tool_use": "tool_calls", "end_turn": "stop"}[message.stop_reason],
        "prompt_tokens": usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0),
    })
    # What a stream parses beside the text is the package's own.
    content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in message.content]
    messages.append({"role": "assistant", "content": content})
    if not calls:
        break
    results = []
    for call in calls:
        output = f"ran {call.input['command']}\n" + "a line of what it printed\n" * 40
        results.append({"type": "tool_result", "tool_use_id": call.id, "content": output})
    messages.append({"role": "user", "content": results})
print(json.dumps(steps))
