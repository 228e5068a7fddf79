//! Distinguishes text from binary data.

/// Whether the given bytes are the whole content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The bytes are the whole content.
    Whole,
    /// The bytes are only the beginning, which may end in the middle of a character.
    Head,
}

/// Whether bytes look like text or like binary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// UTF-8 without unusual control characters: a person could read it.
    Text,
    /// UTF-8 with control characters that do not occur in text.
    Utf8,
    /// Not UTF-8.
    Binary,
}

impl Looks {
    pub(crate) fn of(bytes: &[u8], extent: Extent) -> Self {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            // A head may end in the middle of a character.
            Err(error) if extent == Extent::Head && error.error_len().is_none() => {
                let (complete, _) = bytes.split_at(error.valid_up_to());
                std::str::from_utf8(complete).unwrap_or_default()
            }
            Err(_) => return Self::Binary,
        };
        // Text may have tab, line feed, vertical tab, form feed and carriage return.
        // It may also have the escape character of terminal colours.
        let is_odd = |byte: u8| byte < 0x20 && !matches!(byte, 0x09..=0x0d | 0x1b) || byte == 0x7f;
        if text.bytes().any(is_odd) { Self::Utf8 } else { Self::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks() {
        let check =
            |bytes: &[u8], extent: Extent, expect: Looks| assert_eq!(Looks::of(bytes, extent), expect);
        check(b"", Extent::Whole, Looks::Text);
        check("一二三\r\n\t\x1b[1mbold".as_bytes(), Extent::Whole, Looks::Text);
        check(b"\xef\xbb\xbftext", Extent::Whole, Looks::Text);
        check(b"a\0b", Extent::Whole, Looks::Utf8);
        check(b"\xff\xfea\0", Extent::Whole, Looks::Binary);
        check(b"caf\xe9", Extent::Whole, Looks::Binary);
        check(b"caf\xe9", Extent::Head, Looks::Text);
        check(b"caf\xe9 au lait", Extent::Head, Looks::Binary);
        check(&"一二".as_bytes()[..4], Extent::Head, Looks::Text);
        check(&"一二".as_bytes()[..4], Extent::Whole, Looks::Binary);
    }
}
