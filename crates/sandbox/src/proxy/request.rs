//! Parses the head of a request to the proxy.

/// Headers that the proxy does not pass on to the server. Most of them are meant only for the proxy. The proxy writes a
/// new `host`.
const DROPPED: [&str; 9] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// What a client asks the proxy to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// `CONNECT`: the proxy connects to the server and passes bytes on without reading them.
    Tunnel { host: String, port: u16 },
    /// A plain HTTP request. `head` is the new head that the proxy sends to the server.
    Plain { host: String, port: u16, head: Vec<u8> },
}

impl Request {
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Tunnel { host, .. } | Self::Plain { host, .. } => host,
        }
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Tunnel { port, .. } | Self::Plain { port, .. } => *port,
        }
    }
}

/// Parses a head that ends with an empty line. The error tells what is wrong with the head.
pub(super) fn parse(head: &[u8]) -> Result<Request, &'static str> {
    let text = std::str::from_utf8(head).map_err(|_| "the request is not text")?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the first line is not a request");
    };
    if !["HTTP/1.0", "HTTP/1.1"].contains(&version) || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err("the first line is not a request of HTTP/1");
    }
    if text.bytes().any(|byte| byte == 0) || text.replace("\r\n", "").contains(['\r', '\n']) {
        return Err("the request contains a character that no header may have");
    }
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Ok(Request::Tunnel { host, port });
    }
    let rest = target
        .strip_prefix("http://")
        .ok_or("the proxy needs a whole address such as http://example.org/")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, port) = authority(&rest[..end], Some(80))?;
    let path = match &rest[end..] {
        "" => "/".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    let mut out = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", &rest[..end]);
    for line in lines {
        // Refuses a line that begins with white space, because servers disagree about it: some read it as the
        // continuation of the line before it, and others do not.
        let (name, _) =
            line.split_once(':').filter(|_| !line.starts_with([' ', '\t'])).ok_or("a header has no name")?;
        if !DROPPED.contains(&name.to_ascii_lowercase().as_str()) {
            out.push_str(line);
            out.push_str("\r\n");
        }
    }
    out.push_str("\r\n");
    Ok(Request::Plain { host, port, head: out.into_bytes() })
}

/// Reads `host:port`.
fn authority(text: &str, default: Option<u16>) -> Result<(String, u16), &'static str> {
    const WRONG: &str = "the address needs a name and a port";
    if text.contains('@') {
        return Err("an address must not contain a user");
    }
    let (host, port) = match text.rsplit_once(':') {
        // A `]` behind the last colon means that the colon is inside an IPv6 address, so there is no port.
        Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| WRONG)?),
        Some(_) | None => (text, default.ok_or(WRONG)?),
    };
    if host.is_empty() { Err(WRONG) } else { Ok((host.to_owned(), port)) }
}
