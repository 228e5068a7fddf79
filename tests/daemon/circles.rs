//! The files of a crate must not import each other in a circle, unless a comment above the `mod` line explains why.
//!
//! The test reads the source text. It counts a path as an import if the path begins with `crate`, `self`, `super` or
//! the name of a submodule. The imported module is the last module in the path: `crate::a::b::Item` imports `b`. The
//! test can miss an import, but never reports an import that does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The beginning of a comment above a `mod` line that gives the reason for a circle.
const DEFENCE: &str = "// Circle: ";

/// The path of a module: the names from the root of its crate to the module itself.
type Module = Vec<String>;

/// The source files of one crate, without its tests.
struct Crate {
    files: BTreeMap<Module, String>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![src.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).expect("a directory of the crate") {
                let path = entry.expect("an entry").path();
                let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                if path.is_dir() && name != "tests" && name != "testing" {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && !["tests", "testing", "examples"].contains(&&*name)
                {
                    let text = fs::read_to_string(&path).expect("a source file");
                    files.insert(module(src, &path), text);
                }
            }
        }
        Self { files }
    }

    /// Returns the modules that the file of a module imports.
    fn imports(&self, from: &Module) -> BTreeSet<Module> {
        let product = self.files[from].split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code: String = product
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n");
        let paths = paths(&code);
        let targets = paths.iter().filter_map(|path| self.target(from, path));
        targets.filter(|target| target != from && !target.is_empty()).collect()
    }

    /// Resolves a path that the file of the module `from` uses. Returns the innermost module that the path names.
    fn target(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut names = path.iter();
        let mut at = match names.next()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => {
                let mut parent = from.clone();
                parent.pop();
                while names.as_slice().first().is_some_and(|name| name == "super") {
                    names.next();
                    parent.pop();
                }
                parent
            }
            child => {
                let below = [from.as_slice(), &[child.to_owned()]].concat();
                if !self.files.contains_key(&below) {
                    return None;
                }
                below
            }
        };
        for name in names {
            let below = [at.as_slice(), std::slice::from_ref(name)].concat();
            if !self.files.contains_key(&below) {
                break;
            }
            at = below;
        }
        Some(at)
    }

    /// Returns all circles. A circle is a group of modules, and each of them imports all others, directly or
    /// indirectly.
    fn circles(&self) -> Vec<Vec<Module>> {
        let imports: BTreeMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, self.imports(module))).collect();
        let reach = |from: &Module| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = open.pop() {
                for next in imports.get(&module).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        open.push(next.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, reach(module))).collect();
        let mut circles: Vec<Vec<Module>> = Vec::new();
        for module in self.files.keys() {
            if circles.iter().flatten().any(|other| other == module) {
                continue;
            }
            let is_mutual =
                |other: &&Module| reached[module].contains(*other) && reached[*other].contains(module);
            let circle: Vec<Module> = self.files.keys().filter(is_mutual).cloned().collect();
            if circle.len() > 1 {
                circles.push(circle);
            }
        }
        circles
    }

    /// Returns whether a circle has a valid reason. The circle must consist of one module and its submodules, and a
    /// comment above the `mod` line of this module must give the reason.
    fn is_defended(&self, circle: &[Module]) -> bool {
        let Some(top) = circle.iter().min_by_key(|module| module.len()) else { return false };
        let Some((name, parent)) = top.split_last() else { return false };
        let Some(declaring) = self.files.get(parent) else { return false };
        let is_declaration = |line: &str| line.trim_end().ends_with(&format!("mod {name};"));
        let lines: Vec<&str> = declaring.lines().collect();
        let Some(at) = lines.iter().position(|line| is_declaration(line)) else { return false };
        let comment = lines[..at].iter().rev().take_while(|line| line.starts_with("//"));
        circle.iter().all(|module| module.starts_with(top))
            && comment.into_iter().any(|line| line.starts_with(DEFENCE))
    }
}

/// Returns the path of the module that a file contains.
fn module(src: &Path, file: &Path) -> Module {
    let below = file.strip_prefix(src).expect("a file of the crate").with_extension("");
    let names: Module = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names == ["lib"] || names == ["main"] { Vec::new() } else { names }
}

/// Returns all paths in a text. A tree of paths, as in `use a::{b, c}`, gives one path for each branch.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = code;
    let is_of_name = |character: char| character.is_alphanumeric() || character == '_';
    while let Some(at) = rest.find("::") {
        let begins = rest[..at].rfind(|character| !is_of_name(character)).map_or(0, |before| before + 1);
        let length = tree(&rest[begins..], &mut Vec::new(), &mut found);
        rest = &rest[begins + length.max(at + 2 - begins)..];
    }
    found
}

/// Reads a path, or a tree of paths as in `a::{b, c::d}`, from the beginning of a text. Returns the number of bytes
/// that it has read.
fn tree(text: &str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let is_of_name = |character: char| character.is_alphanumeric() || character == '_';
    let mut at = 0;
    let depth = before.len();
    loop {
        let skipped = text[at..].len() - text[at..].trim_start().len();
        let name: String =
            text[at + skipped..].chars().take_while(|character| is_of_name(*character)).collect();
        if name.is_empty() {
            break;
        }
        at += skipped + name.len();
        before.push(name);
        if !text[at..].starts_with("::") {
            break;
        }
        at += 2;
        if text[at..].starts_with('{') {
            at += 1;
            while !text[at..].trim_start().starts_with('}') && at < text.len() {
                let length = tree(&text[at..], before, found);
                at += length;
                match text[at..].find([',', '}', '{']) {
                    Some(next) if text[at + next..].starts_with(',') => at += next + 1,
                    Some(next) if text[at + next..].starts_with('}') => {
                        at += next;
                        break;
                    }
                    _ => break,
                }
            }
            at = text[at..].find('}').map_or(text.len(), |end| at + end + 1);
            break;
        }
    }
    if before.len() > depth {
        found.push(before.clone());
    }
    before.truncate(depth);
    at
}

fn crates() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut crates: Vec<PathBuf> = fs::read_dir(all)
        .expect("the crates")
        .map(|entry| entry.expect("an entry").path().join("src"))
        .collect();
    crates.sort();
    crates
}

#[test]
fn no_files_import_each_other_in_a_circle_without_a_reason() {
    let mut undefended = Vec::new();
    let mut files = 0;
    for src in crates() {
        let crate_ = Crate::read(&src);
        files += crate_.files.len();
        for circle in crate_.circles() {
            if !crate_.is_defended(&circle) {
                let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
                undefended.push(format!("{}: {}", src.display(), names.join(", ")));
            }
        }
    }
    assert!(files > 300, "the files were not found");
    assert!(undefended.is_empty(), "circles:\n{}", undefended.join("\n"));
}

#[test]
fn paths_in_code() {
    let check = |code: &str, expect: &[&str]| {
        let found: BTreeSet<String> = paths(code).iter().map(|path| path.join("::")).collect();
        assert_eq!(found, expect.iter().map(|path| (*path).to_owned()).collect(), "{code}");
    };
    check("use crate::a::B;", &["crate::a::B"]);
    check("use crate::{a, b::{C, d}};", &["crate", "crate::a", "crate::b", "crate::b::C", "crate::b::d"]);
    check("use super::{self, x as y};\nfn f() { z::g(1) }", &["super", "super::self", "super::x", "z::g"]);
    check(
        "use crate::c::{\n    d, e,\n};\ncrate::f::g()",
        &["crate::c", "crate::c::d", "crate::c::e", "crate::f::g"],
    );
}
