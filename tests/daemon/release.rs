//! The profile with which cargo builds the released program. If the program is not stripped of its symbols, it is
//! 18 MB larger.

use std::path::Path;

/// The table of the profile, and the package of the program.
const PROFILE: &str = "profile.release";
const PROGRAM: &str = "polity";

/// Finds out why the released program would not be stripped. Returns an empty list if it would be.
fn faults(manifest: &str) -> Vec<String> {
    let (mut table, mut is_stripped, mut faults) = (String::new(), false, Vec::new());
    let of_program = format!("{PROFILE}.package.{PROGRAM}");
    for line in manifest.lines() {
        let line = line.split('#').next().unwrap_or_default().replace(['"', '\''], "");
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = header.replace(' ', "");
            if table == of_program {
                faults.push(line.to_owned());
            }
        } else if let Some((key, value)) = line.split_once('=') {
            let path = format!("{table}.{}", key.replace(' ', ""));
            if path == format!("{PROFILE}.strip") {
                is_stripped = ["true", "symbols"].contains(&value.trim());
            }
            // Cargo ignores `strip` for a package with settings of its own.
            if path == of_program || table != of_program && path.starts_with(&format!("{of_program}.")) {
                faults.push(line.to_owned());
            }
        }
    }
    if !is_stripped {
        faults.push(format!("[{PROFILE}] has no strip = true"));
    }
    faults
}

#[test]
fn the_release_profile_strips_symbols() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).expect("the manifest of the workspace");
    assert_eq!(faults(&manifest), Vec::<String>::new());
}

#[test]
fn a_profile_that_does_not_strip_is_found() {
    let check = |manifest: &str, count: usize| {
        assert_eq!(faults(manifest).len(), count, "{manifest}: {:?}", faults(manifest));
    };
    let stripped = "[profile.release]\nstrip = true\n";
    check(stripped, 0);
    check("[profile.release]\ndebug = false\nstrip = \"symbols\" # small\n", 0);
    check(&format!("{stripped}[profile.release.package]\npolity-api = {{ opt-level = \"s\" }}\n"), 0);
    check("", 1);
    check("[profile.release]\nstrip = \"debuginfo\"\n", 1);
    check("[profile.release]\n# strip = true\n", 1);
    check("[profile.dev]\nstrip = true\n", 1);
    for of_program in [
        "[profile.release.package.polity]\nopt-level = \"s\"\n",
        "[profile.release.package.\"polity\"]\nopt-level = \"s\"\n",
        "[profile.release.package]\npolity = { opt-level = \"s\" }\n",
        "[profile.release.package]\npolity.opt-level = \"s\"\n",
    ] {
        check(&format!("{stripped}{of_program}"), 1);
    }
}
