//! Runs the first commands of the README and the commands of its tour, exactly as they are written.

use polity_tests::Polity;
use serde_json::json;
use std::path::Path;

/// Shell code that runs before the commands of the tour. With this code, the daemon takes any free port, all other
/// commands wait until the daemon is ready, and the output of `polity watch` goes into a file.
const PRELUDE: &str = r#"
set -euo pipefail
polity() {
    if [ "$1" = serve ]; then
        shift
        exec "$POLITY" serve --listen 127.0.0.1:0 "$@"
    fi
    until [ -e "$XDG_DATA_HOME/polity/daemon.json" ]; do sleep 0.05; done
    if [ "$1" = watch ]; then
        exec "$POLITY" watch >watched
    fi
    "$POLITY" "$@"
}
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
"#;

/// Shell code that stands after the commands of the tour. It waits until `polity watch` has printed that root hired
/// an agent.
const EPILOGUE: &str = r#"
until grep -q "root hired " watched; do sleep 0.05; done
"#;

/// Returns a section of the README, from its heading to the next heading.
fn section<'a>(readme: &'a str, name: &str) -> &'a str {
    let begin = readme.find(&format!("\n## {name}\n")).expect("the section");
    let rest = &readme[begin + 1..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// Returns the shell commands of a section, in order.
fn commands(readme: &str, name: &str) -> String {
    let blocks = section(readme, name).split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().expect("the end of the block")).collect()
}

/// Runs the commands of the section `Run` that begin with `cargo run`, in a checkout without a configured model.
#[test]
fn the_first_commands_of_the_readme() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(project.join("README.md")).expect("the README");
    let home = Polity::new(&json!({"services": []}), &json!({"discover": false}));
    let checkout = home.home().join("checkout");
    for directory in ["examples", "config"] {
        std::fs::create_dir_all(checkout.join(directory)).expect("a directory");
    }
    // The first command uses the user's own configuration and not the `./config` of the checkout. The reason is that
    // `./config` is in the workspace of this command, and polity does not use a configuration from a workspace.
    let own = home.home().join(".config/polity");
    std::fs::create_dir_all(&own).expect("a directory");
    for file in ["config/app.json", "config/llmservices.json"] {
        let from = home.home().join(file);
        std::fs::copy(&from, checkout.join(file)).expect("a file");
        std::fs::copy(&from, own.join(from.file_name().expect("a name"))).expect("a file");
    }
    for file in ["README.md", "examples/picture.png"] {
        std::fs::copy(project.join(file), checkout.join(file)).expect("a file");
    }
    let lines =
        section(&readme, "Run").lines().filter(|line| line.starts_with("cargo run --release -- run "));
    let said: Vec<String> = lines
        .map(|line| {
            let command = line.replacen("cargo run --release --", "\"$POLITY\"", 1);
            home.script(&format!("cd checkout && {command}")).wait().expect_code(0).stdout
        })
        .collect();
    let [workspace, picture] = said.as_slice() else { panic!("the README shows other commands: {said:?}") };
    let report = std::fs::read_to_string(checkout.join("polity-report.md")).expect("the report");
    assert!(workspace.contains("polity-report.md") && workspace.contains("# polity"), "{workspace}");
    assert!(report.contains("# polity"), "{report}");
    assert!(picture.contains("480 × 270"), "{picture}");
}

#[test]
fn the_tour_of_the_readme() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(project.join("README.md")).expect("the README");
    let commands = commands(&readme, "Tour");
    for command in ["serve", "watch", "send", "agents", "messages", "usage", "export"] {
        assert!(commands.contains(&format!("polity {command}")), "the tour does not show `polity {command}`");
    }

    let home = Polity::new(&json!({"services": []}), &json!({"discover": false}));
    std::fs::create_dir(home.home().join("examples")).expect("a directory");
    std::fs::copy(project.join("examples/picture.png"), home.home().join("examples/picture.png"))
        .expect("the picture");
    let said = home.script(&format!("{PRELUDE}{commands}{EPILOGUE}")).wait().expect_code(0).stdout;

    let blind = said.find("只收到文字说明").unwrap_or_else(|| panic!("the first answer is not in {said}"));
    let seeing = said.find("480 × 270").unwrap_or_else(|| panic!("the second answer is not in {said}"));
    assert!(blind < seeing, "{said}");
    // The last command exports the newest task, so the prompt of this task comes after the second answer.
    assert!(said[seeing..].contains("看看这张图片"), "{said}");
}
