//! `polity completions` and `polity man`: shell completions and manual pages, generated from the command line.

use crate::cli;
use crate::failure::Failure;
use crate::output::complain;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;

/// Prints the completion script for a shell; returns the exit code.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::Arguments::command(), "polity", &mut script);
    write_out(&script)
}

/// Prints the manual page of polity, or writes the pages of all commands into a directory; returns the exit code.
pub(crate) fn man(dir: Option<&Path>) -> Result<u8, Failure> {
    let mut command = cli::Arguments::command();
    command.build();
    let Some(dir) = dir else {
        return write_out(&page(command)?);
    };
    let unwritable = |source| Failure::Unwritable { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(unwritable)?;
    let mut pages = 0_u32;
    let mut open = vec![("polity".to_owned(), command)];
    while let Some((name, command)) = open.pop() {
        let below =
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        open.extend(below.map(|below| (format!("{name}-{}", below.get_name()), below.clone())));
        let path = dir.join(format!("{name}.1"));
        let page = page(command)?;
        std::fs::write(&path, page).map_err(|source| Failure::Unwritable { path, source })?;
        pages += 1;
    }
    complain(&format!("{}: {pages} pages; read the first with: man -l {0}/polity.1", dir.display()));
    Ok(0)
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| Failure::Defect(error.to_string()))?;
    Ok(page)
}

fn write_out(bytes: &[u8]) -> Result<u8, Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::of_output)?;
    Ok(0)
}
