use crate::spoken::without_thoughts;

fn check(text: &str, thoughts: Option<&str>, rest: &str) {
    let expected = (thoughts.map(str::to_owned), rest.to_owned());
    assert_eq!(without_thoughts(text), expected, "{text}");
}

#[test]
fn thoughts_are_split_off() {
    check("<think>a</think>b", Some("a"), "b");
    check("\n<think>\na\n</think>\n\nb\n", Some("a"), "b");
    check("<think>\n\n</think>\n\nb", None, "b");
    check("<thinking>a</thinking> b", Some("a"), "b");
    check("<reasoning>a</reasoning><answer>b</answer>", Some("a"), "<answer>b</answer>");
    check("[THINK]a[/THINK]b", Some("a"), "b");
    check("<think>a</think><think>b</think>c", Some("a\n\nb"), "c");
    check("<think>a <think> b </think> c\n</think>\nd", Some("a <think> b\n\nc"), "d");
    check("<|START_THINKING|>a<|END_THINKING|>b", Some("a"), "b");
}

#[test]
fn an_unclosed_mark_at_the_beginning_makes_everything_a_thought() {
    check("<think>\nI wonder", Some("I wonder"), "");
    check("<think>a</think><think>b", Some("a\n\nb"), "");
}

#[test]
fn a_lone_closing_mark_ends_the_thoughts() {
    check("I wonder.\n</think>\n\nYes.", Some("I wonder."), "Yes.");
    check("I wonder.</think>\nYes.", Some("I wonder."), "Yes.");
    check("I call.</think><tool_call>x", Some("I call."), "<tool_call>x");
    check("</think>\nYes.", None, "Yes.");
}

#[test]
fn harmony_has_its_channels_taken_away() {
    check(
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
        Some("a"),
        "b",
    );
    check("<|channel|>analysis<|message|>a", Some("a"), "");
    check("<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b", Some("a"), "b");
    check("<|channel|>final<|message|>b", None, "b");
}

#[test]
fn marks_in_the_middle_are_left() {
    for text in ["Hello <think>a</think> b", "The tag <think> opens, </think>\ncloses."] {
        check(text, None, text);
    }
}
