//! Decides which warnings the person gets about a message. Such a message is accepted, but something in it will not
//! work.

use crate::guidance::is_small;
use crate::room::within;
use polity_llm::estimate_tokens;
use polity_registry::{Catalogue, Prompts, Service};
use polity_society::content::{Capability, Direction, Kind};
use polity_society::id::ServiceId;
use polity_society::limits::Limits;
use polity_society::text::{TextKey, Texts};
use polity_view::{Warning, WarningCode};

/// The message of the person.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The text of the message.
    pub text: &'a str,
    /// The attachments.
    pub attached: &'a [Attached],
    /// The service of root, if the message begins a task.
    pub root: Option<&'a Service>,
    /// The limits of the society.
    pub limits: &'a Limits,
}

/// An attachment of the message.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The name of the file, or the reference of the artifact.
    pub name: String,
    /// The kind of the bytes.
    pub kind: Kind,
    /// Size in bytes.
    pub size: u64,
}

/// Something about the message that will not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// No service takes these attachments.
    NobodyTakes { names: Vec<String>, capability: Capability },
    /// The service of root allows no tools, so its model can only write text.
    NoTools { service: ServiceId },
    /// The message does not fit into the context window of root's model.
    DoesNotFit { service: ServiceId, tokens: u64, window: u64 },
}

/// Returns everything in the message that will not work, the most important first.
pub fn foresee(asked: Asked<'_>, catalogue: &Catalogue, prompts: &Prompts) -> Vec<Foreseen> {
    let mut foreseen = Vec::new();
    // Documents need no check: if a model does not take a document, polity extracts its text.
    for kind in [Kind::Image, Kind::Audio, Kind::Video] {
        let capability = kind.needs();
        let of_kind = asked.attached.iter().filter(|attached| attached.kind == kind);
        let names: Vec<String> = of_kind.map(|attached| attached.name.clone()).collect();
        if !names.is_empty() && catalogue.services_with(&capability, Direction::Input).is_empty() {
            foreseen.push(Foreseen::NobodyTakes { names, capability });
        }
    }
    let Some(root) = asked.root else { return foreseen };
    if !root.tools_allowed() {
        foreseen.push(Foreseen::NoTools { service: root.id.clone() });
    }
    let tokens = estimate_tokens(asked.text)
        .saturating_add(rules_tokens(root, prompts))
        .saturating_add(tokens_of_texts(asked.attached, asked.limits, root));
    if let Some(window) = root.context_window.filter(|window| tokens > *window) {
        foreseen.push(Foreseen::DoesNotFit { service: root.id.clone(), tokens, window });
    }
    foreseen
}

/// Returns the least number of tokens that the attached texts can take in a request: as many as if they were ASCII. A
/// request shows at most `inline_text_chars` of each text.
fn tokens_of_texts(attached: &[Attached], limits: &Limits, root: &Service) -> u64 {
    let most = within(limits, root).inline_text_chars;
    let texts = attached.iter().filter(|one| one.kind == Kind::Text);
    texts.map(|text| text.size.min(most).div_ceil(4)).sum()
}

/// Estimates the tokens of the rules that the system message contains in every request to root's model. The definitions
/// of tools are not included.
pub fn rules_tokens(root: &Service, prompts: &Prompts) -> u64 {
    let parts = match root.context_window {
        Some(window) if is_small(window) => [prompts.small.as_str(), &prompts.root_small, ""],
        Some(_) | None => [prompts.base.as_str(), &prompts.root, &prompts.tool_rules],
    };
    parts.into_iter().map(estimate_tokens).sum()
}

impl Foreseen {
    /// Returns the warning in the language of the texts.
    pub fn warning(&self, texts: &Texts) -> Warning {
        let (code, text) = match self {
            Self::NobodyTakes { names, capability } => {
                let values = [("names", &*names.join(", ")), ("capability", capability.as_str())];
                (WarningCode::NobodyTakes, texts.fill(TextKey::WarningNobodyTakes, &values))
            }
            Self::NoTools { service } => {
                (WarningCode::NoTools, texts.fill(TextKey::WarningNoTools, &[("service", service.as_str())]))
            }
            Self::DoesNotFit { service, tokens, window } => {
                let (tokens, window) = (tokens.to_string(), window.to_string());
                let values = [("service", service.as_str()), ("tokens", &*tokens), ("window", &*window)];
                (WarningCode::DoesNotFit, texts.fill(TextKey::WarningDoesNotFit, &values))
            }
        };
        Warning { code, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{snapshot, snapshot_of};
    use polity_registry::Declaration;
    use serde_json::{Value, json};

    fn file(name: &str, kind: Kind, size: u64) -> Attached {
        Attached { name: name.to_owned(), kind, size }
    }

    fn attached(kinds: &[Kind]) -> Vec<Attached> {
        kinds.iter().map(|kind| file(&format!("a.{}", kind.as_str()), *kind, 10)).collect()
    }

    /// Returns what is foreseen about a message with two pictures, and with one attachment of every kind except
    /// pictures. `inputs` contains the input capabilities of each service.
    async fn of_attachments(inputs: &[&[&str]]) -> Vec<Foreseen> {
        let service = |(number, input): (usize, &&[&str])| {
            json!({
                "id": format!("s{number}"),
                "baseURL": "http://127.0.0.1:9/v1",
                "model": "m",
                "capabilities": {"input": input, "output": ["text", "tool_calling"]},
            })
        };
        let services: Vec<Value> = inputs.iter().enumerate().map(service).collect();
        let services = json!({ "services": services }).to_string();
        let snapshot = snapshot_of(&json!({}), &services).await;
        let mut all = attached(Kind::ALL);
        all.push(file("b.image", Kind::Image, 10));
        let asked = Asked { text: "look", attached: &all, root: None, limits: &Limits::default() };
        foresee(asked, &snapshot.catalogue, &snapshot.prompts)
    }

    #[tokio::test]
    async fn what_no_service_takes_is_foreseen() {
        let nobody = |names: &[&str], capability: Capability| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Foreseen::NobodyTakes { names, capability }
        };
        let pictures = nobody(&["a.image", "b.image"], Capability::VISION);
        let sound = nobody(&["a.audio"], Capability::AUDIO);
        let film = nobody(&["a.video"], Capability::VIDEO);
        let all = [pictures.clone(), sound.clone(), film.clone()];
        assert_eq!(of_attachments(&[&["text"]]).await, all, "polity extracts the text of documents");
        assert_eq!(of_attachments(&[&["text"], &["text", "vision"]]).await, [sound, film]);
        assert_eq!(of_attachments(&[&["text"], &["text", "vision", "audio", "video"]]).await, []);
        let snapshot = snapshot(&json!({"language": "en"})).await;
        let Warning { code, text } = pictures.warning(&snapshot.prompts.texts);
        assert_eq!(code, WarningCode::NobodyTakes);
        let words = "No service can read a.image, b.image itself: none declares vision.";
        assert!(text.starts_with(words), "{text}");
        // The services need not be those of a file, and the servers need not report more than is declared. In both
        // cases, `--fix` mends nothing.
        assert!(text.contains("`polity doctor`") && !text.contains("--fix"), "{text}");
    }

    #[tokio::test]
    async fn a_model_without_tools_and_a_window_that_is_too_small_are_foreseen() {
        let snapshot = snapshot(&json!({"language": "en"})).await;
        let (catalogue, prompts) = (&snapshot.catalogue, &snapshot.prompts);
        let mut root = (**catalogue.default_service()).clone();
        let long = "x".repeat(4 * 5_000);
        let of = |root: &Service, text: &str| -> Vec<String> {
            let asked = Asked { text, attached: &[], root: Some(root), limits: &Limits::default() };
            let foreseen = foresee(asked, catalogue, prompts);
            foreseen.iter().map(|one| one.warning(&prompts.texts).text).collect()
        };
        assert_eq!(of(&root, &long), Vec::<String>::new(), "the window is not known");
        root.context_window = Some(4_096);
        assert_eq!(of(&root, "short"), Vec::<String>::new());
        let told = of(&root, &long);
        assert!(told[0].contains("the context window of service words has only 4096"), "{told:?}");
        root.declared = Declaration::Declared;
        let told = of(&root, "short");
        assert!(told[0].starts_with("The model of service words calls no tools"), "{told:?}");
        // `root` is `None`: the message goes to an agent that already works, so it starts no task.
        let asked = Asked { text: &long, attached: &[], root: None, limits: &Limits::default() };
        assert_eq!(foresee(asked, catalogue, prompts), []);
    }

    #[tokio::test]
    async fn the_rules_and_the_attached_texts_count_too() {
        let snapshot = snapshot(&json!({"language": "en"})).await;
        let mut root = (**snapshot.catalogue.default_service()).clone();
        let window = 32_000;
        root.context_window = Some(window);
        let rules = rules_tokens(&root, &snapshot.prompts);
        assert!(rules > 0, "there are no rules");
        let limits = Limits { inline_text_chars: 4_000, ..Limits::default() };
        let tokens = |free: u64, attached: &[Attached]| {
            let text = "x".repeat(usize::try_from(4 * (window - rules - free)).unwrap());
            let asked = Asked { text: &text, attached, root: Some(&root), limits: &limits };
            let found = foresee(asked, &snapshot.catalogue, &snapshot.prompts).pop();
            found.map(|found| match found {
                Foreseen::DoesNotFit { tokens, .. } => tokens,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(tokens(0, &[]), None);
        let short = file("a.txt", Kind::Text, 40);
        assert_eq!(tokens(0, std::slice::from_ref(&short)), Some(window + 10));
        // A request shows only the beginning of a long text, and of other files something else than their bytes.
        let files = [short, file("b.txt", Kind::Text, 1 << 30), file("c.pdf", Kind::Document, 1 << 30)];
        assert_eq!(tokens(1_010, &files), None);
        assert_eq!(tokens(1_009, &files), Some(window + 1));
    }
}
