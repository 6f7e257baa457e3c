"""A tool loop as agents write it, on the openai package. It prints what the package made of each answer, as JSON.

    OPENAI_BASE_URL=... OPENAI_API_KEY=... python loop.py stream|whole PROMPT
"""

import json
import sys

from openai import OpenAI

mode, prompt = sys.argv[1:]
client = OpenAI(max_retries=0)
parameters = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
messages = [
    {"role": "system", "content": "You work in small steps."},
    {"role": "user", "content": prompt},
]
request = {
    "model": "gpt-4o",
    "messages": messages,
    "tools": [{"type": "function", "function": {"name": "run", "description": "Run a command.", "parameters": parameters}}],
}


def ask():
    if mode == "whole":
        return client.chat.completions.create(**request)
    with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def assistant(message):
    out = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        out["tool_calls"] = [
            {"id": c.id, "type": c.type, "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in message.tool_calls
        ]
    return out


steps = []
while True:
    completion = ask()
    choice = completion.choices[0]
    answer = assistant(choice.message)
    steps.append({**answer, "finish_reason": choice.finish_reason, "prompt_tokens": completion.usage.prompt_tokens})
    messages.append(answer)
    if "tool_calls" not in answer:
        break
    for call in answer["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        content = f"ran {command}\n" + "a line of what it printed\n" * 40
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
print(json.dumps(steps))
