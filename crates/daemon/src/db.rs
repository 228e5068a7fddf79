//! `polity db check` and `polity db backup`: both also work while a society is running in the data directory.

use crate::failure::{Failure, USAGE};
use crate::output::bytes;
use crate::output::{Elapsed, complain, print};
use crate::places::{self, Care};
use crate::suggested::repeating;
use clap::Subcommand;
use polity_store::maintenance::{self, Amount, Checked, Damage, Rows};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// `polity db`
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Read all stored data and print what is damaged; exits with 2 if there is damage. A daemon may be running.
    Check {
        /// The data directory of the society [default: `polity` in your user data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Copy all stored data, as it is at this moment, into a new directory. A daemon may be running.
    ///
    /// The copy is a data directory like any other: `polity run --data` accepts it. Exits with 2 if something could not
    /// be copied.
    Backup {
        /// The directory to create; it must not exist yet.
        #[arg(value_name = "BACKUP")]
        to: PathBuf,
        /// The data directory of the society [default: `polity` in your user data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(command: DbCommand) -> Result<u8, Failure> {
    match command {
        DbCommand::Check { data } => check(data).await,
        DbCommand::Backup { to, data } => back_up(data, &to).await,
    }
}

/// Prints each damaged part of the stored data, and whether the stored data as a whole are in order.
async fn check(data: Option<PathBuf>) -> Result<u8, Failure> {
    let data = places::cared_for(data, Care::Look)?;
    let checking = Elapsed::begin("checking the data");
    let checked = maintenance::check(&data.path).await?;
    drop(checking);
    tell(&checked.damage);
    print(&repeating(&summary(&data.path, &checked)))?;
    Ok(if checked.damage.is_empty() { 0 } else { USAGE })
}

/// Copies all undamaged stored data into a new directory, and prints which parts of the data are damaged.
async fn back_up(data: Option<PathBuf>, to: &Path) -> Result<u8, Failure> {
    let data = places::cared_for(data, Care::Look)?;
    let copying = Elapsed::begin("copying the data");
    let done = maintenance::back_up(&data.path, to).await?;
    drop(copying);
    tell(&done.damage);
    let (database, stored) = (bytes(done.database), files(done.stored));
    let missing = match done.damage.len() {
        0 => String::new(),
        count => format!("; damaged and not in it: {count}"),
    };
    print(&format!("{}: database: {database}; artifacts: {stored}{missing}", to.display()))?;
    Ok(if done.damage.is_empty() { 0 } else { USAGE })
}

fn tell(damage: &[Damage]) {
    for damage in damage {
        complain(&damage.to_string());
    }
}

fn summary(data: &Path, checked: &Checked) -> String {
    let mut summary = match checked.damage.len() {
        0 => format!("{}: good", data.display()),
        count => format!("{}: damaged; problems: {count}", data.display()),
    };
    let rows = match checked.rows {
        Rows::Read(count) => format!("rows: {count}"),
        Rows::OfOlderSchema => "rows: not read, because an older polity wrote them".to_owned(),
        Rows::Unreadable => "rows: not read".to_owned(),
    };
    // Writing to a string cannot fail, so the result is ignored.
    let _ = write!(summary, "; {rows}; artifacts: {}", files(checked.stored));
    if checked.unneeded.files > 0 {
        let _ =
            write!(summary, "; of these not needed: {} (`polity gc` removes them)", files(checked.unneeded));
    }
    summary
}

/// Formats a number of files and their size, such as `3 files, 12.3 kB`.
pub(crate) fn files(amount: Amount) -> String {
    let plural = if amount.files == 1 { "" } else { "s" };
    format!("{} file{plural}, {}", amount.files, bytes(amount.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let check = |checked: &Checked, expect: &str| assert_eq!(summary(Path::new("data"), checked), expect);
        let stored = Amount { files: 3, bytes: 12_345 };
        let good = Checked { damage: Vec::new(), rows: Rows::Read(42), stored, unneeded: Amount::default() };
        check(&good, "data: good; rows: 42; artifacts: 3 files, 12.3 kB");
        let unneeded = Amount { files: 1, bytes: 5 };
        check(
            &Checked { unneeded, rows: Rows::OfOlderSchema, ..good.clone() },
            "data: good; rows: not read, because an older polity wrote them; artifacts: 3 files, 12.3 kB; \
             of these not needed: 1 file, 5 bytes (`polity gc` removes them)",
        );
        let damage = vec![Damage { place: "polity.db", what: "file is not a database".to_owned() }];
        check(
            &Checked { damage, rows: Rows::Unreadable, ..good },
            "data: damaged; problems: 1; rows: not read; artifacts: 3 files, 12.3 kB",
        );
    }
}
