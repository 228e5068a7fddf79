//! Splits the body of a streamed answer into server-sent events.
//!
//! The body may arrive in pieces of any length. The splitter reads each byte once. It keeps only the beginning of the
//! event that has not ended yet. The length of an event is limited, because the caller limits the length of the whole
//! body.

/// Splits bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    event: Event,
    place: Place,
}

/// The fields `event` and `data` of an event. All other fields, such as `id`, are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The field `event`; empty if there is none.
    pub(crate) name: Vec<u8>,
    /// The lines of `data`, with a line feed after each line.
    pub(crate) data: Vec<u8>,
}

/// The position of the next byte in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In the first line, which may begin with a byte order mark.
    #[default]
    FirstLine,
    /// Directly after a carriage return. A line feed at this position belongs to the same line break.
    AfterReturn,
    /// In a later line.
    Within,
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Splitter {
    /// Returns how many bytes the splitter keeps of the event that has not ended yet.
    pub(crate) fn buffered(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    /// Returns the next event that has data, and removes its bytes from the front of `bytes`. If no such event ends in
    /// `bytes`, takes all bytes and returns `None`.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Option<Event> {
        while let Some((first, after)) = bytes.split_first() {
            if self.place == Place::AfterReturn {
                self.place = Place::Within;
                if *first == b'\n' {
                    *bytes = after;
                    continue;
                }
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(std::mem::take(bytes));
                return None;
            };
            let (line, rest) = bytes.split_at(end);
            let (feed, rest) = rest.split_first().unwrap_or((&b'\n', rest));
            *bytes = rest;
            // A line is copied only if it arrived in several pieces.
            let begun = std::mem::take(&mut self.line);
            let whole = if begun.is_empty() { None } else { Some([&*begun, line].concat()) };
            let mut line = whole.as_deref().unwrap_or(line);
            if self.place == Place::FirstLine {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            self.place = if *feed == b'\r' { Place::AfterReturn } else { Place::Within };
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                if !event.data.is_empty() {
                    return Some(event);
                }
            } else {
                self.event.take_line(line);
            }
        }
        None
    }
}

impl Event {
    fn take_line(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.reserve_exact(value.len() + 1);
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = value.to_owned(),
            // All other fields are ignored, and so are comments. A comment is a line with an empty field name.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits the pieces, and returns the name and the data of each event.
    fn split<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<(String, String)> {
        let mut splitter = Splitter::default();
        let mut events = Vec::new();
        for mut piece in pieces {
            while let Some(event) = splitter.next(&mut piece) {
                let [name, data] =
                    [event.name, event.data].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                events.push((name, data.strip_suffix('\n').unwrap().to_owned()));
            }
        }
        events
    }

    fn check(text: &str, expect: &[&str]) {
        let data: Vec<String> = split([text.as_bytes()]).into_iter().map(|(_, data)| data).collect();
        assert_eq!(data, expect, "{text:?}");
    }

    #[test]
    fn what_is_an_event() {
        check("data: a\n\ndata:b\n\n", &["a", "b"]);
        check("data:  two spaces \n\n", &[" two spaces "]);
        check("data: one\ndata: two\n\n", &["one\ntwo"]);
        check("data\n\n", &[""]);
        check("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", &["a", "b", "c"]);
        check(": a comment\n\n:\ndata: a\n: another\n\n", &["a"]);
        check("id: 7\nretry: 1\nnothing\ndata: a\ndate: b\n\n", &["a"]);
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
        check("\u{feff}\n\ndata: a\n\n", &["a"]);
        check("\n\n\n", &[]);
        check("data: without an end\n", &[]);
        check("data: a: b\n\n", &["a: b"]);
    }

    #[test]
    fn names_belong_to_their_event() {
        let names = split([&b"event: one\ndata: a\n\nevent: lost\n\ndata: b\n\n"[..]]);
        assert_eq!(names, [("one".to_owned(), "a".to_owned()), (String::new(), "b".to_owned())]);
    }

    /// Splits a whole text in the simplest way.
    fn expected(text: &[u8]) -> Vec<(String, String)> {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        // Each byte becomes one character, so that bytes that are not valid UTF-8 can be compared too.
        let text: String = text.iter().map(|byte| char::from(*byte)).collect();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let Some((text, _)) = text.rsplit_once('\n') else { return Vec::new() };
        let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
        for line in text.split('\n') {
            if line.is_empty() {
                let (name, data) = (std::mem::take(&mut name), std::mem::take(&mut data));
                if !data.is_empty() {
                    events.push((name, data.join("\n")));
                }
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "data" => data.push(value),
                "event" => name = value,
                _ => {}
            }
        }
        let bytes = |text: String| text.chars().map(|character| character as u8).collect::<Vec<u8>>();
        let shown = |text: String| String::from_utf8_lossy(&bytes(text)).into_owned();
        events.into_iter().map(|(name, data)| (shown(name), shown(data))).collect()
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just(b"data:".to_vec()),
            Just(b"data: ".to_vec()),
            Just(b"event: ".to_vec()),
            Just(b": ".to_vec()),
            Just(BYTE_ORDER_MARK.to_vec()),
            Just("字🙂".as_bytes().to_vec()),
            Just(vec![0xff, 0xfe, 0xef, 0xbb]),
            Just(vec![b'x'; 100_000]),
            "[a-z:{} ]{0,8}".prop_map(String::into_bytes),
        ];
        (any::<bool>(), proptest::collection::vec(piece, 0..24)).prop_map(|(marked, pieces)| {
            let mark = if marked { BYTE_ORDER_MARK } else { b"" };
            [mark, &*pieces.concat()].concat()
        })
    }

    proptest! {
        #[test]
        fn the_events_are_the_same_however_the_bytes_are_cut(
            text in stream(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
            prop_assert_eq!(split(pieces), expected(&text));
        }

        #[test]
        fn one_byte_at_a_time_is_enough(text in stream()) {
            prop_assert_eq!(split(text.chunks(1)), expected(&text));
        }
    }
}
