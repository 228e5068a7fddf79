//! The crates of the workspace stand in layers, and nobody knows anybody above.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Each crate of the workspace, with those that it may know.
const LAYERS: &[(&str, &[&str])] = &[
    ("polity-points", &[]),
    ("polity-society", &[]),
    ("polity-llm", &[]),
    ("polity-media", &[]),
    ("polity-routing", &["polity-society"]),
    ("polity-artifacts", &["polity-points", "polity-society"]),
    ("polity-registry", &["polity-society", "polity-llm"]),
    ("polity-rehearsal", &["polity-society", "polity-llm"]),
    ("polity-probe", &["polity-society", "polity-llm", "polity-registry"]),
    (
        "polity-runtime",
        &[
            "polity-points",
            "polity-society",
            "polity-routing",
            "polity-artifacts",
            "polity-llm",
            "polity-media",
            "polity-registry",
        ],
    ),
    ("polity-api", &["polity-runtime", "polity-society"]),
    ("polity-openai", &["polity-runtime", "polity-society"]),
    ("polity-mcp", &["polity-runtime", "polity-society"]),
    ("polity-client", &["polity-runtime", "polity-society"]),
    (
        "polity",
        &[
            "polity-points",
            "polity-society",
            "polity-routing",
            "polity-artifacts",
            "polity-llm",
            "polity-media",
            "polity-registry",
            "polity-rehearsal",
            "polity-probe",
            "polity-runtime",
            "polity-api",
            "polity-openai",
            "polity-mcp",
            "polity-client",
        ],
    ),
    ("polity-tests", &[]),
    ("polity-layer", &[]),
];

fn metadata() -> Metadata {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        // Crates of other platforms were never fetched on this one.
        .other_options(["--offline", "--locked", "--filter-platform", &host()].map(str::to_owned).to_vec())
        .exec()
        .expect("the metadata of the workspace")
}

/// The platform that the tests are built for.
fn host() -> String {
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(rustc.stdout).expect("rustc speaks UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    host.to_owned()
}

/// What the crate depends on, tests and build scripts aside.
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

/// The names of all that a crate needs to be built, however far down.
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
            assert!(place < Some(at), "{name} stands below {known}");
        }
    }
    let metadata = metadata();
    let known = known_by_name(&metadata);
    for (name, allowed) in LAYERS {
        let inside: Vec<&&str> =
            known[name].iter().filter(|known| LAYERS.iter().any(|(other, _)| other == *known)).collect();
        for known in inside {
            assert!(allowed.contains(known), "{name} must not know {known}");
        }
    }
}

#[test]
fn the_pure_crates_do_no_io() {
    let metadata = metadata();
    for name in ["polity-society", "polity-routing"] {
        let below = all_below(&metadata, name);
        assert!(below.contains("serde"), "the dependencies are read");
        for io in [
            "tokio",
            "sqlx",
            "notify",
            "async-openai",
            "reqwest",
            "hyper",
            "axum",
            "futures",
            "mio",
            "rustls",
        ] {
            assert!(!below.contains(io), "{name} needs {io}");
        }
    }
}

/// Only these may have the library among their own dependencies; the binary puts all together.
#[test]
fn each_world_outside_has_one_door() {
    let metadata = metadata();
    let known = known_by_name(&metadata);
    for (library, doors) in [
        ("async-openai", &["polity-llm"][..]),
        ("reqwest", &["polity-llm", "polity-client"]),
        ("sqlx", &["polity-artifacts", "polity-runtime"]),
        ("axum", &["polity-api", "polity-openai", "polity-mcp", "polity-tests", "polity"]),
        ("rmcp", &["polity-mcp"]),
        ("clap", &["polity"]),
        ("crossterm", &["polity"]),
        ("rustyline", &["polity"]),
    ] {
        for (name, known) in &known {
            assert!(doors.contains(name) || !known.contains(library), "{name} must not know {library}");
        }
    }
}
