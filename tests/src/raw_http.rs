//! A plain HTTP client for the tests of the server. It returns the received part of a body even if the connection
//! breaks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

/// The response that arrived on a connection.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

/// How the body ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    CutOff,
}

impl Answered {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Posts JSON to `path` below `base_url`. Fails if the connection ends before the head of the response is complete.
pub(crate) fn post(base_url: &str, path: &str, body: &str) -> io::Result<Answered> {
    let (address, prefix) = base_url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .expect("an http URL with a path");
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    let head = format!(
        "POST /{prefix}{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;

    let mut received = Vec::new();
    let read = stream.read_to_end(&mut received);
    let split = received.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(split) = split else {
        return Err(read.err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into()));
    };
    let head = String::from_utf8_lossy(&received[..split]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
    let rest = &received[split + 4..];
    let (body, end) = match head.contains("transfer-encoding: chunked") {
        true => dechunked(rest),
        false => (rest.to_vec(), End::Complete),
    };
    Ok(Answered { status, head, body, end })
}

fn dechunked(mut rest: &[u8]) -> (Vec<u8>, End) {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else {
            return (body, End::CutOff);
        };
        let size =
            std::str::from_utf8(&rest[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a chunk");
        if size == 0 {
            return (body, End::Complete);
        }
        let Some(chunk) = rest.get(line + 2..line + 2 + size) else {
            return (body, End::CutOff);
        };
        body.extend_from_slice(chunk);
        rest = rest.get(line + 4 + size..).unwrap_or_default();
    }
}
