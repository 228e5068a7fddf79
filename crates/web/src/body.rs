//! Reads the body of a response and decompresses it. Both the compressed and the decompressed size are bounded.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::CONTENT_ENCODING;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio_util::io::StreamReader;

use crate::error::Error;
use crate::hop::{Answer, causes};
use crate::shown::{one_line, shown_url};

/// If no byte of a body arrives for this long, the request fails.
const IDLE: Duration = Duration::from_secs(15);

/// Maximum number of encodings of one body. A server may compress a body several times, for example with gzip and
/// then with br.
const MOST_ENCODINGS: usize = 3;

/// The binary logarithm of the maximum zstd window in bytes. 2^23 bytes are 8 MiB, the limit in RFC 9659.
const ZSTD_WINDOW: u32 = 23;

type Source = Pin<Box<dyn AsyncBufRead + Send>>;

/// The error for a body that has more bytes than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the body is too long")]
struct TooLong;

/// Reads the body of an answer. Accepts at most `limit` bytes from the server, and at most `limit` bytes after
/// decompression.
pub(crate) async fn read(answer: Answer, limit: u64) -> Result<Bytes, Error> {
    let Answer { response, host } = answer;
    let too_large = || Error::TooLarge { host: host.clone(), limit };
    let encodings = encodings(&response, &host)?;
    let has_no_body = response.content_length() == Some(0);
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut source: Source = wire(response, limit);
    if !has_no_body && !encodings.is_empty() && !first_bytes(&mut source, &host, limit).await?.is_empty() {
        for encoding in encodings {
            source = decoded(source, encoding, &host, limit).await?;
        }
    }
    let mut source = source.take(limit.saturating_add(1));
    let mut body = BytesMut::new();
    loop {
        let read =
            tokio::time::timeout(IDLE, source.read_buf(&mut body)).await.map_err(|_| stalled(&host))?;
        match read {
            Ok(0) => return Ok(body.freeze()),
            Ok(_) if body.len() as u64 > limit => return Err(too_large()),
            Ok(_) => {}
            Err(error) => return Err(of_reading(&error, &host, limit)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Returns the encodings of a body, the outermost first.
fn encodings(response: &reqwest::Response, host: &str) -> Result<Vec<Encoding>, Error> {
    let mut encodings = Vec::new();
    for value in response.headers().get_all(CONTENT_ENCODING) {
        let value = String::from_utf8_lossy(value.as_bytes());
        for name in value.split(',').map(|name| name.trim().to_ascii_lowercase()) {
            let encoding = match name.as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Encoding::Gzip,
                "deflate" => Encoding::Deflate,
                "br" => Encoding::Brotli,
                "zstd" => Encoding::Zstd,
                _ => {
                    return Err(Error::Encoding { host: host.to_owned(), encoding: one_line(&name, 40) });
                }
            };
            encodings.push(encoding);
        }
    }
    if encodings.len() > MOST_ENCODINGS {
        return Err(Error::Encoding {
            host: host.to_owned(),
            encoding: "more than three at once".to_owned(),
        });
    }
    encodings.reverse();
    Ok(encodings)
}

/// Returns the bytes of the body as the server sends them, still compressed. Fails after `limit` bytes. A limit on the
/// decompressed bytes alone is not enough, because a server could send an endless body that decompresses to nothing.
fn wire(response: reqwest::Response, limit: u64) -> Source {
    let mut taken: u64 = 0;
    let pieces = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|error| io::Error::other(causes(&error)))?;
        taken = taken.saturating_add(piece.len() as u64);
        if taken > limit { Err(io::Error::other(TooLong)) } else { Ok(piece) }
    });
    Box::pin(StreamReader::new(pieces))
}

async fn decoded(mut source: Source, encoding: Encoding, host: &str, limit: u64) -> Result<Source, Error> {
    Ok(match encoding {
        Encoding::Gzip => {
            let mut decoder = GzipDecoder::new(source);
            decoder.multiple_members(true);
            Box::pin(BufReader::new(decoder))
        }
        Encoding::Deflate => {
            // In HTTP, `deflate` means the zlib format, but some servers send the data without the zlib header.
            if is_zlib(first_bytes(&mut source, host, limit).await?) {
                Box::pin(BufReader::new(ZlibDecoder::new(source)))
            } else {
                Box::pin(BufReader::new(DeflateDecoder::new(source)))
            }
        }
        Encoding::Brotli => Box::pin(BufReader::new(BrotliDecoder::new(source))),
        Encoding::Zstd => {
            let window = [DParameter::window_log_max(ZSTD_WINDOW)];
            Box::pin(BufReader::new(ZstdDecoder::with_params(source, &window)))
        }
    })
}

/// Waits for the first bytes of a body and returns them. The bytes stay in the source, so the decoder reads them too.
async fn first_bytes<'s>(source: &'s mut Source, host: &str, limit: u64) -> Result<&'s [u8], Error> {
    let first = tokio::time::timeout(IDLE, source.fill_buf()).await.map_err(|_| stalled(host))?;
    first.map_err(|error| of_reading(&error, host, limit))
}

fn is_zlib(first: &[u8]) -> bool {
    match first {
        [method, flags, ..] => method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31),
        [method] => *method == 0x78,
        [] => false,
    }
}

fn stalled(host: &str) -> Error {
    Error::Stalled { host: host.to_owned(), seconds: IDLE.as_secs() }
}

fn of_reading(error: &io::Error, host: &str, limit: u64) -> Error {
    let host = host.to_owned();
    if error.get_ref().is_some_and(|inner| inner.is::<TooLong>()) {
        return Error::TooLarge { host, limit };
    }
    Error::Broken { host, reason: shown_url(&error.to_string()) }
}
