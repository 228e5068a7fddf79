//! Cuts the body of a request into pieces that later requests of the same conversation repeat.

/// Cuts a body into pieces. The pieces, joined, are the body again. There is a cut after each message. The last piece
/// contains everything after the messages, such as the tools. The next request of the conversation has nearly all of
/// these pieces, and only a few new ones. So a store that keeps each piece only once needs little space for a whole
/// conversation.
pub fn pieces(body: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut depth, mut begins) = (0_usize, 0);
    let (mut in_text, mut escaped, mut over) = (false, false, false);
    for (place, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                // A message has ended here. The byte at `place` is ASCII, so a character begins at `place + 1`.
                if byte == b'}' && depth == MESSAGES && !over {
                    let (piece, _) = body.split_at(place + 1);
                    pieces.push(piece.split_at(begins).1);
                    begins = place + 1;
                }
                over = over || (byte == b']' && depth < MESSAGES);
            }
            _ => {}
        }
    }
    let (_, rest) = body.split_at(begins);
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Between two messages, this many brackets are open: that of the body, and that of the list.
const MESSAGES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_message_is_a_piece_and_the_rest_is_one() {
        let first = r#"{"model":"m","messages":[{"role":"system","content":"a } ] \" \\"}"#;
        let second = r#",{"role":"user","content":[{"type":"text","text":"[{"}]}"#;
        let rest = r#"],"tools":[{"type":"function"},{"type":"function"}],"stream":true}"#;
        let body = format!("{first}{second}{rest}");
        assert_eq!(pieces(&body), [first, second, rest]);
        assert_eq!(pieces(r#"{"model":"m","messages":[]}"#), [r#"{"model":"m","messages":[]}"#]);
    }

    proptest! {
        #[test]
        fn joined_pieces_are_the_body(
            texts in proptest::collection::vec(".{0,12}", 0..6),
            tool in ".{0,9}",
            noise in ".{0,40}",
        ) {
            let messages: Vec<_> = texts.iter().map(|text| serde_json::json!({"content": text})).collect();
            let body = serde_json::json!({"model": "m", "messages": messages, "tools": [{"name": tool}]}).to_string();
            let cut = pieces(&body);
            prop_assert_eq!(cut.concat(), body.as_str());
            prop_assert_eq!(cut.len(), texts.len() + 1);
            // Even if a text is not the body of a request, its pieces together are the whole text.
            prop_assert_eq!(pieces(&noise).concat(), noise.as_str());
        }
    }
}
