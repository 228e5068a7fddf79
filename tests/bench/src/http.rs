//! HTTP/1.1 on a connection that stays open. It does as little work as possible: the socket blocks, and each request is
//! one write.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Maximum wait for the next bytes of an answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of the buffer for incoming data.
const BUFFER: usize = 16 * 1024;

/// A client's connection.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    address: String,
    request: Vec<u8>,
    line: String,
}

/// The part of a body that is still to be read.
enum Framing {
    Length(usize),
    Chunked,
    Ended,
}

/// An answer whose body is still to be read. The caller must read the body before it sends the next request.
pub(crate) struct Body<'c> {
    pub(crate) status: u16,
    connection: &'c mut Connection,
    framing: Framing,
}

impl Connection {
    /// Connects to `address`, a host with its port.
    pub(crate) fn open(address: &str) -> Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("failed to connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            reader: BufReader::with_capacity(BUFFER, stream),
            address: address.to_owned(),
            request: Vec::new(),
            line: String::new(),
        })
    }

    /// Sends a request and reads the head of the answer. `line` is the method and the path. `headers` consists of
    /// complete header lines, each with its line break.
    pub(crate) fn send(&mut self, line: &str, headers: &str, body: &[u8]) -> Result<Body<'_>> {
        self.request.clear();
        write!(
            self.request,
            "{line} HTTP/1.1\r\nhost: {}\r\n{headers}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        )?;
        self.request.extend_from_slice(body);
        self.reader.get_mut().write_all(&self.request)?;
        self.head()
    }

    fn head(&mut self) -> Result<Body<'_>> {
        self.read_line()?;
        let status = self.line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let Some(status) = status else { bail!("not an answer: {:?}", self.line) };
        let mut framing = Framing::Ended;
        loop {
            self.read_line()?;
            let Some((name, value)) = self.line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                framing = Framing::Length(value.trim().parse().context("the content-length")?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                framing = Framing::Chunked;
            }
        }
        Ok(Body { status, connection: self, framing })
    }

    /// Reads a line. Leaves out the line break at its end.
    fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        if self.reader.read_line(&mut self.line)? == 0 {
            bail!("{} closed the connection", self.address);
        }
        self.line.truncate(self.line.trim_end().len());
        Ok(())
    }
}

impl Body<'_> {
    /// Appends the next piece of the body to `into`. Returns `false` if the body has no further piece.
    pub(crate) fn piece(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        match self.framing {
            Framing::Ended => Ok(false),
            Framing::Length(left) => {
                let buffered = self.connection.reader.fill_buf()?;
                let taken = buffered.len().min(left);
                if taken == 0 && left > 0 {
                    bail!("the body ended {left} bytes too early");
                }
                into.extend_from_slice(&buffered[..taken]);
                self.connection.reader.consume(taken);
                self.framing = if taken == left { Framing::Ended } else { Framing::Length(left - taken) };
                Ok(true)
            }
            Framing::Chunked => {
                self.connection.read_line()?;
                let length = usize::from_str_radix(&self.connection.line, 16).context("a chunk's length")?;
                let begin = into.len();
                into.resize(begin + length, 0);
                self.connection.reader.read_exact(&mut into[begin..])?;
                self.connection.read_line()?;
                if length == 0 {
                    self.framing = Framing::Ended;
                }
                Ok(length > 0)
            }
        }
    }

    /// Reads the rest of the body.
    pub(crate) fn read(mut self) -> Result<(u16, Vec<u8>)> {
        let mut body = Vec::new();
        while self.piece(&mut body)? {}
        Ok((self.status, body))
    }
}

/// Reads a request as a server, and puts its body into `body`. Returns `false` if the client has closed the connection.
pub(crate) fn read_request(reader: &mut impl BufRead, body: &mut Vec<u8>) -> Result<bool> {
    let (mut length, mut line) = (0, String::new());
    if reader.read_line(&mut line)? == 0 {
        return Ok(false);
    }
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().context("the content-length")?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("the scripted server reads only bodies with a length");
        }
    }
    body.resize(length, 0);
    reader.read_exact(body)?;
    Ok(true)
}
