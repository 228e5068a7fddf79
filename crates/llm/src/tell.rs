//! Passes the pieces of an answer to a listener, after removing credentials from them.

use crate::listen::{Listener, Piece};
use crate::scrub::replace;
use secrecy::{ExposeSecret, SecretString};

/// The fields in which servers send the reasoning of a model.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Whether a field of a message contains reasoning.
pub(crate) fn is_reasoning(field: &str) -> bool {
    REASONING.contains(&field)
}

/// Passes the pieces of one answer on to a listener, without credentials.
pub(crate) struct Teller<'a> {
    listener: &'a dyn Listener,
    credentials: &'a [SecretString],
    text: HeldBack,
    reasoning: HeldBack,
}

/// The end of the text that has arrived. It is not passed on yet, because it may be the beginning of a credential.
#[derive(Debug, Default)]
struct HeldBack(String);

impl<'a> Teller<'a> {
    pub(crate) fn new(listener: &'a dyn Listener, credentials: &'a [SecretString]) -> Self {
        Self { listener, credentials, text: HeldBack::default(), reasoning: HeldBack::default() }
    }

    pub(crate) fn bytes(&self) {
        self.listener.hear(Piece::Bytes);
    }

    pub(crate) fn text(&mut self, piece: &str) {
        let Self { listener, credentials, text, .. } = self;
        text.pass(piece, credentials, |piece| listener.hear(Piece::Text(piece)));
    }

    pub(crate) fn reasoning(&mut self, piece: &str) {
        let Self { listener, credentials, reasoning, .. } = self;
        reasoning.pass(piece, credentials, |piece| listener.hear(Piece::Reasoning(piece)));
    }

    pub(crate) fn call(&self, name: &str) {
        let mut name = name.to_owned();
        for credential in self.credentials {
            replace(&mut name, credential.expose_secret());
        }
        self.listener.hear(Piece::Call(&name));
    }

    pub(crate) fn arguments(&self, bytes: usize) {
        self.listener.hear(Piece::Arguments(bytes));
    }

    /// Passes on the texts that were held back, because the answer is complete.
    pub(crate) fn finish(self) {
        if !self.text.0.is_empty() {
            self.listener.hear(Piece::Text(&self.text.0));
        }
        if !self.reasoning.0.is_empty() {
            self.listener.hear(Piece::Reasoning(&self.reasoning.0));
        }
    }
}

impl HeldBack {
    /// Passes a piece of text on to the listener, and replaces credentials in it. If the end of the piece may be the
    /// beginning of a credential, holds this end back.
    fn pass(&mut self, piece: &str, credentials: &[SecretString], tell: impl Fn(&str)) {
        if credentials.is_empty() {
            if !piece.is_empty() {
                tell(piece);
            }
            return;
        }
        self.0.push_str(piece);
        for credential in credentials {
            replace(&mut self.0, credential.expose_secret());
        }
        let begun = credentials.iter().map(|credential| begun(&self.0, credential.expose_secret())).max();
        let held = self.0.split_off(self.0.len() - begun.unwrap_or_default());
        let told = std::mem::replace(&mut self.0, held);
        if !told.is_empty() {
            tell(&told);
        }
    }
}

/// Compares the end of `text` with the beginning of `credential`. Returns the length of the longest end that is such a
/// beginning.
fn begun(text: &str, credential: &str) -> usize {
    let ends = credential.char_indices().map(|(length, _)| length).rev();
    ends.filter(|length| *length > 0)
        .find(|length| text.ends_with(&credential[..*length]))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Mutex;

    /// Keeps the texts that it hears, joined.
    #[derive(Default)]
    struct Ear(Mutex<String>);

    impl Listener for Ear {
        fn hear(&self, piece: Piece<'_>) {
            if let Piece::Text(piece) = piece {
                self.0.lock().unwrap().push_str(piece);
            }
        }
    }

    fn heard(pieces: &[&str], credentials: &[SecretString]) -> String {
        let ear = Ear::default();
        let mut teller = Teller::new(&ear, credentials);
        pieces.iter().for_each(|piece| teller.text(piece));
        teller.finish();
        ear.0.into_inner().unwrap()
    }

    #[test]
    fn a_credential_in_two_pieces_is_not_heard() {
        let credentials = [SecretString::from("sk-12345678")];
        let check = |pieces: &[&str], expect: &str| assert_eq!(heard(pieces, &credentials), expect);
        check(&["it is sk-123", "45678!"], "it is [key]!");
        check(&["it is sk-123", "abc"], "it is sk-123abc");
        check(&["sk-sk-1", "2345678"], "sk-[key]");
        check(&["ends with s"], "ends with s");
        check(&["钥匙", "sk-"], "钥匙sk-");
    }

    proptest! {
        /// However an answer is cut into pieces, the listener hears the same text, and never a credential.
        #[test]
        fn pieces_are_heard_as_the_whole(
            parts in prop::collection::vec(prop::sample::select(vec!["s", "k-", "sk-1234", "5678", "键", " "]), 0..30),
        ) {
            let credentials = [SecretString::from("sk-12345678"), SecretString::from("k-1234键键")];
            let pieces = heard(&parts, &credentials);
            prop_assert_eq!(&pieces, &heard(&[&parts.concat()], &credentials));
            for credential in &credentials {
                prop_assert!(!pieces.contains(credential.expose_secret()));
            }
            prop_assert_eq!(heard(&parts, &[]), parts.concat());
        }
    }
}
