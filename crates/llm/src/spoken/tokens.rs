//! The tokens around calls: tags, separators and end tokens of the model families.

use super::cursor::Cursor;

/// Tokens that a model writes only before a call. So the text after such a token is clearly meant as a call.
const OPENERS: [&str; 33] = [
    // Used by Hermes, Qwen, GLM and Granite.
    "<tool_call>",
    "<tool_calls>",
    "<|tool_call|>",
    "<function_call>",
    "<function_calls>",
    "<functioncall>",
    "<|function_call|>",
    // Used by Mistral, LM Studio, Nemotron, LFM2, InternLM and Command R7B.
    "[TOOL_CALLS]",
    "[TOOL_REQUEST]",
    "<TOOLCALL>",
    "<|tool_call_start|>",
    "<|action_start|>",
    "<|plugin|>",
    "<|START_ACTION|>",
    // Used by Llama.
    "<|python_tag|>",
    // Used by DeepSeek. Its tokenizer has special characters for bars and blanks. Some models write plain characters in
    // their place.
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<|tool▁calls▁begin|>",
    "<|tool▁call▁begin|>",
    "<|tool_calls_begin|>",
    "<｜DSML｜function_calls>",
    "<｜DSML｜tool_calls>",
    // Used by Kimi.
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    // Used by MiniMax, Seed, LongCat, Step and Claude.
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "<longcat_tool_call>",
    "<antml:function_calls>",
    // Used by Gemma.
    "<|tool_call>",
    "<start_function_call>",
    // Each of these tags belongs to one call. The reader takes the name from the tag.
    "<function=",
    "<invoke name=",
    "<antml:invoke name=",
];

/// The last openers in `OPENERS` are part of the call itself. This is their number.
const PARTS_OF_CALL: usize = 3;

/// Beginnings of the header of a message in Harmony, the format of gpt-oss. Only a message whose header names a
/// recipient is a call.
const HEADERS: [&str; 2] = ["<|channel|>", "<|start|>"];

const CLOSERS: [&str; 32] = [
    "</tool_call>",
    "</tool_calls>",
    "<|/tool_call|>",
    "<tool_call|>",
    "</function_call>",
    "</function_calls>",
    "</functioncall>",
    "<end_function_call>",
    "</function>",
    "</invoke>",
    "[/TOOL_CALLS]",
    "[END_TOOL_REQUEST]",
    "</TOOLCALL>",
    "<|tool_call_end|>",
    "<|action_end|>",
    "<|END_ACTION|>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁end｜>",
    "<|tool▁calls▁end|>",
    "<|tool▁call▁end|>",
    "<|tool_calls_end|>",
    "</｜DSML｜function_calls>",
    "</｜DSML｜tool_calls>",
    "<|tool_calls_section_end|>",
    "</minimax:tool_call>",
    "</seed:tool_call>",
    "</longcat_tool_call>",
    "</antml:function_calls>",
    "</antml:invoke>",
    // In the prompt of Qwen2.5-Coder, this tag is around the list of tools. The model repeats the tag around its calls.
    // But ordinary XML may contain this tag, too, so the tag does not prove that a call follows.
    "<tools>",
    "</tools>",
    "</tool>",
];

const ENDS: [&str; 20] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "</s>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    "<|END_OF_TURN_TOKEN|>",
    "<|observation|>",
    "<|user|>",
    "<|tool_response>",
    "<start_function_response>",
    "[e~[",
];

/// Languages of the code fences in which models write calls.
const LANGUAGES: [&str; 19] = [
    "json",
    "json5",
    "jsonc",
    "jsonl",
    "tool_call",
    "tool_calls",
    "tool_code",
    "tool",
    "tool_use",
    "tools",
    "function_call",
    "function",
    "action",
    "python",
    "py",
    "xml",
    "text",
    "txt",
    "plaintext",
];

/// A token that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A token such as `<tool_call>`. The model clearly meant the text after it as a call.
    Opener,
    /// The token tells nothing about the text after it.
    Other,
}

/// Moves past one token. `is_between` tells whether at least one call was read before. If so, separators and surplus
/// brackets count as tokens, too.
pub(super) fn skip(cursor: &mut Cursor<'_>, is_between: bool) -> Option<Token> {
    let own = OPENERS.len() - PARTS_OF_CALL;
    if cursor.eat_any(&OPENERS[..own]) {
        return Some(Token::Opener);
    }
    let is_separator = is_between && cursor.eat_any(&[";", ",", "}", "]", ")"]);
    let is_skipped =
        is_separator || cursor.eat_any(&CLOSERS) || cursor.eat_any(&ENDS) || skip_last_label(cursor);
    (is_skipped || skip_fence(cursor)).then_some(Token::Other)
}

/// Returns whether the text ends here, or continues with a token that cannot begin an argument.
pub(super) fn closes(cursor: &Cursor<'_>) -> bool {
    let mut cursor = *cursor;
    cursor.is_at_end() || cursor.eat_any(&CLOSERS) || cursor.eat_any(&ENDS)
}

/// Moves past the marks of a code fence. Moves past its language too, if models write calls in that language.
pub(super) fn skip_fence(cursor: &mut Cursor<'_>) -> bool {
    if !cursor.starts_with("```") {
        return false;
    }
    cursor.take_while(|character| character == '`');
    let mut ahead = *cursor;
    let language = ahead.path();
    if LANGUAGES.contains(&language) {
        *cursor = ahead;
    }
    true
}

/// Moves past `Observation:` at the end of the text. A model writes it to announce the result of its ReAct call.
fn skip_last_label(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    let is_last = ahead.eat("Observation:") && {
        ahead.skip_blanks();
        ahead.is_at_end()
    };
    if is_last {
        *cursor = ahead;
    }
    is_last
}

/// Removes the end tokens after a text.
pub(super) fn without_ends(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = rest.trim_end();
    }
    text
}

/// Removes the prose before the first tag of a call, such as `<tool_call>`. Returns the tag and the text after it.
/// Returns `None` if there is no such tag, or if the tag is quoted or in a code fence.
pub(super) fn after_lead_in(text: &str) -> Option<&str> {
    let begins = |rest: &str| OPENERS.iter().chain(&HEADERS).any(|opener| rest.starts_with(opener));
    let mut places = text.match_indices(['<', '[']).map(|(at, _)| text.split_at(at));
    let (prose, rest) = places.find(|(_, rest)| begins(rest))?;
    let is_quoted = prose.ends_with(['`', '"', '\'', '“', '«', '„']);
    let is_in_fence = prose.matches("```").count() % 2 == 1;
    (!is_quoted && !is_in_fence).then_some(rest)
}

/// Returns whether some line begins with a tag such as `<tool_call>` and then with JSON. Lines in code fences do not
/// count.
pub(super) fn begins_call_in_a_line(text: &str) -> bool {
    let own = OPENERS.get(..OPENERS.len() - PARTS_OF_CALL).unwrap_or_default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (before, from) = text.split_at(at);
        at += line.len();
        let Some(rest) = own.iter().find_map(|opener| from.trim_start().strip_prefix(opener)) else {
            continue;
        };
        let is_in_fence = before.matches("```").count() % 2 == 1;
        if !is_in_fence && rest.trim_start().starts_with(['{', '[']) {
            return true;
        }
    }
    false
}
