//! The crates of the workspace form layers. For each crate, a list names the crates on which it may depend. All of
//! these are in lower layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Each crate of the workspace, with the workspace crates that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("polity-points", &[]),
    ("polity-instructions", &[]),
    ("polity-heap", &[]),
    ("polity-addresses", &[]),
    ("polity-disk", &[]),
    ("polity-sql", &[]),
    ("polity-society", &[]),
    ("polity-bounds", &[]),
    ("polity-llm", &["polity-bounds"]),
    ("polity-media", &[]),
    ("polity-web", &["polity-addresses"]),
    ("polity-sandbox", &["polity-addresses"]),
    ("polity-routing", &["polity-society"]),
    ("polity-artifacts", &["polity-points", "polity-disk", "polity-society", "polity-sql"]),
    ("polity-registry", &["polity-disk", "polity-society", "polity-llm", "polity-sandbox", "polity-web"]),
    ("polity-rehearsal", &["polity-society", "polity-llm"]),
    ("polity-probe", &["polity-society", "polity-llm", "polity-registry"]),
    ("polity-view", &["polity-society", "polity-llm"]),
    ("polity-files", &["polity-society"]),
    ("polity-workspaces", &["polity-disk", "polity-files", "polity-society"]),
    (
        "polity-hands",
        &["polity-files", "polity-society", "polity-sandbox", "polity-web", "polity-workspaces"],
    ),
    ("polity-servers", &["polity-society", "polity-hands"]),
    (
        "polity-store",
        &[
            "polity-points",
            "polity-disk",
            "polity-sql",
            "polity-society",
            "polity-view",
            "polity-artifacts",
            "polity-llm",
            "polity-registry",
        ],
    ),
    (
        "polity-decide",
        &[
            "polity-society",
            "polity-view",
            "polity-routing",
            "polity-artifacts",
            "polity-media",
            "polity-llm",
            "polity-registry",
            "polity-store",
        ],
    ),
    (
        "polity-runtime",
        &[
            "polity-decide",
            "polity-files",
            "polity-hands",
            "polity-workspaces",
            "polity-points",
            "polity-society",
            "polity-view",
            "polity-store",
            "polity-routing",
            "polity-artifacts",
            "polity-llm",
            "polity-media",
            "polity-registry",
        ],
    ),
    ("polity-api", &["polity-bounds", "polity-runtime", "polity-store", "polity-view", "polity-society"]),
    ("polity-openai", &["polity-bounds", "polity-runtime", "polity-store", "polity-view", "polity-society"]),
    ("polity-mcp", &["polity-runtime", "polity-store", "polity-view", "polity-society"]),
    ("polity-client", &["polity-disk", "polity-view", "polity-society"]),
    (
        "polity",
        &[
            "polity-heap",
            "polity-points",
            "polity-disk",
            "polity-society",
            "polity-routing",
            "polity-artifacts",
            "polity-llm",
            "polity-media",
            "polity-registry",
            "polity-rehearsal",
            "polity-probe",
            "polity-view",
            "polity-store",
            "polity-decide",
            "polity-hands",
            "polity-servers",
            "polity-sandbox",
            "polity-web",
            "polity-runtime",
            "polity-api",
            "polity-openai",
            "polity-mcp",
            "polity-client",
        ],
    ),
    ("polity-tests", &[]),
    ("polity-layer", &[]),
    ("polity-bench", &[]),
];

fn metadata() -> Metadata {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        // Ask only about this platform. With `--offline`, cargo may lack the crates that other platforms need.
        .other_options(["--offline", "--locked", "--filter-platform", &host()].map(str::to_owned).to_vec())
        .exec()
        .expect("the metadata of the workspace")
}

/// Returns the platform for which this machine compiles, such as `x86_64-unknown-linux-gnu`.
fn host() -> String {
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(rustc.stdout).expect("rustc speaks UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    host.to_owned()
}

/// Returns the direct dependencies of a crate, without the dependencies of its tests and build scripts.
fn known_to(package: &Package) -> BTreeSet<&str> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    normal.map(|dependency| dependency.name.as_str()).collect()
}

fn known_by_name(metadata: &Metadata) -> BTreeMap<&str, BTreeSet<&str>> {
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.as_str(), known_to(package)))
        .collect()
}

/// Returns the names of all direct and indirect dependencies of a crate.
fn all_below<'m>(metadata: &'m Metadata, name: &str) -> BTreeSet<&'m str> {
    let resolve = metadata.resolve.as_ref().expect("a resolved workspace");
    let package = metadata.workspace_packages().into_iter();
    let first =
        package.clone().find(|package| package.name.as_str() == name).expect("a crate of the workspace");
    let mut found: BTreeSet<&PackageId> = BTreeSet::new();
    let mut open = vec![&first.id];
    while let Some(id) = open.pop() {
        let node = resolve.nodes.iter().find(|node| node.id == *id).expect("a node");
        for dependency in &node.deps {
            let is_normal = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if is_normal && found.insert(&dependency.pkg) {
                open.push(&dependency.pkg);
            }
        }
    }
    found.iter().map(|id| metadata[*id].name.as_str()).collect()
}

#[test]
fn every_crate_has_its_layer() {
    let metadata = metadata();
    let crates: BTreeSet<&str> = known_by_name(&metadata).into_keys().collect();
    let layers: BTreeSet<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(crates, layers);
}

#[test]
fn arrows_point_down() {
    for (at, (name, below)) in LAYERS.iter().enumerate() {
        for known in *below {
            let place = LAYERS.iter().position(|(other, _)| other == known);
            assert!(place < Some(at), "{name} is listed before {known}, which it may depend on");
        }
    }
    let metadata = metadata();
    let known = known_by_name(&metadata);
    for (name, allowed) in LAYERS {
        let inside: Vec<&&str> =
            known[name].iter().filter(|known| LAYERS.iter().any(|(other, _)| other == *known)).collect();
        for known in inside {
            assert!(allowed.contains(known), "{name} must not depend on {known}");
        }
    }
}

#[test]
fn the_pure_crates_do_no_io() {
    let metadata = metadata();
    for name in ["polity-society", "polity-routing"] {
        let below = all_below(&metadata, name);
        assert!(below.contains("serde"), "the dependencies of {name} were not read");
        for io in [
            "tokio",
            "sqlx",
            "rusqlite",
            "notify",
            "async-openai",
            "reqwest",
            "hyper",
            "axum",
            "futures",
            "mio",
            "rustls",
        ] {
            assert!(!below.contains(io), "{name} depends on {io}");
        }
    }
}

/// Each entry of the list names a library that does IO, and the only crates that may depend on this library directly.
#[test]
fn each_world_outside_has_one_door() {
    let metadata = metadata();
    let known = known_by_name(&metadata);
    for (library, doors) in [
        ("async-openai", &["polity-llm"][..]),
        ("reqwest", &["polity-llm", "polity-client", "polity-web", "polity-servers"]),
        ("html5ever", &["polity-web"]),
        ("dom_query", &["polity-web"]),
        ("rusqlite", &["polity-sql", "polity-bench"]),
        ("sqlx", &["polity-store"]),
        ("axum", &["polity-api", "polity-openai", "polity-mcp", "polity-tests", "polity"]),
        ("rmcp", &["polity-mcp", "polity-servers"]),
        ("clap", &["polity"]),
        ("crossterm", &["polity"]),
        ("rustyline", &["polity"]),
        ("pulldown-cmark", &["polity"]),
    ] {
        for (name, known) in &known {
            assert!(doors.contains(name) || !known.contains(library), "{name} must not depend on {library}");
        }
    }
}

/// Collects the Rust files below a directory, except test files.
fn sources(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["tests", "testing", "forms"].contains(&&*name)
        {
            found.push(path);
        }
    }
}

/// The crate `decide` works on plain data: no IO, no async, no clock, and from the store only the types of rows.
#[test]
fn decisions_do_no_io() {
    const FORBIDDEN: &[&str] = &[
        "tokio",
        "sqlx",
        "polity_sql",
        "async ",
        ".await",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
        "jiff",
        "fastrand",
        "notify::",
    ];
    const ROW_TYPES: &[&str] = &[
        "Conversation;",
        "record::",
        "records::Recorded",
        "tasks::Standing",
        "approvals::Approval;",
        "messages::Size",
        "usage::{Share, Spent}",
        "fork::Rows",
        "fork::{MessageRow, Rows}",
        "view::doing::Moments",
        "view::now::{Open, OpenRequest}",
    ];
    let decide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/decide/src");
    let mut files = Vec::new();
    sources(&decide, &mut files);
    assert!(files.len() > 10, "the files were not found");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in product.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for word in FORBIDDEN {
                assert!(!line.contains(word), "{}: {line}", file.display());
            }
            if let Some((_, used)) = line.split_once("polity_store::") {
                let is_plain = ROW_TYPES.iter().any(|plain| used.starts_with(plain));
                assert!(is_plain, "{}: {line}", file.display());
            }
        }
    }
}
