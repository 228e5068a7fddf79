//! The code of the child process: removes the rights that the child does not need, then reads the document.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use rlimit::Resource;
use strum::VariantArray;

use super::{Completeness, DocumentFormat, Stop, extract_text};

/// The parent's instructions to the child, passed as arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) format: DocumentFormat,
    pub(super) output_chars: usize,
    /// Limit of the child's address space, in bytes.
    pub(super) memory: u64,
    /// Limit of the child's processor time.
    pub(super) seconds: u64,
}

impl Order {
    pub(super) fn to_arguments(self) -> [String; 4] {
        [
            self.format.mime_types().first().copied().unwrap_or_default().to_owned(),
            self.output_chars.to_string(),
            self.memory.to_string(),
            self.seconds.to_string(),
        ]
    }

    fn from_arguments(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter().map(|argument| argument.into_string().ok());
        let mut next = || arguments.next().flatten();
        Some(Self {
            format: DocumentFormat::of(&next()?)?,
            output_chars: next()?.parse().ok()?,
            memory: next()?.parse().ok()?,
            seconds: next()?.parse().ok()?,
        })
    }
}

/// The ways in which a child ends by itself, each with its own exit code. None of these codes is 101, the exit code of
/// a panic. So the parent can distinguish these endings from a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub(super) enum Ending {
    Whole,
    Cut,
    PartsUnreadable,
    Encrypted,
    InflatesTooMuch,
    /// The child has written the reason to standard error.
    Unreadable,
    Misused,
    NotLimited,
    BrokenPipe,
}

impl Ending {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Cut => 3,
            Self::PartsUnreadable => 4,
            Self::Encrypted => 5,
            Self::InflatesTooMuch => 6,
            Self::Unreadable => 7,
            Self::Misused => 8,
            Self::NotLimited => 9,
            Self::BrokenPipe => 10,
        }
    }

    pub(super) fn from_code(code: i32) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|ending| i32::from(ending.code()) == code)
    }
}

/// Reads a document from standard input and writes its text to standard output. The process must do nothing else.
///
/// `arguments` are the arguments after [`EXTRACT_ARGUMENT`](super::EXTRACT_ARGUMENT). Call this function first in
/// `main`, before any thread starts: it permanently limits the memory and the processor time of the process, and
/// forbids the process to open files.
pub fn child_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(order) = Order::from_arguments(arguments) else {
        return ExitCode::from(Ending::Misused.code());
    };
    if limit_process(order).is_err() {
        return ExitCode::from(Ending::NotLimited.code());
    }
    ExitCode::from(serve(order).unwrap_or(Ending::BrokenPipe).code())
}

fn limit_process(order: Order) -> io::Result<()> {
    // The child needs only the three standard streams, which are already open. This limit forbids it to open more
    // files.
    const OPEN_FILES: u64 = 3;
    limit(Resource::CORE, 0)?;
    limit(Resource::FSIZE, 0)?;
    limit(Resource::NOFILE, OPEN_FILES)?;
    limit(Resource::CPU, order.seconds)?;
    limit(Resource::AS, order.memory)
}

/// Sets a limit that the process cannot raise again. If a lower limit already applies, that limit stays.
fn limit(resource: Resource, wanted: u64) -> io::Result<()> {
    let (_, allowed) = resource.get()?;
    let value = wanted.min(allowed);
    resource.set(value, value)
}

fn serve(order: Order) -> io::Result<Ending> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let extracted = match extract_text(&bytes, order.format, order.output_chars) {
        Ok(extracted) => extracted,
        Err(Stop::Unreadable(reason)) => {
            io::stderr().lock().write_all(reason.as_bytes())?;
            return Ok(Ending::Unreadable);
        }
        Err(Stop::Encrypted) => return Ok(Ending::Encrypted),
        Err(Stop::InflatesTooMuch) => return Ok(Ending::InflatesTooMuch),
        // Cannot happen: if the sink is full, `extract_text` returns the text so far as `Completeness::Cut`.
        Err(Stop::Full) => return Ok(Ending::Cut),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(extracted.text.as_bytes())?;
    stdout.flush()?;
    Ok(match extracted.completeness {
        Completeness::Whole => Ending::Whole,
        Completeness::Cut => Ending::Cut,
        Completeness::PartsUnreadable => Ending::PartsUnreadable,
    })
}
