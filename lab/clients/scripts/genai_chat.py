import sys

# [point
from google import genai

client = genai.Client(http_options={"base_url": "http://127.0.0.1:8080"})
# point]

from google.genai import types

tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="run", description="Runs a command", parameters_json_schema={
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]})])
config = types.GenerateContentConfig(tools=[tool], system_instruction="You count lines.")
chat = client.chats.create(model="gemini-2.5-pro", config=config)
message = sys.argv[1]
while True:
    answer = chat.send_message(message)
    if not answer.function_calls:
        break
    message = [types.Part.from_function_response(name=call.name, response={
        "output": f"ran {call.args['command']}\n" + "\n".join(map(str, range(200)))}) for call in answer.function_calls]
print(answer.text)
