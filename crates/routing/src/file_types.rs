//! The types of files that an endpoint accepts.

/// Patterns of MIME types: `*/*`, `image/*` or `application/pdf`, in any letter case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTypes(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Anything,
    Family(String),
    Exactly(String),
}

/// A text that is not a MIME pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a MIME pattern; write one such as `*/*`, `image/*` or `application/pdf`")]
pub struct BadPattern(pub String);

impl Default for FileTypes {
    /// Accepts every type.
    fn default() -> Self {
        Self(vec![Pattern::Anything])
    }
}

impl FileTypes {
    /// Parses patterns, and returns the invalid ones separately. Without a valid pattern no file is accepted.
    pub fn parse(patterns: &[String]) -> (Self, Vec<BadPattern>) {
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for text in patterns {
            match Pattern::parse(text) {
                Some(pattern) => good.push(pattern),
                None => bad.push(BadPattern(text.clone())),
            }
        }
        (Self(good), bad)
    }

    /// Returns whether the endpoint accepts files of that MIME type.
    pub fn take(&self, mime_type: &str) -> bool {
        let mime_type = essence(mime_type);
        let (family, _) = mime_type.split_once('/').unwrap_or((mime_type.as_str(), ""));
        self.0.iter().any(|pattern| match pattern {
            Pattern::Anything => true,
            Pattern::Family(taken) => taken == family,
            Pattern::Exactly(taken) => *taken == mime_type,
        })
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = essence(text);
        let (family, subtype) = text.split_once('/')?;
        let is_name = |name: &str| {
            let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'/' | b',');
            !name.is_empty() && name.bytes().all(plain)
        };
        match (family, subtype) {
            ("*", "*") => Some(Self::Anything),
            (family, "*") if is_name(family) => Some(Self::Family(family.to_owned())),
            (family, subtype) if is_name(family) && is_name(subtype) => Some(Self::Exactly(text)),
            _ => None,
        }
    }
}

/// Returns a MIME type in lower case, without its parameters.
pub(crate) fn essence(mime_type: &str) -> String {
    let (essence, _) = mime_type.split_once(';').unwrap_or((mime_type, ""));
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, mime_type: &str, expect: bool| {
            let (types, bad) = FileTypes::parse(&[pattern.to_owned()]);
            assert_eq!(bad, []);
            assert_eq!(types.take(mime_type), expect, "{pattern} {mime_type}");
        };
        check("*/*", "application/pdf", true);
        check("*/*", "", true);
        check("image/*", "image/png", true);
        check("IMAGE/*", "image/PNG", true);
        check("image/*", "imagery/png", false);
        check("image/*", "audio/ogg", false);
        check("application/pdf", "Application/PDF; version=1.7", true);
        check("application/pdf", "application/pdfx", false);
        check(" text/csv ", "text/csv", true);
    }

    #[test]
    fn what_is_no_pattern_is_given_back() {
        let check = |text: &str| {
            let (types, bad) = FileTypes::parse(&["audio/*".to_owned(), text.to_owned()]);
            assert_eq!(bad, [BadPattern(text.to_owned())]);
            assert!(types.take("audio/ogg"));
            assert!(!types.take("application/pdf"));
        };
        check("");
        check("pdf");
        check("*/pdf");
        check("*");
        check("application/");
        check("/pdf");
        check("application/p*");
        check("application/pdf, image/png");
        check("a/b/c");
    }

    #[test]
    fn none_and_any() {
        assert!(!FileTypes::parse(&[]).0.take("application/pdf"));
        assert!(FileTypes::default().take("application/pdf"));
    }
}
