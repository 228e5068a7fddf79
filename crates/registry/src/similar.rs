//! If a field or a capability has an unknown name, guesses which name was meant.

use polity_society::content::{Capability, KnownCapability};
use strum::{IntoStaticStr, VariantArray};

/// Minimum similarity at which one name counts as a misspelling of another name. A similarity is a number from 0 to 1.
/// It does not matter for synonyms, and for names that differ only in case and punctuation: they always count as the
/// same name.
const NEAR: f64 = 0.8;

/// A name, and its synonyms in the form that [`fold`] returns.
type OtherWords = (&'static str, &'static [&'static str]);

/// Names that other programs use for the fields.
const FIELDS: &[OtherWords] = &[
    ("baseURL", &["url", "base", "endpoint", "apibase", "apiurl", "apiendpoint", "openaibaseurl", "host"]),
    ("model", &["modelname", "modelid"]),
    ("apiKey", &["key", "token", "apitoken", "openaiapikey", "secret"]),
    ("capabilities", &["capability", "modalities"]),
    ("capabilityTags", &["tags", "labels"]),
    ("contextWindow", &["context", "contextlength", "contextsize", "contexttokens", "maxcontext", "numctx"]),
    ("maxTokens", &["maxoutputtokens", "maxcompletiontokens", "numpredict"]),
    ("maxConcurrentRequests", &["concurrency", "maxconcurrency", "maxconcurrent", "parallel", "maxparallel"]),
    ("timeoutMs", &["timeout", "timeoutseconds", "requesttimeout"]),
    ("fileTypes", &["mimetypes", "files"]),
    ("price", &["prices", "pricing", "cost"]),
    ("extraBody", &["extra", "body", "extraparams"]),
    ("fallback", &["fallbackservice", "fallbacks"]),
    ("defaultService", &["service", "default", "defaultserviceid"]),
    ("language", &["lang", "locale"]),
    ("shutdownGraceMs", &["shutdowngrace", "grace"]),
    ("maxAttempts", &["attempts", "retries", "maxretries"]),
    ("baseDelayMs", &["basedelay", "delay", "delayms"]),
    ("maxDelayMs", &["maxdelay"]),
];

/// Words that people use for input capabilities.
const INPUTS: &[OtherWords] = &[
    ("text", &["texts", "txt", "chat", "文本", "文字", "文本对话"]),
    ("vision", &["image", "images", "img", "picture", "pictures", "visual", "imageurl", "imageinput"]),
    ("vision", &["图片", "图像", "视觉", "视觉理解", "图像理解"]),
    ("audio", &["sound", "sounds", "voice", "speech", "inputaudio", "音频", "语音", "音频理解"]),
    ("video", &["videos", "movie", "movies", "视频", "视频理解"]),
    ("file", &["files", "pdf", "pdfs", "document", "documents", "doc", "docs", "文件", "文档", "文件阅读"]),
];

/// Words that people use for output capabilities. The list contains no words for pictures and sound, because a model
/// that produces these has custom capabilities.
const OUTPUTS: &[OtherWords] = &[
    ("text", &["texts", "txt", "chat", "文本", "文字", "文本对话"]),
    ("structured_output", &["json", "jsonschema", "jsonmode", "jsonobject", "structured", "responseformat"]),
    ("structured_output", &["structuredoutputs", "结构化输出"]),
    ("tool_calling", &["tool", "tools", "tooluse", "toolcall", "toolcalls", "工具", "工具调用"]),
    ("tool_calling", &["function", "functions", "functioncall", "functioncalls", "functioncalling"]),
];

/// One of the two lists in `capabilities`: `input` or `output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Side {
    Input,
    Output,
}

impl Side {
    /// Returns the name of this list in `capabilities`.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Returns the known field that an unknown field name probably means.
pub(crate) fn field<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    meant(written, &known, FIELDS)
}

/// Returns the known capability that a custom capability probably means, and the list to which it belongs.
pub(crate) fn capability(written: &Capability, side: Side) -> Option<(&'static str, Side)> {
    let known: Vec<&'static str> = KnownCapability::VARIANTS.iter().map(Into::into).collect();
    if known.contains(&written.as_str()) {
        return None;
    }
    let of_outputs = || meant(written.as_str(), &known, OUTPUTS);
    match side {
        Side::Output => of_outputs().map(|name| (name, Side::Output)),
        Side::Input => {
            let name = meant(written.as_str(), &known, INPUTS).or_else(of_outputs)?;
            Some((name, side_of(name.parse().ok()?)))
        }
    }
}

/// Returns the list to which a known capability belongs. `text` belongs to both lists; here it counts as an input.
fn side_of(known: KnownCapability) -> Side {
    match known {
        KnownCapability::StructuredOutput | KnownCapability::ToolCalling => Side::Output,
        KnownCapability::Text
        | KnownCapability::Vision
        | KnownCapability::Audio
        | KnownCapability::Video
        | KnownCapability::File => Side::Input,
    }
}

/// Returns the known name that `written` probably means. First looks for a name that differs from `written` only in
/// case and punctuation, then for a name that has `written` as a synonym. Then takes the most similar name, if it is
/// similar enough.
fn meant<'k>(written: &str, known: &[&'k str], words: &[OtherWords]) -> Option<&'k str> {
    let written = fold(written);
    if let Some(same) = known.iter().find(|name| fold(name) == written) {
        return Some(same);
    }
    let word = words.iter().find(|(name, others)| known.contains(name) && others.contains(&&*written));
    if let Some((name, _)) = word {
        return known.iter().find(|known| *known == name).copied();
    }
    let scored =
        known.iter().map(|name| (strsim::normalized_damerau_levenshtein(&written, &fold(name)), *name));
    let nearest = scored.filter(|(score, _)| *score >= NEAR).max_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.map(|(_, name)| name)
}

/// Returns the letters and digits of a name in lower case.
fn fold(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_look_like_others() {
        const SERVICE: [&str; 16] = [
            "id",
            "baseURL",
            "model",
            "apiKey",
            "headers",
            "timeoutMs",
            "timeouts",
            "maxTokens",
            "extraBody",
            "dialect",
            "capabilities",
            "capabilityTags",
            "contextWindow",
            "maxImageBytes",
            "maxImageEdge",
            "price",
        ];
        let check =
            |written: &str, expect: Option<&str>| assert_eq!(field(written, SERVICE), expect, "{written}");
        check("base_url", Some("baseURL"));
        check("baseUrl", Some("baseURL"));
        check("BASE-URL", Some("baseURL"));
        check("url", Some("baseURL"));
        check("apikey", Some("apiKey"));
        check("api_key", Some("apiKey"));
        check("apiKeys", Some("apiKey"));
        check("contextwindow", Some("contextWindow"));
        check("context_length", Some("contextWindow"));
        check("headres", Some("headers"));
        check("modle", Some("model"));
        check("timeout", Some("timeoutMs"));
        check("capability", Some("capabilities"));
        check("capabilitie", Some("capabilities"));
        check("maxImageByte", Some("maxImageBytes"));
        check("extra_body", Some("extraBody"));
        // `lang` is a synonym of `language`, but a service has no field `language`, so there is no guess.
        check("lang", None);
        check("colour", None);
        check("version", None);
        check("temperature", None);
        check("", None);
        check("_", None);
        assert_eq!(field("model", []), None);
    }

    #[test]
    fn capabilities_that_look_like_others() {
        let check = |written: &str, side: Side, expect: Option<(&str, Side)>| {
            let capability = Capability::new(written).unwrap();
            assert_eq!(super::capability(&capability, side), expect, "{written}");
        };
        let input =
            |written: &str, expect: &'static str| check(written, Side::Input, Some((expect, Side::Input)));
        let output =
            |written: &str, expect: &'static str| check(written, Side::Output, Some((expect, Side::Output)));
        input("Vision", "vision");
        input("VISION", "vision");
        input("visoin", "vision");
        input("image", "vision");
        input("images", "vision");
        input("image_url", "vision");
        input("图片", "vision");
        input("Audio", "audio");
        input("speech", "audio");
        input("Video", "video");
        input("pdf", "file");
        input("documents", "file");
        input("Text", "text");
        output("tools", "tool_calling");
        output("tool_use", "tool_calling");
        output("toolCalling", "tool_calling");
        output("tool-calling", "tool_calling");
        output("function_calling", "tool_calling");
        output("json", "structured_output");
        output("json_schema", "structured_output");
        output("structured_outputs", "structured_output");
        // The known name `tool_calling` is an output capability, so the guess names the list `output`.
        check("tools", Side::Input, Some(("tool_calling", Side::Output)));
        // No guess, because a model may really produce pictures or speech.
        check("image", Side::Output, None);
        check("speech", Side::Output, None);
        // There is no guess in two cases: for a known capability, and for a custom capability that resembles no known
        // name.
        for own in ["smell", "嗅觉", "reasoning", "code", "test", "video", "text", "vision"] {
            check(own, Side::Input, None);
            check(own, Side::Output, None);
        }
    }

    /// Checks the lists of synonyms. Each character of a synonym must be one that `fold` can return. Otherwise the
    /// synonym would never be found. No two synonyms may be equal, because only the first would be found.
    #[test]
    fn other_words_are_folded_and_each_stands_for_one_name() {
        for words in [FIELDS, INPUTS, OUTPUTS] {
            let all: Vec<&str> = words.iter().flat_map(|(_, others)| others.iter().copied()).collect();
            assert!(all.iter().all(|word| fold(word) == *word));
            assert!(all.iter().enumerate().all(|(at, word)| !all[..at].contains(word)));
        }
        for (name, _) in INPUTS.iter().chain(OUTPUTS) {
            assert!(name.parse::<KnownCapability>().is_ok(), "{name}");
        }
    }
}
