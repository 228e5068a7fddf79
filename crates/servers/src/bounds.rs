//! Limits on what an MCP server may send, and on how long polity waits for it.

use std::time::Duration;

/// Limits on what an MCP server may send, and on how long polity waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum time from the start of a server until its tools are known. `npx` and `uvx` may download the server
    /// in this time.
    pub start: Duration,
    /// Maximum time for which a model call waits for the tools of a server that was just configured.
    pub first_list: Duration,
    /// Time in which a stopped server must end by itself. After this time, polity kills the server.
    pub stop: Duration,
    /// Maximum time for which polity waits, after the end of a server, for the last line of its standard error.
    pub last_line: Duration,
    /// Maximum time for a server to read the message that cancels a call. If the server takes longer, it is started
    /// again.
    pub unread: Duration,
    /// Maximum time for which a tool call waits while the server is being started again.
    pub reconnect: Duration,
    /// Pause before a server is started again after its first failure. Each further failure doubles the pause.
    pub first_pause: Duration,
    /// Longest pause before a server is started again.
    pub longest_pause: Duration,
    /// If a connection lasted at least this long before it failed, earlier failures do not count: the next pause is
    /// [`Self::first_pause`] again.
    pub settled: Duration,
    /// Minimum pause between two reads of the list of tools, for a server that reports changes often.
    pub list_pause: Duration,
    /// Maximum size of a message from a server, in bytes.
    pub message_bytes: usize,
    /// Number of messages that a server may send at once. After that, it may send one message per
    /// [`Self::message_every`].
    pub messages: u32,
    /// The shortest average interval between two messages of a server.
    pub message_every: Duration,
    /// Maximum number of tools of a server. Further tools are left out.
    pub tools: usize,
    /// Maximum number of characters of a tool's description. The rest is cut off.
    pub description_chars: usize,
    /// Maximum size in bytes of the schema of a tool's arguments. A tool with a larger schema is left out.
    pub schema_bytes: usize,
    /// Maximum number of characters of the text of a result. The rest is cut off.
    pub text_chars: usize,
    /// Maximum number of files of a result. Further files are left out.
    pub files: usize,
    /// Maximum number of characters of the reason for a failure, of a progress report, and of a line of standard
    /// error.
    pub line_chars: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            first_list: Duration::from_secs(10),
            stop: Duration::from_secs(2),
            last_line: Duration::from_secs(1),
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
