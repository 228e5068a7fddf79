//! The width of the terminal for which status lines and tables are laid out.

use std::io::IsTerminal;

/// Minimum width for which lines are broken, in columns. A narrower terminal wraps the lines itself.
const NARROWEST: usize = 20;

/// Returns the width of standard output, if it is a terminal that reports its width.
pub(crate) fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let columns = crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    columns.filter(|columns| *columns > 0).map(|columns| columns.max(NARROWEST))
}
