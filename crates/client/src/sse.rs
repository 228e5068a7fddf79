//! An incremental parser of server-sent events, the stream format of the HTML standard. It does no I/O.

/// Longest line that the parser accepts, in bytes. An event is one line of JSON; no event of a daemon is longer.
pub(crate) const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// An event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The last id in the stream so far; `None` if the stream has contained no id yet.
    pub(crate) id: Option<String>,
    /// The event's type; `message` if the stream specifies none.
    pub(crate) event: String,
    /// The event's data lines, joined by line breaks.
    pub(crate) data: String,
}

/// A line exceeded [`LONGEST_LINE`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of the event stream is longer than {LONGEST_LINE} bytes")]
pub(crate) struct TooLong;

/// The state of the parser between two pieces of a stream.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    place: Place,
    id: Option<String>,
    event: String,
    data: Option<String>,
}

/// The position of the next byte in the stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the first line, which may start with a byte order mark.
    #[default]
    FirstLine,
    /// In a later line.
    Line,
    /// Directly after a carriage return; a line feed may complete the line break.
    AfterReturn,
}

impl Parser {
    /// Takes the next bytes of the stream, which may be cut at any point. Returns the events that are now complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, TooLong> {
        let mut frames = Vec::new();
        for &byte in bytes {
            let after_return = self.place == Place::AfterReturn;
            match byte {
                b'\n' if after_return => self.place = Place::Line,
                b'\n' | b'\r' => {
                    frames.extend(self.end_line());
                    self.place = if byte == b'\r' { Place::AfterReturn } else { Place::Line };
                }
                _ => {
                    if after_return {
                        self.place = Place::Line;
                    }
                    if self.line.len() == LONGEST_LINE {
                        return Err(TooLong);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(frames)
    }

    fn end_line(&mut self) -> Option<Frame> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = match self.place {
            Place::FirstLine => line.strip_prefix('\u{feff}').unwrap_or(&line),
            Place::Line | Place::AfterReturn => &line,
        };
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.event),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // A comment has an empty field name. `retry` is ignored: `follow.rs` computes the pauses between its
            // attempts itself.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Frame> {
        let event = std::mem::take(&mut self.event);
        let data = self.data.take()?;
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(Frame { id: self.id.clone(), event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(id: Option<&str>, event: &str, data: &str) -> Frame {
        Frame { id: id.map(str::to_owned), event: event.to_owned(), data: data.to_owned() }
    }

    #[track_caller]
    fn check(stream: &str, expect: &[Frame]) {
        assert_eq!(Parser::default().push(stream.as_bytes()).unwrap(), expect, "{stream:?}");
    }

    #[test]
    fn streams() {
        check("", &[]);
        check("data: a\n\n", &[frame(None, "message", "a")]);
        check("data:a\n\ndata:  b\n\n", &[frame(None, "message", "a"), frame(None, "message", " b")]);
        check("id: 7\nevent: x\ndata: {}\n\n", &[frame(Some("7"), "x", "{}")]);
        check("\u{feff}data: a\n\n", &[frame(None, "message", "a")]);
        check("data: a\ndata\ndata: b\r\n\r\n", &[frame(None, "message", "a\n\nb")]);
        check("data: a\r\rdata: b\r\r", &[frame(None, "message", "a"), frame(None, "message", "b")]);
        // An event is complete only after an empty line.
        check("data: a\n", &[]);
        check(": still here\n\n: still here\n\n", &[]);
        check("retry: 10\nunknown: x\ndata: a\n\n", &[frame(None, "message", "a")]);
        // An id is valid for all later events until the next id, even if the event that contains the id has no data.
        check("id: 1\n\ndata: a\n\n", &[frame(Some("1"), "message", "a")]);
        check(
            "id: 1\ndata: a\n\nid: a\0b\ndata: b\n\n",
            &[frame(Some("1"), "message", "a"), frame(Some("1"), "message", "b")],
        );
        check("event: x\n\ndata: a\n\n", &[frame(None, "message", "a")]);
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; LONGEST_LINE];
        assert_eq!(parser.push(&chunk), Ok(Vec::new()));
        assert_eq!(parser.push(b"x"), Err(TooLong));
    }

    /// Generates streams from typical lines and from random bytes.
    fn streams_of_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"id: 12".to_vec()),
            Just(b"event: message_accepted".to_vec()),
            Just(b": comment".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just("\u{feff}看".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn how_a_stream_is_cut_changes_nothing(
            stream in streams_of_bytes(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let whole = Parser::default().push(&stream).unwrap();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut parser = Parser::default();
            let mut pieces = Vec::new();
            for cut in cuts.windows(2) {
                pieces.extend(parser.push(&stream[cut[0]..cut[1]]).unwrap());
            }
            prop_assert_eq!(pieces, whole);
        }

        #[test]
        fn what_was_written_is_read(
            events in proptest::collection::vec((0_i64..1000, "[a-z_]{1,9}", "[^\r\n\0]{0,20}"), 0..8),
            line_end in prop_oneof![Just("\n"), Just("\r"), Just("\r\n")],
        ) {
            let mut stream = String::new();
            for (id, event, data) in &events {
                stream.push_str(&format!(
                    "id: {id}{line_end}event: {event}{line_end}data: {data}{line_end}{line_end}:{line_end}"
                ));
            }
            let expect: Vec<Frame> = events
                .iter()
                .map(|(id, event, data)| frame(Some(&id.to_string()), event, data))
                .collect();
            prop_assert_eq!(Parser::default().push(stream.as_bytes()).unwrap(), expect);
        }
    }
}
