//! The reader: an agent that the lead hires or asks. It reports facts about each attachment.

use crate::facts;
use crate::inbound::{Inbound, Sender};
use crate::moves::{attachment_line, notices};
use crate::reading::{PastEvent, Scene};

/// Returns the reader's closing text. The text contains facts about the messages that came after its last closing text.
/// If no messages came after it, the text contains facts about all messages that the reader ever got.
pub(crate) fn closing(scene: &Scene<'_>) -> String {
    let words = scene.words();
    let new: Vec<&Inbound<'_>> = scene
        .unsaid()
        .iter()
        .filter_map(|step| match step {
            PastEvent::Heard(inbound) if inbound.sender != Sender::System => Some(inbound),
            PastEvent::Heard(_) | PastEvent::Called(_) | PastEvent::Said => None,
        })
        .collect();
    let all = || {
        scene.heard().map(|(_, inbound)| inbound).filter(|inbound| inbound.sender != Sender::System).collect()
    };
    let heard: Vec<&Inbound<'_>> = if new.is_empty() { all() } else { new };

    let mut said = notices(scene);
    let lines: Vec<String> = heard
        .iter()
        .flat_map(|inbound| &inbound.attachments)
        .map(|attached| attachment_line(attached, words))
        .collect();
    if !lines.is_empty() {
        said.push(words.say(&words.reader.received, &[("count", &lines.len().to_string())]));
        said.extend(lines);
    } else if !heard.is_empty() {
        let text = heard.iter().flat_map(|inbound| inbound.words()).copied().collect::<Vec<_>>().join("\n");
        let told = facts::count(&text).tell(words);
        said.push(words.say(&words.reader.received_nothing, &[("facts", &told)]));
    }
    if said.is_empty() { words.say(&words.common.nothing_new, &[]) } else { said.join("\n") }
}
