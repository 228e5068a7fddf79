//! The code of the parent process: starts the child, sends the document to the child, reads the text, and ends the
//! child.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, sink};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::child::{Ending, Order};
use super::{Completeness, DocumentFormat, EXTRACT_ARGUMENT, ExtractError, Extracted};

/// The limits of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildBounds {
    /// Maximum wall-clock time from the start of the child to its end. The limit for processor time is this time,
    /// rounded down to seconds, plus one second.
    pub time: Duration,
    /// Longest text that the caller wants, in characters. Longer text is cut.
    pub output_chars: usize,
    /// Address space of the child in bytes. The document may have at most a quarter of this size.
    pub memory: u64,
}

impl Default for ChildBounds {
    fn default() -> Self {
        Self {
            // A PDF of a thousand pages takes only a few seconds, so this limit stops only documents that hang.
            time: Duration::from_secs(30),
            // About the length of a long book.
            output_chars: 2_000_000,
            // Four times the maximum size of an unpacked archive.
            memory: 1024 * 1024 * 1024,
        }
    }
}

/// Maximum number of children that run at the same time. It is small because each child may use a gigabyte of memory.
const AT_ONCE: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// Maximum number of bytes of a child's standard error that the parent keeps.
const MAX_REASON_BYTES: u64 = 300;

/// Extracts the text of a document in a separate process.
///
/// Starts `program` with [`EXTRACT_ARGUMENT`] and further arguments, and with an empty environment. The program must
/// pass the further arguments to [`child_main`](super::child_main). The child is killed when its time is over, and when
/// the returned future is dropped. Only a few children run at the same time, so the child may have to wait before it
/// starts. This wait does not count towards the time limit.
///
/// # Errors
///
/// Fails if the file's type is not supported, if the file is too large, damaged or protected by a password, or if the
/// child cannot be started, takes too long or crashes.
pub async fn run_child(
    program: &Path,
    bytes: Bytes,
    mime_type: &str,
    bounds: &ChildBounds,
) -> Result<Extracted, ExtractError> {
    let Some(format) = DocumentFormat::of(mime_type) else {
        return Err(ExtractError::Unsupported { mime_type: mime_type.to_owned() });
    };
    let max_bytes = bounds.memory / 4;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max_bytes) {
        return Err(ExtractError::TooLarge { bytes: bytes.len(), max_bytes });
    }
    let _place = PLACES.acquire().await.map_err(|_| ExtractError::Stopping)?;
    let order = Order {
        format,
        output_chars: bounds.output_chars,
        memory: bounds.memory,
        seconds: bounds.time.as_secs() + 1,
    };
    let mut child = Command::new(program)
        .arg(EXTRACT_ARGUMENT)
        .args(order.to_arguments())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(ExtractError::Start)?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(ExtractError::Garbled);
    };
    let conversation = converse(&mut child, (stdin, stdout, stderr), &bytes, bounds.output_chars);
    let Ok(answer) = timeout(bounds.time, conversation).await else {
        // `kill` makes sure that the child no longer runs when this function returns. If the child has just ended by
        // itself, `kill` does nothing.
        child.kill().await.map_err(ExtractError::Talk)?;
        return Err(ExtractError::TimedOut { time: bounds.time });
    };
    read_answer(answer?)
}

struct Answer {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    max_bytes: u64,
}

async fn converse(
    child: &mut Child,
    (mut stdin, stdout, mut stderr): (ChildStdin, ChildStdout, ChildStderr),
    bytes: &[u8],
    output_chars: usize,
) -> Result<Answer, ExtractError> {
    const MAX_UTF8_BYTES_PER_CHAR: u64 = 4;
    let max_bytes = u64::try_from(output_chars).unwrap_or(u64::MAX).saturating_mul(MAX_UTF8_BYTES_PER_CHAR);
    let feed = async {
        // The write fails if the child needs no more input and closes the pipe. This error is ignored, because the
        // child's exit code tells how the child ended.
        let _ = stdin.write_all(bytes).await;
        drop(stdin);
        Ok(())
    };
    let hear = async {
        let mut text = Vec::new();
        // Read up to one byte more than allowed, so that an answer that is too long is noticed. After this read, the
        // pipe closes and the child cannot write any more.
        stdout.take(max_bytes.saturating_add(1)).read_to_end(&mut text).await?;
        Ok(text)
    };
    let hear_reason = async {
        let mut reason = Vec::new();
        (&mut stderr).take(MAX_REASON_BYTES).read_to_end(&mut reason).await?;
        // Read and drop the rest of the child's standard error. Otherwise the pipe may fill up, and the child waits for
        // ever.
        copy(&mut stderr, &mut sink()).await?;
        Ok(reason)
    };
    let ((), stdout, stderr) = tokio::try_join!(feed, hear, hear_reason).map_err(ExtractError::Talk)?;
    let status = child.wait().await.map_err(ExtractError::Talk)?;
    Ok(Answer { status, stdout, stderr, max_bytes })
}

fn read_answer(answer: Answer) -> Result<Extracted, ExtractError> {
    let Answer { status, stdout, stderr, max_bytes } = answer;
    let stderr = String::from_utf8_lossy(&stderr);
    if u64::try_from(stdout.len()).is_ok_and(|length| length > max_bytes) {
        return Err(ExtractError::Garbled);
    }
    let completeness = match status.code().and_then(Ending::from_code) {
        Some(Ending::Whole) => Completeness::Whole,
        Some(Ending::Cut) => Completeness::Cut,
        Some(Ending::PartsUnreadable) => Completeness::PartsUnreadable,
        Some(Ending::Encrypted) => return Err(ExtractError::Encrypted),
        Some(Ending::InflatesTooMuch) => return Err(ExtractError::InflatesTooMuch),
        Some(Ending::Unreadable) => return Err(ExtractError::Unreadable { reason: stderr.into_owned() }),
        Some(Ending::Misused | Ending::NotLimited | Ending::BrokenPipe) | None => {
            tracing::debug!(%status, %stderr, "the process that read a document crashed");
            return Err(ExtractError::Crashed { status: status.to_string() });
        }
    };
    let text = String::from_utf8(stdout).map_err(|_| ExtractError::Garbled)?;
    Ok(Extracted { text, completeness })
}
