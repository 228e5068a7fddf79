//! Limits on what a server may send, and on how long polity waits for a server.

use std::time::Duration;

/// Limits on what a server may send, and on how long polity waits for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Time for the start of a server, until its tools are known. `npx` and `uvx` may download the server meanwhile.
    pub start: Duration,
    /// Time for which a model call waits for the tools of a server that was just configured.
    pub first_list: Duration,
    /// Time for a server to end by itself when it is stopped. Then it is killed.
    pub stop: Duration,
    /// Time for a server to take a message that cancels a call. A server that takes longer is started again.
    pub unread: Duration,
    /// Time for which a call waits for a server that is starting again.
    pub reconnect: Duration,
    /// Pause before a server that has failed once is started again. The pause doubles with each further failure.
    pub first_pause: Duration,
    /// The longest pause before a server is started again.
    pub longest_pause: Duration,
    /// A connection that has lasted this long is a success: the next pause is the first one again.
    pub settled: Duration,
    /// Pause between two reads of a list of tools that changes.
    pub list_pause: Duration,
    /// Bytes of the longest message of a server.
    pub message_bytes: usize,
    /// Messages that a server may send in one go. After that it may send one per [`Self::message_every`].
    pub messages: u32,
    /// The shortest average time between two messages of a server.
    pub message_every: Duration,
    /// Number of tools of a server. Further tools are left out.
    pub tools: usize,
    /// Characters of the description of a tool. The rest is cut off.
    pub description_chars: usize,
    /// Bytes of the schema of a tool's arguments. A tool with a larger schema is left out.
    pub schema_bytes: usize,
    /// Characters of the text of a result. The rest is cut off.
    pub text_chars: usize,
    /// Files of a result. Further files are left out.
    pub files: usize,
    /// Characters of a reason for a failure, of a report on progress, and of a line of standard error.
    pub line_chars: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            first_list: Duration::from_secs(10),
            stop: Duration::from_secs(2),
            unread: Duration::from_secs(60),
            reconnect: Duration::from_secs(5),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
            settled: Duration::from_secs(60),
            list_pause: Duration::from_secs(1),
            message_bytes: 16 << 20,
            messages: 2_000,
            message_every: Duration::from_millis(2),
            tools: 1_000,
            description_chars: 4_000,
            schema_bytes: 64 << 10,
            text_chars: 1_000_000,
            files: 32,
            line_chars: 1_000,
        }
    }
}
