//! Lists the files that belong to a workspace. Three kinds of files do not belong to it: git's own files, files that
//! polity has not written completely, and files that an ignore file such as `.gitignore` excludes.

use crate::beneath::{Beneath, Found, Kind, Stamp, UNFINISHED, read};
use crate::path::{TreePath, is_git_name};
use crate::problem::Problem;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use polity_files::is_temporary;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// Maximum depth of directories. Files in deeper directories do not belong to the workspace. A bound is needed,
/// because a command of an agent can nest directories without end.
const DEPTH: usize = 200;

/// Maximum size in bytes of an ignore file. A larger file is disregarded.
const IGNORE_FILE_BYTES: u64 = 1 << 20;

/// A file or link of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) path: TreePath,
    /// The metadata of the file. `None` for a symbolic link, or if the metadata was not read.
    pub(crate) stamp: Option<Stamp>,
}

/// The rules of the ignore files from a directory up to the root, the innermost first.
struct Rules {
    own: Option<Gitignore>,
    outer: Option<Rc<Rules>>,
}

impl Rules {
    fn ignore(&self, path: &Path, kind: Kind) -> bool {
        let mut rules = Some(self);
        while let Some(Self { own, outer }) = rules {
            if let Some(own) = own {
                match own.matched(path, kind == Kind::Directory) {
                    ignore::Match::Ignore(_) => return true,
                    ignore::Match::Whitelist(_) => return false,
                    ignore::Match::None => {}
                }
            }
            rules = outer.as_deref();
        }
        false
    }
}

/// Lists the files and links that belong to a workspace.
pub(crate) fn files(beneath: &Beneath) -> Result<Vec<Entry>, Problem> {
    let mut files = Vec::new();
    let mut waiting: Vec<(Option<TreePath>, Option<Rc<Rules>>, usize)> = vec![(None, None, 0)];
    while let Some((directory, outer, depth)) = waiting.pop() {
        let rules = Rc::new(Rules { own: rules_of(beneath, directory.as_ref())?, outer });
        for (name, kind, stamp) in beneath.list(directory.as_ref())? {
            if is_left_out(&name) {
                continue;
            }
            let whole = match &directory {
                Some(directory) => [directory.bytes(), b"/", &name].concat(),
                None => name,
            };
            let Ok(path) = TreePath::new(whole) else { continue };
            if rules.ignore(&path.relative(), kind) {
                continue;
            }
            match kind {
                Kind::Directory if depth < DEPTH => {
                    waiting.push((Some(path), Some(rules.clone()), depth + 1))
                }
                Kind::File => files.push(Entry { path, stamp: Some(stamp) }),
                Kind::Link => files.push(Entry { path, stamp: None }),
                Kind::Directory | Kind::Special => {}
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Returns whether every commit leaves out files with this name. These are git's own files, and unfinished files: a
/// merge or a tool of an agent is writing them now, or was writing them when polity was killed.
fn is_left_out(name: &[u8]) -> bool {
    is_git_name(name) || name.starts_with(UNFINISHED.as_bytes()) || is_temporary(OsStr::from_bytes(name))
}

fn rules_of(beneath: &Beneath, directory: Option<&TreePath>) -> Result<Option<Gitignore>, Problem> {
    let name: &[u8] = b".gitignore";
    let whole = directory.map_or(name.to_vec(), |directory| [directory.bytes(), b"/", name].concat());
    let Found::File(file, metadata) = beneath.look(&TreePath::new(whole)?).unwrap_or(Found::Nothing) else {
        return Ok(None);
    };
    if metadata.len() > IGNORE_FILE_BYTES {
        return Ok(None);
    }
    let Ok(text) = read(file, metadata.len()) else { return Ok(None) };
    let root = directory.map(TreePath::relative).unwrap_or_default();
    let mut builder = GitignoreBuilder::new(root);
    for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
        // Git skips malformed lines as well.
        let _ = builder.add_line(None, line);
    }
    Ok(builder.build().ok())
}
