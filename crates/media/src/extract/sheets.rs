//! Reads workbooks: the name of each sheet, then its rows, with tabs between cells.

use std::fmt::Write as _;
use std::io::Cursor;

use calamine::{Data, ExcelDateTime, Ods, Reader as _, Sheets, Xls, XlsError, Xlsb, Xlsx, XlsxError};

use super::archive::Archive;
use super::sink::Sink;
use super::{Completeness, Stop};

/// Maximum number of tabs for consecutive empty cells. Without a maximum, a single cell in the last column would cause
/// thousands of tabs. Gaps in real tables are not wider than this maximum.
const MAX_GAP: u32 = 64;

/// Reads the values of all sheets, and leaves out sheets that cannot be read.
pub(super) fn read(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut workbook = open(bytes)?;
    let mut completeness = Completeness::Whole;
    for name in workbook.sheet_names() {
        writeln!(sink, "{}", one_line(&name))?;
        match read_sheet(&mut workbook, &name, sink) {
            Ok(()) => {}
            Err(Stop::Unreadable(_)) => completeness = Completeness::PartsUnreadable,
            Err(stop) => return Err(stop),
        }
        sink.blank_line()?;
    }
    Ok(completeness)
}

/// Opens a workbook. Determines the format from the content of the file. The declared format is often that of another
/// spreadsheet program.
fn open(bytes: &[u8]) -> Result<Sheets<Cursor<&[u8]>>, Stop> {
    let file = Cursor::new(bytes);
    if !bytes.starts_with(b"PK") {
        // An XLSX file with a password has the same container as an XLS file. So check for a password before the file
        // is read as XLS.
        if matches!(Xlsx::new(file.clone()), Err(XlsxError::Password)) {
            return Err(Stop::Encrypted);
        }
        return match Xls::new(file) {
            Ok(workbook) => Ok(Sheets::Xls(workbook)),
            Err(XlsError::Password) => Err(Stop::Encrypted),
            Err(error) => Err(Stop::unreadable(error)),
        };
    }
    let archive = Archive::open(bytes)?;
    let has = |wanted: &str| archive.find(|name| name.eq_ignore_ascii_case(wanted)).is_some();
    let (is_xlsx, is_xlsb) = (has("xl/workbook.xml"), has("xl/workbook.bin"));
    archive.check()?;
    Ok(match (is_xlsx, is_xlsb) {
        (true, _) => Sheets::Xlsx(Xlsx::new(file).map_err(Stop::unreadable)?),
        (false, true) => Sheets::Xlsb(Xlsb::new(file).map_err(Stop::unreadable)?),
        (false, false) => Sheets::Ods(Ods::new(file).map_err(Stop::unreadable)?),
    })
}

fn read_sheet(workbook: &mut Sheets<Cursor<&[u8]>>, name: &str, sink: &mut Sink) -> Result<(), Stop> {
    let mut position = Position::default();
    // Read XLSX, the most common format, cell by cell. Do not read the sheet as a range: a range contains all empty
    // cells. If a sheet uses only two opposite corners, these are billions of cells.
    if let Sheets::Xlsx(workbook) = workbook {
        let mut cells = workbook.worksheet_cells_reader(name).map_err(Stop::unreadable)?;
        while let Some(cell) = cells.next_cell().map_err(Stop::unreadable)? {
            let (row, column) = cell.get_position();
            position.write_cell(row, column, &Data::from(cell.get_value().clone()), sink)?;
        }
        return Ok(());
    }
    let range = workbook.worksheet_range(name).map_err(Stop::unreadable)?;
    for (row, column, value) in range.used_cells() {
        let (Ok(row), Ok(column)) = (u32::try_from(row), u32::try_from(column)) else {
            return Err(Stop::unreadable("the row or column number of a cell is too large"));
        };
        position.write_cell(row, column, value, sink)?;
    }
    Ok(())
}

/// The position of the cell that was written last.
#[derive(Default)]
struct Position {
    row: u32,
    column: u32,
}

impl Position {
    fn write_cell(&mut self, row: u32, column: u32, value: &Data, sink: &mut Sink) -> Result<(), Stop> {
        if *value == Data::Empty {
            return Ok(());
        }
        if row != self.row {
            sink.fresh_line()?;
            *self = Self { row, column: 0 };
        }
        for _ in 0..column.saturating_sub(self.column).min(MAX_GAP) {
            sink.write_char('\t')?;
        }
        self.column = column;
        match value {
            Data::DateTime(time) => write_time(time, sink),
            value => Ok(sink.write_str(&one_line(&value.to_string()))?),
        }
    }
}

fn write_time(time: &ExcelDateTime, sink: &mut Sink) -> Result<(), Stop> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    if time.is_duration() {
        return Ok(write!(sink, "{} s", (time.as_f64() * SECONDS_PER_DAY).round())?);
    }
    let (year, month, day, hours, minutes, seconds, _) = time.to_ymd_hms_milli();
    let has_date = time.as_f64() >= 1.0;
    let has_time = (hours, minutes, seconds) != (0, 0, 0);
    if has_date {
        write!(sink, "{year:04}-{month:02}-{day:02}")?;
    }
    if has_date && has_time {
        sink.write_char(' ')?;
    }
    if has_time || !has_date {
        write!(sink, "{hours:02}:{minutes:02}:{seconds:02}")?;
    }
    Ok(())
}

/// Replaces line breaks and tabs in a cell with spaces, because each of them would begin another cell or line.
fn one_line(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}
