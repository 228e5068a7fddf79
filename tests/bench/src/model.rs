//! The scripted model server. It runs on threads in the process of the bench. Polity and the floor (the least code that
//! does the same work) have processes of their own, so their processor time does not include that of the model server.
//! The server answers at once. The scripts parse only those parts of a request that they need.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;

use crate::http::read_request;
use crate::reply::{Rendered, Reply};

/// Pause between two pieces of a long stream. The kernel extends the pause to about 60 microseconds. So most pieces
/// arrive one by one, as the pieces of a real model do. Without the pause, a slow reader would get several pieces at
/// once, and would seem to need less time for each piece.
const BETWEEN_PIECES: Duration = Duration::from_micros(1);

/// Decides the reply to the body of a request.
pub(crate) type Script = Box<dyn Fn(&[u8]) -> Reply + Send + Sync>;

struct Shared {
    script: Script,
    requests: AtomicU64,
    first: Mutex<Option<Vec<u8>>>,
    ended: AtomicBool,
}

/// A running server. Dropping this value stops it.
pub(crate) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Model {
    /// Starts a server on a free port.
    pub(crate) fn start(script: Script) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            requests: AtomicU64::new(0),
            first: Mutex::new(None),
            ended: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&serving);
                // Ignore the result. It can be an error if the client disconnects, and then the thread just ends.
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns how many requests the server has received.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the body of the first request.
    pub(crate) fn first_request(&self) -> Option<Vec<u8>> {
        self.shared.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Wake the thread that accepts connections, so that the thread ends. If this fails, the thread runs until the
        // process ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    let mut body = Vec::new();
    while read_request(&mut reader, &mut body)? {
        if shared.requests.fetch_add(1, Ordering::Relaxed) == 0 {
            *shared.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(body.clone());
        }
        answer(&mut writer, (shared.script)(&body).render(&body))?;
    }
    Ok(())
}

fn answer(writer: &mut TcpStream, rendered: Rendered) -> Result<()> {
    const STREAM: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    match rendered {
        Rendered::Whole(body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            writer.write_all((head + &body).as_bytes())?;
        }
        Rendered::Stream(stream) => {
            let answer = format!("{STREAM}{}0\r\n\r\n", chunk(&stream));
            writer.write_all(answer.as_bytes())?;
        }
        Rendered::Long { first, piece, count, last } => {
            writer.write_all(format!("{STREAM}{}", chunk(&first)).as_bytes())?;
            let piece = chunk(&piece);
            for _ in 0..count {
                writer.write_all(piece.as_bytes())?;
                std::thread::sleep(BETWEEN_PIECES);
            }
            writer.write_all(format!("{}0\r\n\r\n", chunk(&last)).as_bytes())?;
        }
    }
    Ok(())
}

/// Returns a text as one chunk of a body.
fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
