//! The types of files that an endpoint, the model server of a service, accepts.

use polity_society::mime::{MimePattern, MimeType};

/// Patterns of MIME types: `*/*`, `image/*` or `application/pdf`, in any letter case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTypes(Vec<MimePattern>);

impl Default for FileTypes {
    /// Returns patterns that fit every type, because an endpoint without the setting `fileTypes` accepts all files.
    fn default() -> Self {
        Self(vec![MimePattern::Anything])
    }
}

impl FileTypes {
    /// Creates the file types of an endpoint. `patterns` are the patterns of the MIME types that the endpoint
    /// accepts.
    pub fn new(patterns: &[MimePattern]) -> Self {
        Self(patterns.to_vec())
    }

    /// Returns whether the endpoint accepts files of that MIME type.
    pub fn take(&self, mime_type: &MimeType) -> bool {
        self.0.iter().any(|pattern| pattern.matches(mime_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pattern_is_enough() {
        let patterns = ["audio/*", "Application/PDF"].map(|text| MimePattern::parse(text).unwrap());
        let types = FileTypes::new(&patterns);
        let check = |mime_type: &str, expect: bool| {
            assert_eq!(types.take(&MimeType::unchecked(mime_type)), expect, "{mime_type}");
        };
        check("audio/ogg", true);
        check("application/pdf; version=1.7", true);
        check("application/zip", false);
        check("", false);
    }

    #[test]
    fn none_and_any() {
        assert!(!FileTypes::new(&[]).take(&MimeType::PDF));
        assert!(FileTypes::default().take(&MimeType::PDF));
    }
}
