#!/bin/sh
# usage: compress.sh request.json: prints the messages to send instead of those of a request of Chat Completions or Messages. Without Dewpoint, or
# if it cannot read the request, they are the request's own. Needs curl and jq.
set -eu
answer=$(curl -sf -m 20 "${DEWPOINT:-http://127.0.0.1:8080}/v1/compress" -H "x-api-key: $GATEWAY_TO_DEWPOINT_KEY" -H 'Content-Type: application/json' \
  --data-binary "@$1") || answer='{}'
printf '%s' "$answer" | jq -c --slurpfile request "$1" '.messages // $request[0].messages'
