#!/bin/sh
# Plays recorded runs through the built binary: by events and by tokens, streamed and not. Any violation fails.
set -eu
runs=${1:?usage: scripts/replay.sh FOLDER}
for limits in "--max-size 60" "--max-tokens 12000"; do
	for mode in "" "--stream"; do
		echo "== replay $limits $mode"
		# shellcheck disable=SC2086 # the flags are words
		bin/dewpoint replay $limits $mode "$runs"
	done
done
# An unannounced context window: the longest run must get through.
longest=$(ls -S "$runs"/*.json | head -n 1)
echo "== replay --window 16384, the longest run"
bin/dewpoint replay --window 16384 --model a-model-of-ours "$longest"
# Sealed reasoning in every binding: upstream refuses reasoning separated from what it is bound to.
for form in thinking_blocks openai-responses-v1 thought_signature; do
	echo "== replay --sealed $form"
	bin/dewpoint replay --max-size 60 --stream --sealed "$form" "$runs"
done
# The Messages API, with signed thinking at every step.
echo "== replay --protocol messages --sealed thinking_blocks"
bin/dewpoint replay --protocol messages --max-size 60 --stream --sealed thinking_blocks "$runs"
# The Responses API, with encrypted reasoning at every step.
echo "== replay --protocol responses --sealed openai-responses-v1"
bin/dewpoint replay --protocol responses --max-size 60 --stream --sealed openai-responses-v1 "$runs"
