//! Controls the library of `tests/layer`, which stands between a daemon and the machine: gives it orders and reads
//! its journal.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{Polity, layer};

/// How many numbers the control file contains.
const WORDS: u64 = 8;
/// Index of the number that counts the failed calls. The library itself writes this number.
const REFUSED: u64 = 6;
/// Maximum wait until as many calls have failed as a test expects.
const PATIENCE: Duration = Duration::from_secs(60);

/// An order to the library. The control file contains one number for each order, at the index `order as u64`.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Make every write to a file fail with this error number. The number 0 lets writes succeed again. The same holds
    /// for `Change`, `Sync`, `Descriptor` and `Lock`.
    Write = 0,
    /// Make certain calls fail: those that create, rename or remove a file or directory, and those that open a file for
    /// writing.
    Change = 1,
    /// Make every sync fail.
    Sync = 2,
    /// Make calls fail that need a new file descriptor.
    Descriptor = 3,
    /// Shift the wall clock by this many nanoseconds.
    Wall = 4,
    /// Shift the monotonic clock by this many nanoseconds.
    Count = 5,
    /// Make every lock of a directory fail.
    Lock = 7,
}

/// The library of `tests/layer`, loaded into all later commands of a [`Polity`] home.
pub struct Layer {
    control: File,
    journal: PathBuf,
}

/// One record of the journal: a change of a file, or data that a process sent out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The kind of record: `write`, `sync`, `said` and so on, as `tests/layer/src/journal.rs` names it.
    pub kind: String,
    /// The byte offset of a write, or the new length of a truncated file; 0 for other kinds.
    pub number: u64,
    /// The file or directory. For `said`: `1` (standard output) or a socket.
    pub path: PathBuf,
    /// The bytes that were written or sent. For `rename`: the new path.
    pub data: Vec<u8>,
}

impl Layer {
    /// Loads the library of `tests/layer` into all later commands of a home. The library affects only files below
    /// `data/`.
    pub fn below(polity: &mut Polity) -> Self {
        let root = polity.data_dir().canonicalize().expect("a directory");
        let path = polity.home().join("control");
        std::fs::write(&path, [0; 8 * WORDS as usize]).expect("a file");
        let control = File::options().read(true).write(true).open(&path).expect("the file");
        let text = |path: &Path| path.to_str().expect("a path of text").to_owned();
        polity.set_env("LD_PRELOAD", &text(layer()));
        polity.set_env("POLITY_LAYER_CONTROL", &text(&path));
        polity.set_env("POLITY_LAYER_ROOT", &text(&root));
        Self { control, journal: polity.home().join("journal") }
    }

    /// Begins to record. From now on, all commands of the home write their file changes and their output into the
    /// journal.
    pub fn record(&self, polity: &mut Polity) {
        polity.set_env("POLITY_LAYER_JOURNAL", self.journal.to_str().expect("a path of text"));
    }

    /// Gives an order, which takes effect at the next call.
    pub fn order(&self, order: Order, number: i64) {
        self.control.write_all_at(&number.to_ne_bytes(), 8 * order as u64).expect("a written file");
    }

    /// Returns how many calls the library has made fail so far.
    pub fn refused(&self) -> i64 {
        let mut number = [0; 8];
        self.control.read_exact_at(&mut number, 8 * REFUSED).expect("a file that is long enough");
        i64::from_ne_bytes(number)
    }

    /// Waits until the library has made `count` calls fail.
    ///
    /// # Panics
    /// If the library has not made `count` calls fail within a minute.
    #[track_caller]
    pub fn wait_for_refusals(&self, count: i64) {
        let deadline = Instant::now() + PATIENCE;
        while self.refused() < count {
            assert!(
                Instant::now() < deadline,
                "the layer has refused only {} of {count} calls",
                self.refused()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns all records of the journal.
    ///
    /// # Panics
    /// If there is no journal, or if its last record is incomplete.
    #[track_caller]
    pub fn journal(&self) -> Vec<Record> {
        let bytes = std::fs::read(&self.journal).expect("a journal");
        let mut rest = bytes.as_slice();
        let mut records = Vec::new();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').expect("a whole line");
            let (line, after) = rest.split_at(end);
            let line = str::from_utf8(line).expect("text");
            let [kind, number, path, data] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("this line of the journal is not a record: {line}");
            };
            let length = |text: &str| text.parse::<usize>().expect("a length");
            let (of_path, after) = after[1..].split_at(length(path));
            let (data, after) = after.split_at(length(data));
            records.push(Record {
                kind: kind.to_owned(),
                number: number.parse().expect("a number"),
                path: PathBuf::from(str::from_utf8(of_path).expect("text")),
                data: data.to_owned(),
            });
            rest = after;
        }
        records
    }
}
