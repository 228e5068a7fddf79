use super::OFFERED;
use super::broken::BROKEN;
use super::calls::CALLS;
use super::texts::TEXTS;
use crate::spoken::{read, without_thoughts};
use std::time::{Duration, Instant};

/// Time limit for one text. It is generous, even for a debug build on a busy machine. If the work were quadratic, it
/// would take minutes.
const ENOUGH: Duration = Duration::from_secs(10);

fn all_texts() -> impl Iterator<Item = &'static str> {
    let calls = CALLS.iter().map(|(_, text, _)| *text);
    calls.chain(BROKEN.iter().map(|(text, _, _)| *text)).chain(TEXTS.iter().copied())
}

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit into usize") % bound.max(1)
    }
}

fn read_both(text: &str) {
    let _ = read(text, &OFFERED);
    let _ = without_thoughts(text);
}

#[test]
fn no_prefix_panics() {
    for text in all_texts() {
        for (end, _) in text.char_indices() {
            read_both(&text[..end]);
            read_both(&text[end..]);
        }
    }
}

#[test]
fn no_mixture_panics() {
    let texts: Vec<&str> = all_texts().collect();
    let mut numbers = Numbers(1);
    for _ in 0..5_000 {
        let mut mixed = String::new();
        for _ in 0..1 + numbers.below(3) {
            let text = texts[numbers.below(texts.len())];
            let characters = text.chars().count();
            let start = numbers.below(characters);
            mixed.extend(text.chars().skip(start).take(numbers.below(characters)));
        }
        read_both(&mixed);
    }
}

const BEGINNINGS: &[&str] = &[
    "",
    "x ",
    "<tool_call>",
    "{\"name\":\"run\",\"arguments\":{\"args\":",
    "run(args=",
    "<run><args>",
    "```json\n",
];

const PIECES: &[&str] = &[
    "{",
    "[",
    "<tool_call>",
    "```",
    "(",
    "</tool_call>",
    "<think>",
    "</think>",
    "<",
    "<|",
    "\"",
    "'",
    "\\",
    "{\"a\":",
    "[{",
    "<function=",
    "<function=a>",
    "<parameter=a>",
    "<invoke name=\"a\">",
    "/*",
    "//",
    "#",
    "<|channel|>",
    "<|channel|>analysis<|message|>",
    "<|channel|>commentary<|message|>",
    "Action:",
    "Thought:\nAction:",
    "print(",
    "send_message(",
    "send_message(to=",
    "[send_message(",
    "<send_message>",
    "<send_message><to>",
    "<arg_key>",
    "{\"name\":\"run\",\"arguments\":{}}",
    "<tool_call>{\"name\":\"run\",\"arguments\":",
    "[TOOL_CALLS]run{",
    "<|\"|>",
    "<escape>",
    "\"\"\"",
    "```json\n",
    "<think></think>",
    "`</think>",
    "x\n</think>\n",
    "run(args=[",
    "a.",
    "}",
    ";",
    "{\"tool_calls\":[",
    "{\"function\":{",
    "<｜tool▁sep｜>",
    "to=",
    "<|start|>assistant",
    "é",
    "run\n",
    "<tool_call>run<arg_key>a</arg_key><arg_value>b</arg_value>",
    "Observation:",
    "<|im_end|>",
    "run(command=\"a\")\n",
];

fn check_time(piece: &str, count: usize) {
    let repeated = piece.repeat(count);
    for beginning in BEGINNINGS {
        let text = format!("{beginning}{repeated}");
        let start = Instant::now();
        read_both(&text);
        let taken = start.elapsed();
        assert!(taken < ENOUGH, "{taken:?} for {beginning}{piece}");
    }
}

#[test]
fn long_nasty_texts_take_linear_time() {
    for piece in ["{", "[", "<tool_call>", "```", "("] {
        check_time(piece, 60_000);
    }
}

#[test]
fn nasty_texts_take_linear_time() {
    for piece in PIECES {
        check_time(piece, 4_000);
    }
}

#[test]
fn a_long_call_is_read() {
    let content = "line \\\"quoted\\\"\\n".repeat(70_000);
    let text = format!(r#"{{"name": "write_file", "arguments": {{"path": "a", "content": "{content}"}}}}"#);
    let expected = format!(r#"[["write_file", {{"path": "a", "content": "{content}"}}]]"#);
    super::check("a long call", &text, &expected);
}
