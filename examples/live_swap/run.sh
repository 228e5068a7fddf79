#!/usr/bin/env bash
# Sends a picture to a model that llmservices.json declares to read only text. So the first request describes the
# picture in words. Then, while the daemon runs, llmservices.json is changed and declares that the model has vision. So
# the next request contains the picture itself.
source "$(dirname "$0")/../society.sh"

scripted_model "$here/looking_model.py"
declare_input() {
    cat >"$config/llmservices.json" <<END_OF_FILE
{"services": [{"id": "scripted", "baseURL": "$model_url", "model": "script", "dialect": {"stream": false},
               "capabilities": {"input": $1, "output": ["text", "tool_calling"]}}]}
END_OF_FILE
}
picture="$root/examples/picture.png"

declare_input '["text"]'
serve
blind="$(polity send --wait --data "$data" --attach "$picture" "What is in this picture?")" ||
    fail "polity send ended with exit code $?"

# The daemon keeps running. The second message needs no attachment, because the history of root still contains the
# picture itself and not only the description.
declare_input '["text", "vision"]'
task="$(polity tasks --data "$data" --json | sed 's/.*"id":"\([^"]*\)".*/\1/')"
seeing="$(polity send --wait --data "$data" --task "$task" "Look again.")" || fail "polity send ended with exit code $?"

echo "== What the model was asked and answered"
tail -n +2 "$transcript"
echo "== What the daemon noticed"
polity events --data "$data" --kind config_taken

bytes="$(wc -c <"$picture" | tr -d ' ')"
[ "$blind" = "I see no picture, only a text about it." ] || fail "the first answer is: $blind"
[ "$seeing" = "I see a picture: data:image/png, $bytes bytes." ] || fail "the second answer is: $seeing"
grep -q '^【Attachment received】$' "$transcript" || fail "the first request does not describe the picture"
