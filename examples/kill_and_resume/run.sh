#!/usr/bin/env bash
# Kills the daemon with `kill -9` in the middle of a task and resumes the task. Then checks that the user got one
# answer, and that the society did nothing twice, with one exception: the model call that had no answer yet is made
# again.
source "$(dirname "$0")/../society.sh"

scripted_model "$here/slow_model.py"
cat >"$config/llmservices.json" <<END_OF_FILE
{"services": [{"id": "scripted", "baseURL": "$model_url", "model": "script", "dialect": {"stream": false}}]}
END_OF_FILE
asked() { grep -c -- "^--> $1.* is asked" "$transcript" || true; }
messages() { polity messages --config "$config" --data "$data" --json "$@"; }
show_state() {
    echo "root's model was asked $(asked root) x, the translator's $(asked translator) x. The messages:"
    polity messages --config "$config" --data "$data" | grep -E '^[0-9]{4}-'
}

serve
polity send --data "$data" "Say good morning in German."

# Succeeds in the middle of the task: the translator's model has received a request, and root has told the user that
# root is waiting.
in_the_middle() { [ "$(asked translator)" = 1 ] && messages --to user | grep -q '"finality":"interim"'; }
until_true in_the_middle
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
echo "== The daemon is dead: $(show_state)"

echo "== polity run --resume"
answer="$(polity run --resume --config "$config" --data "$data" --timeout 60s)" ||
    fail "polity run --resume ended with exit code $?"
printf '%s\n' "$answer"
echo "== polity run --resume, once more, has nothing to print"
again="$(polity run --resume --config "$config" --data "$data" --timeout 60s)" ||
    fail "the second polity run --resume ended with exit code $?"
echo "== Afterwards: $(show_state)"

[ "$(tail -n 1 <<<"$answer")" = "The translator says: Guten Morgen" ] || fail "the answer did not come"
[ -z "$again" ] || fail "the second polity run --resume printed: $again"
[ "$(messages --to user | grep -c '"finality":"final"')" = 1 ] || fail "there is not exactly one answer"
[ "$(messages --type task_assignment | wc -l)" -eq 1 ] || fail "root did not hire exactly once"
[ "$(messages | wc -l)" -eq 5 ] || fail "there are not exactly five messages"
[ "$(asked root)" = 3 ] || fail "root was not asked exactly three times"
[ "$(asked translator)" = 2 ] || fail "the translator was not asked exactly twice"
