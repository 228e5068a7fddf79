//! Guards the number of processor instructions of hot code.
//!
//! A time differs from run to run; a number of instructions hardly does. The test of a piece of code calls [`guard`],
//! which runs the same test once more under callgrind, a tool of valgrind, and counts. The directory `counts` has the
//! number of each piece as it was accepted. A piece that needs more than 5 % more fails.
//!
//! A compiler or a C library of another version makes other instructions. So numbers are compared only if they were
//! counted with the same versions. Without valgrind, nothing is counted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The runs under callgrind get this variable. Its value says how often the test does its work.
const TIMES: &str = "POLITY_INSTRUCTIONS_TIMES";

/// If this is set, the number that was counted becomes the accepted one.
const ACCEPT: &str = "POLITY_ACCEPT_INSTRUCTIONS";

/// The growth that a change may bring without being accepted, in percent.
const PERCENT: u64 = 5;

/// Counts the instructions of `work`, and compares them with the accepted number of the piece `name`.
///
/// `test` is the full name of the test that calls this function. `work` does its work as often as its argument says.
/// The number does not contain what `work` does only once, such as building its input.
///
/// # Panics
///
/// If the number grew by more than 5 %, or if callgrind cannot run the test.
#[expect(clippy::panic, clippy::print_stderr, reason = "a test calls this function")]
pub fn guard(name: &str, test: &str, times: u64, work: impl FnOnce(u64)) {
    if let Some(times) = env::var(TIMES).ok().and_then(|times| times.parse().ok()) {
        work(times);
        return;
    }
    let Some(circumstances) = circumstances() else {
        eprintln!("valgrind is not installed: the instructions of {name} are not counted");
        return;
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts").join(name);
    let accepts = env::var_os(ACCEPT).is_some();
    let accepted = fs::read_to_string(&file).unwrap_or_default();
    let (number, before) = accepted.trim_end().split_once('\n').unwrap_or_default();
    if !accepts && !before.is_empty() && before != circumstances {
        eprintln!("the instructions of {name} are not counted here; they were counted with {before}");
        return;
    }
    let [once, twice] = [times, 2 * times].map(|times| match count(test, times) {
        Ok(count) => count,
        Err(why) => panic!("cannot count the instructions of {name}: {why}"),
    });
    assert!(once < twice, "{name}: {times} times took {once} instructions, twice as often {twice}");
    let counted = (twice - once) / times;
    if accepts {
        if let Err(error) = fs::write(&file, format!("{counted}\n{circumstances}\n")) {
            panic!("cannot write {}: {error}", file.display());
        }
        return;
    }
    match verdict(number, counted) {
        Ok(words) => eprintln!("{name}: {words}"),
        Err(words) => panic!(
            "{name}: {words}. If the change is worth it, accept the number: {ACCEPT}=1 cargo test --workspace {test}"
        ),
    }
}

/// Compares a number with the accepted one. Returns what to say, as an error if the number grew too much.
fn verdict(accepted: &str, counted: u64) -> Result<String, String> {
    let Ok(number) = accepted.parse::<u64>() else {
        return Err(format!("{counted} instructions, and no number was accepted yet"));
    };
    let words = format!("{counted} instructions, {number} were accepted");
    if counted > number + number * PERCENT / 100 { Err(words) } else { Ok(words) }
}

/// Returns what the number of instructions depends on besides the code; `None` without valgrind.
fn circumstances() -> Option<String> {
    let first_line = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
    };
    let valgrind = first_line("valgrind")?;
    let others = ["rustc", "ldd"].map(|program| first_line(program).unwrap_or_default());
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    Some(format!("{}, {}, {valgrind}, {}, {profile}", others[0], others[1], env::consts::ARCH))
}

/// Runs a test of this program under callgrind. Returns how many instructions the whole run took.
fn count(test: &str, times: u64) -> Result<u64, String> {
    let program: PathBuf = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--"])
        .arg(program)
        .args([test, "--exact", "--test-threads=1"])
        .env(TIMES, times.to_string())
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let [ran, words] = [String::from_utf8_lossy(&output.stdout), said.clone()];
    if !output.status.success() || !ran.contains("1 passed") {
        return Err(format!("{ran}\n{words}"));
    }
    collected(&said).ok_or_else(|| words.into_owned())
}

/// Reads the number in what callgrind says at the end: `==7== Collected : 123`.
fn collected(said: &str) -> Option<u64> {
    let (_, number) = said.lines().rev().find_map(|line| line.split_once("Collected : "))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 1234\n==7== \n==7== I   refs:      1,234\n";
        assert_eq!(collected(said), Some(1234));
        assert_eq!(collected("==7== \n"), None);
    }

    #[test]
    fn a_number_may_grow_by_five_percent() {
        let check = |accepted: &str, expect: Result<&str, &str>| {
            let expect = expect.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(verdict(accepted, 105), expect);
        };
        check("100", Ok("105 instructions, 100 were accepted"));
        check("99", Err("105 instructions, 99 were accepted"));
        check("", Err("105 instructions, and no number was accepted yet"));
    }

    #[test]
    fn the_instructions_of_a_sum_are_counted() {
        guard("sum", "tests::the_instructions_of_a_sum_are_counted", 100_000, |times| {
            let sum = (0..times).fold(0_u64, |sum, next| std::hint::black_box(sum).wrapping_add(next));
            std::hint::black_box(sum);
        });
    }
}
