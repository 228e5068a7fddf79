//! Lays out a table in the width of a terminal: columns share the width, and cells are broken into lines. If the
//! columns would become too narrow to read, each row is written as a list of names and values.

use super::wrap::{LongWords, Piece, lines, measured, natural_width, painted};
use crate::output::table::DIM;
use pulldown_cmark::Alignment;

/// The separator between two columns.
const BAR: &str = " │ ";
const BAR_WIDTH: usize = 3;
/// Minimum width of a column that people can still read, in columns of the terminal.
const NARROWEST: usize = 6;

/// The cells of a table, row by row; the first row is the head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Piece>>>,
    row: Vec<Vec<Piece>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn add(&mut self, cell: Vec<Piece>) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        if self.rows.is_empty() {
            for piece in row.iter_mut().flatten() {
                piece.style = piece.style.bold();
            }
        }
        self.rows.push(row);
    }

    /// Returns the lines of the table. A line is wider than `width` only if a single word is wider.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let columns = self.alignments.len();
        let natural: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| natural_width(cell)).max()
            })
            .map(|width| width.unwrap_or_default().max(1))
            .collect();
        let bars = BAR_WIDTH * columns.saturating_sub(1);
        match shared(&natural, width.saturating_sub(bars)) {
            Some(widths) => self.grid(&widths),
            None => self.records(width),
        }
    }

    fn grid(&self, widths: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            lines.extend(self.row(row, widths));
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(painted(DIM, &rule.join("─┼─")));
            }
        }
        lines
    }

    fn row(&self, row: &[Vec<Piece>], widths: &[usize]) -> Vec<String> {
        let cells: Vec<Vec<(String, usize)>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                row.get(column).map_or_else(Vec::new, |cell| measured(cell, *width, LongWords::Broken))
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let bar = painted(DIM, BAR);
        (0..height)
            .map(|line| {
                let parts = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
                    let (text, taken) =
                        cell.get(line).map_or(("", 0), |(text, taken)| (text.as_str(), *taken));
                    self.padded(column, text, width.saturating_sub(taken))
                });
                parts.collect::<Vec<_>>().join(&bar)
            })
            .collect()
    }

    fn padded(&self, column: usize, text: &str, free: usize) -> String {
        let before = match self.alignments.get(column) {
            Some(Alignment::Right) => free,
            Some(Alignment::Center) => free / 2,
            Some(Alignment::Left | Alignment::None) | None => 0,
        };
        format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
    }

    /// Writes each row as lines of the form `name: value`.
    fn records(&self, width: usize) -> Vec<String> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut all = Vec::new();
        for row in rows {
            if !all.is_empty() {
                all.push(painted(DIM, "─"));
            }
            for (column, cell) in row.iter().enumerate() {
                let mut pieces = head.get(column).cloned().unwrap_or_default();
                if let Some(style) = pieces.last().map(|piece| piece.style) {
                    pieces.push(Piece { style, text: ": ".to_owned() });
                }
                pieces.extend(cell.iter().cloned());
                all.extend(lines(&pieces, width, LongWords::Whole));
            }
        }
        all
    }
}

/// Shares a width among the columns of a table. A column that needs less than an equal share gets what it needs; the
/// other columns share the rest. Returns nothing if a column would become narrower than [`NARROWEST`].
fn shared(natural: &[usize], width: usize) -> Option<Vec<usize>> {
    if natural.iter().sum::<usize>() <= width {
        return Some(natural.to_vec());
    }
    let mut sorted: Vec<usize> = natural.to_vec();
    sorted.sort_unstable();
    let (mut left, mut columns) = (width, natural.len());
    let mut share = 0;
    for need in sorted {
        share = left / columns;
        if need > share {
            break;
        }
        left -= need;
        columns -= 1;
    }
    (share >= NARROWEST).then(|| natural.iter().map(|need| (*need).min(share)).collect())
}
