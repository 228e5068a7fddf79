//! Reports the level of the sandbox for commands of agents on this machine, and advises how to raise this level.

use super::report::Section;
use crate::hands::enter;
use polity_probe::Finding;
use polity_sandbox::{Level, Machine};

/// Tries out which restrictions this machine can put on a command of an agent.
pub(super) async fn look() -> Section {
    let findings = match enter() {
        Some(enter) => findings(&polity_sandbox::probe(&enter).await),
        None => {
            let what = "the path of this program is unknown, so agents get no commands";
            vec![Finding::warning("sandbox_program", what, "start polity by its full path")]
        }
    };
    Section::new("sandbox", "of commands", findings)
}

/// Returns findings that say what the sandbox can restrict on this machine. The first finding is the level of the
/// sandbox.
fn findings(machine: &Machine) -> Vec<Finding> {
    let level = machine.level;
    let of_level = match level {
        Level::Full => {
            Finding::ok("sandbox_level", format!("commands run in a sandbox of the level `{level}`"))
        }
        Level::Partial => Finding::hint(
            "sandbox_level",
            format!("commands run in a sandbox of the level `{level}`, and you are asked before they do"),
            "follow the advice below to get the level `full`",
        ),
        Level::None => Finding::hint(
            "sandbox_level",
            "this machine gives no sandbox (level `none`)",
            "follow the advice below, or set tools.sandbox.allowNone",
        ),
    };
    let others = machine.findings.iter().map(|found| match &found.advice {
        Some(advice) => Finding::hint("sandbox", found.text.clone(), advice.clone()),
        None => Finding::ok("sandbox", found.text.clone()),
    });
    std::iter::once(of_level).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_probe::Severity;
    use polity_sandbox::OwnProc;

    fn machine(level: Level, advice: Option<&str>) -> Machine {
        let found = polity_sandbox::Finding { text: "a fact".to_owned(), advice: advice.map(str::to_owned) };
        Machine {
            level,
            bubblewrap: None,
            proc: OwnProc::Absent,
            landlock: 0,
            delegated: None,
            kernel: (6, 8),
            findings: vec![found],
        }
    }

    #[test]
    fn each_level_is_named_and_no_level_makes_the_doctor_fail() {
        let check = |level, advice, expect: [Severity; 2]| {
            let found = findings(&machine(level, advice));
            assert_eq!(found.iter().map(|finding| finding.severity).collect::<Vec<_>>(), expect);
            assert!(found[0].what.contains(&format!("`{level}`")), "{found:?}");
            assert_eq!(found[1].advice.as_deref(), advice);
        };
        check(Level::Full, None, [Severity::Ok, Severity::Ok]);
        check(Level::Partial, Some("install it"), [Severity::Hint, Severity::Hint]);
        check(Level::None, Some("install it"), [Severity::Hint, Severity::Hint]);
    }
}
