//! A name server that speaks DNS over UDP. Its answers can change from lookup to lookup, and must not be cached.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

/// The address that the resolver asks in a network of `in_own_network_with_names`.
const ADDRESS: &str = "127.0.0.1:53";

/// Length of the header of a message, in bytes. The question follows.
const HEADER: usize = 12;

/// The type of IPv4 addresses.
const A: u16 = 1;
/// The type of IPv6 addresses.
const AAAA: u16 = 28;
/// The class of the internet.
const INTERNET: u16 = 1;

/// The flags of an answer. The server has authority for the name; recursion was desired, and is available.
const ANSWER: u16 = 0x8580;
/// The flags of an answer about a name that does not exist.
const NO_SUCH_NAME: u16 = ANSWER | 3;

/// A reference to the name in the question. The number 12 is the place where this name begins: directly after the
/// header.
const SAME_NAME: u16 = 0xc000 | 12;

/// The addresses of a name. The first lookup gets the first list, the second lookup the second list, and so on. When
/// all lists are used up, each further lookup gets the last list.
pub(super) type Answers = &'static [&'static [&'static str]];

/// A running name server. It ends with the process of the test.
pub(super) struct NameServer {
    asked: Arc<Mutex<Vec<Question>>>,
}

#[derive(PartialEq, Eq)]
struct Question {
    /// The name in lower case, without a dot at its end.
    name: String,
    /// [`A`], [`AAAA`] or another type.
    kind: u16,
}

impl NameServer {
    /// Starts a name server that knows these names.
    pub(super) fn start(names: impl IntoIterator<Item = (&'static str, Answers)>) -> Self {
        let names: HashMap<&'static str, Answers> = names.into_iter().collect();
        let socket = UdpSocket::bind(ADDRESS).expect("the port of name servers");
        let asked: Arc<Mutex<Vec<Question>>> = Arc::default();
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, resolver)) = socket.recv_from(&mut buffer) {
                let mut asked = kept.lock().expect("no panic");
                if let Some(answer) = answer_to(&buffer[..length], &names, &mut asked) {
                    socket.send_to(&answer, resolver).expect("a resolver");
                }
            }
        });
        Self { asked }
    }

    /// Returns how often a name was looked up. A lookup asks two questions: for the IPv4 addresses and for the IPv6
    /// addresses of the name.
    #[track_caller]
    pub(super) fn lookups(&self, name: &str) -> usize {
        let asked = self.asked.lock().expect("no panic");
        let count = |kind| asked.iter().filter(|asked| asked.name == name && asked.kind == kind).count();
        let (v4, v6) = (count(A), count(AAAA));
        assert_eq!(v4, v6, "a lookup of {name} asked only one of its questions");
        v4
    }
}

/// Answers one message, and adds its question to `asked`. Returns `None` if the message cannot be read.
fn answer_to(
    message: &[u8],
    names: &HashMap<&'static str, Answers>,
    asked: &mut Vec<Question>,
) -> Option<Vec<u8>> {
    let (question, end) = question_in(message)?;
    let lookup = asked.iter().filter(|earlier| **earlier == question).count();
    let lists = names.get(question.name.as_str()).copied();
    let list = lists.and_then(|lists| lists.get(lookup).or_else(|| lists.last())).copied();
    let addresses: Vec<IpAddr> = list
        .unwrap_or_default()
        .iter()
        .map(|address| address.parse().expect("an address"))
        .filter(|address| question.kind == kind_of(*address))
        .collect();
    let kind = question.kind;
    asked.push(question);

    let flags = if lists.is_some() { ANSWER } else { NO_SUCH_NAME };
    let count = u16::try_from(addresses.len()).expect("few addresses");
    let mut answer = message.get(..2)?.to_vec();
    for field in [flags, 1, count, 0, 0] {
        answer.extend(field.to_be_bytes());
    }
    answer.extend(message.get(HEADER..end)?);
    for address in addresses {
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let length = u16::try_from(bytes.len()).expect("a short address");
        // The two zeros together are the time to live. It is 0, so the answer must not be cached.
        for field in [SAME_NAME, kind, INTERNET, 0, 0, length] {
            answer.extend(field.to_be_bytes());
        }
        answer.extend(bytes);
    }
    Some(answer)
}

/// Reads the question of a message. Also returns the place of the first byte after the question.
fn question_in(message: &[u8]) -> Option<(Question, usize)> {
    let mut labels = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(message.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
    // Two further bytes follow the type: the class, which is always that of the internet.
    Some((Question { name: labels.join("."), kind }, at + 4))
}

fn kind_of(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(_) => A,
        IpAddr::V6(_) => AAAA,
    }
}
