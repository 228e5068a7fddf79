//! The secrets that give access to the API: the token in the data directory, the cookie that a browser sends instead,
//! and tickets. A browser can exchange each ticket for a cookie once.

use blake3::Hash;
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The context for deriving the cookie from the token. A change of this text invalidates all cookies.
const SESSION_CONTEXT: &str = "polity 2026 session cookie of the live view";
/// How long a ticket is valid.
const TICKET_LIFE: Duration = Duration::from_secs(60);
/// Maximum number of unused tickets; a further ticket replaces the oldest.
const MOST_TICKETS: usize = 64;

/// The token of a data directory.
#[derive(Clone, Debug)]
pub struct Token(SecretString);

impl Token {
    /// Generates a token from 32 random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Ok(Self(SecretString::from(random()?)))
    }

    /// Parses the content of the token file. Returns `None` if the token has less than 32 characters, or any character
    /// other than letters, digits, `-` and `_`.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let sound = text.len() >= 32
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        sound.then(|| Self(SecretString::from(text)))
    }

    /// Returns the secret itself.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether a client has sent this token. The comparison takes the same time for every wrong token.
    pub(crate) fn is(&self, given: &str) -> bool {
        // `Hash` implements `==` in constant time.
        blake3::hash(self.expose().as_bytes()) == blake3::hash(given.as_bytes())
    }

    /// Returns the value of the cookie. It stays the same after a restart and does not reveal the token.
    pub(crate) fn session(&self) -> String {
        Hash::from_bytes(blake3::derive_key(SESSION_CONTEXT, self.expose().as_bytes())).to_hex().to_string()
    }

    /// Whether the value of a cookie belongs to this token.
    pub(crate) fn is_session(&self, given: &str) -> bool {
        blake3::hash(self.session().as_bytes()) == blake3::hash(given.as_bytes())
    }
}

/// Returns 32 random bytes in hexadecimal.
fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(Hash::from_bytes(bytes).to_hex().to_string())
}

/// The unused tickets: their hashes, and when they were issued.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<Hash, Instant>>);

impl Tickets {
    /// Issues a ticket that can be used once, within a minute.
    pub(crate) fn issue(&self, now: Instant) -> Result<String, getrandom::Error> {
        let ticket = random()?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, issued| now.saturating_duration_since(*issued) < TICKET_LIFE);
        if open.len() >= MOST_TICKETS
            && let Some(oldest) = open.iter().min_by_key(|(_, issued)| **issued).map(|(ticket, _)| *ticket)
        {
            open.remove(&oldest);
        }
        open.insert(blake3::hash(ticket.as_bytes()), now);
        Ok(ticket)
    }

    /// Removes a ticket, so that nobody can use it again, and returns whether the ticket was valid.
    pub(crate) fn redeem(&self, ticket: &str, now: Instant) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let issued = open.remove(&blake3::hash(ticket.as_bytes()));
        issued.is_some_and(|issued| now.saturating_duration_since(issued) < TICKET_LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_only_itself() {
        let token = Token::generate().unwrap();
        assert_eq!(token.expose().len(), 64);
        assert!(token.is(token.expose()));
        assert!(!token.is(&token.expose()[..63]));
        assert!(!token.is(""));
        assert!(!token.is(&token.session()));
        assert!(!token.is(Token::generate().unwrap().expose()));
        assert!(!format!("{token:?}").contains(token.expose()));
    }

    #[test]
    fn tokens_are_read_as_they_are_written() {
        let check = |text: &str, expect: bool| assert_eq!(Token::read(text).is_some(), expect, "{text:?}");
        let token = Token::generate().unwrap();
        check(&format!("{}\n", token.expose()), true);
        check("", false);
        check("secret", false);
        check(&"x".repeat(32), true);
        check(&format!("{} {}", "x".repeat(32), "x"), false);
    }

    #[test]
    fn a_session_is_the_same_after_a_restart() {
        let token = Token::generate().unwrap();
        let again = Token::read(token.expose()).unwrap();
        assert!(again.is_session(&token.session()));
        assert!(!again.is_session(token.expose()));
        assert!(!Token::generate().unwrap().is_session(&token.session()));
    }

    #[test]
    fn a_ticket_is_good_once_and_for_a_minute() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let ticket = tickets.issue(now).unwrap();
        assert!(!tickets.redeem("another", now));
        assert!(tickets.redeem(&ticket, now + TICKET_LIFE / 2));
        assert!(!tickets.redeem(&ticket, now + TICKET_LIFE / 2));
        let late = tickets.issue(now).unwrap();
        assert!(!tickets.redeem(&late, now + TICKET_LIFE));
    }

    #[test]
    fn tickets_are_bounded() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let first = tickets.issue(now).unwrap();
        for after in 1..=MOST_TICKETS as u64 {
            tickets.issue(now + Duration::from_millis(after)).unwrap();
        }
        assert_eq!(tickets.0.lock().unwrap().len(), MOST_TICKETS);
        assert!(!tickets.redeem(&first, now));
    }
}
