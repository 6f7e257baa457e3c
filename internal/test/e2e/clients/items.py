"""A tool loop as agents write it for the Responses API, on the openai package. It prints what the package made of each answer, as JSON.

    OPENAI_BASE_URL=... OPENAI_API_KEY=... python items.py stream|whole PROMPT
"""

import json
import sys

from openai import OpenAI

mode, prompt = sys.argv[1:]
client = OpenAI(max_retries=0)
parameters = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
items = [{"role": "user", "content": prompt}]
request = {
    "model": "gpt-4o",
    "instructions": "You work in small steps.",
    "input": items,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "tools": [{"type": "function", "name": "run", "description": "Run a command.", "parameters": parameters, "strict": False}],
}


def ask():
    if mode == "whole":
        return client.responses.create(**request)
    with client.responses.stream(**request) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


steps = []
while True:
    response = ask()
    calls = [item for item in response.output if item.type == "function_call"]
    steps.append({
        "role": "assistant",
        "content": response.output_text or None,
        "tool_calls": [{"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls],
        "finish_reason": "tool_calls" if calls else "stop",
        "prompt_tokens": response.usage.input_tokens,
    })
    # What a stream parses beside the arguments is the package's own.
    items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    if not calls:
        break
    for call in calls:
        output = f"ran {json.loads(call.arguments)['command']}\n" + "a line of what it printed\n" * 40
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
print(json.dumps(steps))
