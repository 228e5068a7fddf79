#!/usr/bin/env bash
# Runs a society whose models follow a script, and prints what the models were asked and what they answered. root
# hires a translator, the translator answers, and root passes the answer on. WHOLE=1 prints each request with all its
# messages.
source "$(dirname "$0")/../society.sh"

scripted_model "$here/model.py"
# This model sends its answer in one piece. polity expects a stream, unless the service declares otherwise.
cat >"$config/llmservices.json" <<END_OF_FILE
{"services": [{"id": "scripted", "baseURL": "$model_url", "model": "script", "dialect": {"stream": false}}]}
END_OF_FILE

answer="$(polity run --config "$config" --data "$data" --timeout 60s "Say good morning in German.")" ||
    fail "polity run ended with exit code $?"

echo "== What the models were asked and answered"
tail -n +2 "$transcript"
echo "== The messages of the society"
polity messages --config "$config" --data "$data"
echo "== What polity run printed"
printf '%s\n' "$answer"

# A line that begins with "…" is what root told the user while it waited. The last line is the answer.
[ "$(tail -n 1 <<<"$answer")" = "The translator says: Guten Morgen" ] || fail "root did not pass the answer on"
grep -q '^--> translator-.* is asked' "$transcript" || fail "no translator was asked"
grep -q '^Technical constraints:$' "$transcript" || fail "the translator did not get its brief"
