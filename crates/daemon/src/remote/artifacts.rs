//! `polity artifacts`, `polity artifact get` and `polity artifact put`: list, fetch and store artifacts.

use super::messages::attached;
use super::words::{moment, variant};
use super::{At, Shape, Source, named_party, named_task};
use crate::failure::Failure;
use crate::output::table::{Cell, DIM, NAME, PLAIN, table};
use crate::output::terminal::is_obeyed;
use crate::output::width::width;
use crate::output::{Meter, complain, print};
use clap::{Args, Subcommand};
use polity_client::{Client, Progress};
use polity_society::content::Kind;
use polity_society::id::ArtifactId;
use polity_view::{ArtifactFilter, ArtifactView, MAX_PAGE};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum length of a file name that comes from an artifact, in bytes. File systems allow 255, and the name must leave
/// room for prefixes and suffixes such as `.part`.
const LONGEST_NAME: usize = 200;
/// Maximum length of a file extension in bytes, including its dot. A longer extension is lost when the name is cut.
const LONGEST_EXTENSION: usize = 20;

/// `polity artifacts`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Only artifacts of this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only artifacts that this party has stored: the id of an agent, or `user`.
    #[arg(long, value_name = "AGENT")]
    owner: Option<String>,
    /// Only artifacts of this kind: text, image, audio, video, document or other.
    #[arg(long, value_parser = variant::<Kind>)]
    kind: Option<Kind>,
    /// Maximum number of artifacts; the newest are listed.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: u32,
}

/// `polity artifact`
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch an artifact.
    Get {
        /// The reference of the artifact, such as artifact:mmpqmm6wc2.
        #[arg(value_name = "REF")]
        reference: String,
        /// The file to write; `-` is standard output [default: standard output; on a terminal, a new file with the name
        /// of the artifact].
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        source: Source,
    },
    /// Store a file and print its reference, which can then be attached to messages.
    Put {
        /// The file to store.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        shape: Shape,
    },
}

/// Runs `polity artifacts`; returns the exit code.
pub(crate) async fn list(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let filter = ArtifactFilter {
        task: named_task(&client, arguments.task).await?,
        owner: named_party(&client, arguments.owner).await?,
        kind: arguments.kind,
        after: None,
        limit: Some(arguments.limit),
    };
    let mut artifacts = client.artifacts(&filter).await?.artifacts;
    artifacts.reverse();
    arguments.shape.list(&artifacts, "there are no such artifacts", |artifacts| words(artifacts, width()))?;
    Ok(0)
}

/// Runs `polity artifact`; returns the exit code.
pub(crate) async fn one(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Get { reference, output, source } => {
            get(&source.client().await?, &reference, output).await?;
        }
        Command::Put { file, at, shape } => {
            let stored = put(&at.client()?, &file).await?;
            shape.one(&stored, attached)?;
        }
    }
    Ok(0)
}

fn words(artifacts: &[ArtifactView], columns: Option<usize>) -> String {
    let rows: Vec<Vec<Cell>> = artifacts.iter().map(row).collect();
    table(&rows, columns)
}

fn row(artifact: &ArtifactView) -> Vec<Cell> {
    vec![
        Cell::new(NAME, &artifact.reference),
        Cell::new(DIM, &moment(artifact.created_at)),
        Cell::new(PLAIN, artifact.owner.as_str()),
        Cell::new(DIM, artifact.task.as_ref().map_or("sent to nobody", |task| task.as_str())),
        Cell::new(DIM, artifact.mime_type.as_str()),
        Cell::new(DIM, &crate::output::bytes(artifact.size)),
        Cell::new(PLAIN, artifact.filename.as_deref().or(artifact.label.as_deref()).unwrap_or_default()),
    ]
}

/// Stores a file, and shows the progress if storing takes long.
pub(crate) async fn put(client: &Client, file: &Path) -> Result<ArtifactView, Failure> {
    let unreadable = |source| Failure::Attachment { path: file.to_owned(), source };
    // Check the type first: opening a pipe would block until another process writes to it.
    let metadata = std::fs::metadata(file).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Failure::NotAFile(file.to_owned()));
    }
    let meter = Meter::new(&format!("sending {}", file.display()), Some(metadata.len()));
    Ok(client.put_artifact(file, progress(meter)).await?)
}

fn progress(meter: Meter) -> Progress {
    Arc::new(move |done| meter.at(done))
}

async fn get(client: &Client, reference: &str, output: Option<PathBuf>) -> Result<(), Failure> {
    let Some(id) = ArtifactId::from_reference(reference) else {
        return Err(Failure::NoReference(reference.to_owned()));
    };
    let artifact = client.artifact(id.as_str()).await?;
    let to_terminal = std::io::stdout().is_terminal();
    let output = match output {
        None if to_terminal => Some((own_name(&artifact), Chosen::ByArtifact)),
        None => None,
        Some(path) if path == Path::new("-") => None,
        Some(path) => Some((path, Chosen::ByPerson)),
    };
    let Some((path, chosen)) = output else {
        if to_terminal && artifact.kind == Kind::Text {
            // The text may come from a model. `print` makes visible the characters that would control the terminal.
            let mut text = Vec::new();
            let meter = progress(Meter::new("fetching", Some(artifact.size)));
            client.artifact_content(id.as_str(), &mut text, Path::new("standard output"), &meter).await?;
            return print(&String::from_utf8_lossy(&text));
        }
        let meter = progress(Meter::new("fetching", Some(artifact.size)));
        let mut stdout = tokio::io::stdout();
        let name = Path::new("standard output");
        return match client.artifact_content(id.as_str(), &mut stdout, name, &meter).await {
            Err(polity_client::Error::File { source, .. }) => Err(Failure::of_output(source)),
            done => Ok(done.map(|_| ())?),
        };
    };
    match chosen {
        Chosen::ByPerson => fetch(client, &artifact, &path).await?,
        Chosen::ByArtifact => {
            reserve(&path)?;
            if let Err(failure) = fetch(client, &artifact, &path).await {
                // Remove the empty file that reserved the name.
                let _ = std::fs::remove_file(&path);
                return Err(failure);
            }
        }
    }
    complain(&format!("{}: {}", path.display(), crate::output::bytes(artifact.size)));
    Ok(())
}

/// Who chose the name of the output file.
enum Chosen {
    /// The user, who may want to replace an existing file.
    ByPerson,
    /// The agent or user who stored the artifact. An existing file with this name must not be replaced.
    ByArtifact,
}

/// Creates an empty file to reserve its name; fails if the file exists.
fn reserve(path: &Path) -> Result<(), Failure> {
    match std::fs::File::create_new(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Failure::AlreadyThere(path.to_owned()))
        }
        Err(source) => Err(Failure::Unwritable { path: path.to_owned(), source }),
    }
}

/// Fetches an artifact into a file, and replaces an existing file. The new file gets its name when it is complete.
pub(crate) async fn fetch(client: &Client, artifact: &ArtifactView, path: &Path) -> Result<(), Failure> {
    let unwritable = |source| Failure::Unwritable { path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    // Opening the `.part` file fails if it exists. So this function neither follows a symbolic link nor overwrites
    // the file of another fetch.
    let in_the_way = |source| Failure::Unwritable { path: part.clone(), source };
    let mut file = tokio::fs::File::create_new(&part).await.map_err(in_the_way)?;
    let meter = progress(Meter::new(&format!("fetching {}", path.display()), Some(artifact.size)));
    let fetched = client.artifact_content(artifact.id.as_str(), &mut file, path, &meter).await;
    drop(file);
    if let Err(error) = fetched {
        // An incomplete file is useless. If it cannot be removed, its name still ends with `.part`.
        let _ = tokio::fs::remove_file(&part).await;
        return Err(error.into());
    }
    tokio::fs::rename(&part, path).await.map_err(unwritable)
}

/// Returns a file name for an artifact. The result contains no directory, even if the file name of the artifact does.
pub(crate) fn own_name(artifact: &ArtifactView) -> PathBuf {
    let named = artifact.filename.as_deref().and_then(|name| Path::new(name).file_name());
    let named = named.map(|name| name.to_string_lossy().replace(['/', '\\'], "_"));
    let named =
        named.map(|name| name.replace(|character: char| character.is_control() || is_obeyed(character), ""));
    let named = named.filter(|name| !name.is_empty() && !name.starts_with('.'));
    PathBuf::from(named.map_or_else(|| artifact.id.to_string(), |name| shortened(&name, LONGEST_NAME)))
}

/// Cuts a name to at most `longest` bytes. Keeps a short file extension, and cuts the part before it instead.
fn shortened(name: &str, longest: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let dot = name.rfind('.').filter(|dot| name.len() - dot <= LONGEST_EXTENSION.min(longest / 2));
    let (stem, extension) = name.split_at(dot.unwrap_or(name.len()));
    let kept = stem.floor_char_boundary(longest - extension.len());
    format!("{}{extension}", &stem[..kept])
}

#[cfg(test)]
mod tests {
    use super::super::examples::{artifact, artifacts};
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn artifacts_in_words() {
        insta::assert_snapshot!(without_styles(&words(&artifacts(), None)), @r#"
artifact:mmpqmm6wc2  1970-01-01 00:00:00  user        task-4x2k       image/png      930 bytes  picture.png
artifact:z67sthacvx  1970-01-01 00:00:00  agent-sae2  task-4x2k       text/markdown  12.3 kB    report
artifact:abc         1970-01-01 00:00:00  user        sent to nobody  image/png      930 bytes  red <U+001B>[31m<U+0007> and more
"#);
    }

    #[test]
    fn no_artifact_is_written_elsewhere() {
        let check = |filename: Option<&str>, expect: &str| {
            let artifact = ArtifactView { filename: filename.map(str::to_owned), ..artifact("abc", None) };
            assert_eq!(own_name(&artifact), Path::new(expect), "{filename:?}");
        };
        check(Some("picture.png"), "picture.png");
        check(Some("/etc/passwd"), "passwd");
        check(Some("../../x"), "x");
        check(Some("..\\x"), "abc");
        check(Some("a\\b"), "a_b");
        check(Some(".."), "abc");
        check(Some(".bashrc"), "abc");
        check(Some("a\nb"), "ab");
        check(Some("\u{202e}gnp.x\u{2069}\u{1b}"), "gnp.x");
        check(Some("\u{1b}.bashrc"), "abc");
        check(Some(""), "abc");
        check(None, "abc");
        let long = "报".repeat(100);
        check(Some(&format!("{long}.png")), &format!("{}.png", "报".repeat(65)));
        check(Some(&long), &"报".repeat(66));
        check(Some(&format!("a.{long}")), &format!("a.{}", "报".repeat(66)));
    }

    #[test]
    fn a_name_of_an_artifact_replaces_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.md");
        reserve(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(reserve(&path), Err(Failure::AlreadyThere(there)) if there == path));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
