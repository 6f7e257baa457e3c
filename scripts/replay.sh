#!/bin/sh
# Plays recorded runs through the proxy, in several ways at a time, and judges every request. Any violation fails. RUNS_STRIDE samples
# the runs: 7 plays every seventh.
set -eu
folder=$1
runs=$(sh scripts/sample.sh "${RUNS_STRIDE:-1}" "$folder")
export runs

# The longest come first, so that no processor waits for one at the end.
ways() {
	# The Messages API with signed thinking at every step, and the Responses API with encrypted reasoning.
	echo --protocol messages --max-size 60 --stream --sealed thinking_blocks
	echo --protocol responses --max-size 60 --stream --sealed openai-responses-v1
	# Sealed reasoning in every binding: upstream refuses reasoning separated from what it is bound to.
	echo --max-size 60 --stream --sealed thinking_blocks
	echo --max-size 60 --stream --sealed openai-responses-v1
	echo --max-size 60 --stream --sealed thought_signature
	# By events and by tokens, streamed and not.
	echo --max-size 60
	echo --max-size 60 --stream
	echo --max-tokens 12000
	echo --max-tokens 12000 --stream
}

# An unannounced context window: the longest run must get through.
longest=$(ls -S "$folder"/*.json | head -n 1)
echo "== judge --window 16384, the longest run"
bin/measure judge --window 16384 --model a-model-of-ours "$longest"

# shellcheck disable=SC2016 # the inner shell expands its variables, runs into words
ways | xargs -L 1 -P "$(getconf _NPROCESSORS_ONLN)" sh -c '
	code=0
	report=$(bin/measure judge "$@" $runs 2>&1) || code=$?
	printf "== judge %s\n%s\n" "$*" "$report"
	exit $code' sh
