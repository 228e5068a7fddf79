//! The layer between a daemon and the machine (`tests/layer`): what it is ordered to do, and what it has recorded.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{Polity, layer};

/// How many numbers the layer takes.
const WORDS: u64 = 7;
/// Where the layer counts the calls that it has refused.
const REFUSED: u64 = 6;
/// How long a call that must come may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the layer can be ordered to do.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Fail every write to a file with that error; 0 ends it, here and in the next three.
    Write = 0,
    /// Fail whatever makes, renames or removes something, or opens it for writing.
    Change = 1,
    /// Fail every sync.
    Sync = 2,
    /// Fail every call that needs a new file descriptor.
    Descriptor = 3,
    /// Set the clock on the wall wrong by so many nanoseconds.
    Wall = 4,
    /// Set the clock that only counts wrong by so many nanoseconds.
    Count = 5,
}

/// A layer below the commands of a home.
pub struct Layer {
    control: File,
    journal: PathBuf,
}

/// A line of the layer's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened: `write`, `sync`, `said` and so on, as `tests/layer/src/journal.rs` names it.
    pub kind: String,
    /// Where in the file, or how long it is.
    pub number: u64,
    /// The file or directory; `1` or a socket where something was said.
    pub path: PathBuf,
    /// What was written or said, or the new name.
    pub data: Vec<u8>,
}

impl Layer {
    /// Puts the layer below all later commands of a home; only files below `data/` count.
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

    /// Has all later commands of the home record what they do.
    pub fn record(&self, polity: &mut Polity) {
        polity.set_env("POLITY_LAYER_JOURNAL", self.journal.to_str().expect("a path of text"));
    }

    /// Gives an order; it counts for the next call.
    pub fn order(&self, order: Order, number: i64) {
        self.control.write_all_at(&number.to_ne_bytes(), 8 * order as u64).expect("a written file");
    }

    /// Returns how many calls were refused so far.
    pub fn refused(&self) -> i64 {
        let mut number = [0; 8];
        self.control.read_exact_at(&mut number, 8 * REFUSED).expect("a file that is long enough");
        i64::from_ne_bytes(number)
    }

    /// Waits until so many calls were refused.
    ///
    /// # Panics
    /// When that has not come about after a minute.
    #[track_caller]
    pub fn wait_for_refusals(&self, count: i64) {
        let deadline = Instant::now() + PATIENCE;
        while self.refused() < count {
            assert!(Instant::now() < deadline, "only {} of {count} calls were refused", self.refused());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns what was recorded.
    ///
    /// # Panics
    /// If nothing was, or the end is missing.
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
                panic!("not a record: {line}");
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
