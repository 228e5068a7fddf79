//! Reads files from a zip archive, up to a total number of bytes.

use std::io::{Cursor, Read as _, copy, sink};

use percent_encoding::percent_decode_str;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::Stop;

/// Maximum number of bytes that are unpacked from one archive. The unpacked bytes are counted, because the sizes that
/// the archive declares may be wrong.
const MAX_INFLATED_BYTES: u64 = 256 * 1024 * 1024;

/// Limit for the number of files in an archive.
const MAX_ENTRIES: usize = 100_000;

pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    bytes_left: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, Stop> {
        // An Office file with a password is not a zip archive. It is in OLE, the container format of older Office
        // files. The first bytes show this.
        const OLE_SIGNATURE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0];
        if bytes.starts_with(OLE_SIGNATURE) {
            return Err(Stop::Encrypted);
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(stop)?;
        if zip.len() > MAX_ENTRIES {
            return Err(Stop::InflatesTooMuch);
        }
        Ok(Self { zip, bytes_left: MAX_INFLATED_BYTES })
    }

    /// Returns the name of the first file that meets the condition.
    pub(super) fn find(&self, condition: impl Fn(&str) -> bool) -> Option<String> {
        self.zip.file_names().filter_map(Result::ok).find(|name| condition(name)).map(Into::into)
    }

    /// Reads a file; returns `None` if the archive has no file with this name.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Stop> {
        let file = match self.zip.by_name(name) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(stop(error)),
        };
        let mut content = Vec::new();
        file.take(self.bytes_left + 1).read_to_end(&mut content).map_err(Stop::unreadable)?;
        self.bytes_left = u64::try_from(content.len())
            .ok()
            .and_then(|length| self.bytes_left.checked_sub(length))
            .ok_or(Stop::InflatesTooMuch)?;
        Ok(Some(content))
    }

    /// Reads a file that the archive must contain.
    pub(super) fn require(&mut self, name: &str) -> Result<Vec<u8>, Stop> {
        self.read(name)?.ok_or_else(|| Stop::unreadable(format_args!("the archive has no file {name}")))
    }

    /// Checks the limits: unpacks every file once. A library that has no limits may read the archive only after this
    /// check.
    pub(super) fn check(mut self) -> Result<(), Stop> {
        for index in 0..self.zip.len() {
            let file: ZipFile<'_, _> = self.zip.by_index(index).map_err(stop)?;
            let length = copy(&mut file.take(self.bytes_left + 1), &mut sink()).map_err(Stop::unreadable)?;
            self.bytes_left = self.bytes_left.checked_sub(length).ok_or(Stop::InflatesTooMuch)?;
        }
        Ok(())
    }
}

fn stop(error: ZipError) -> Stop {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Stop::Encrypted,
        error => Stop::unreadable(error),
    }
}

/// Takes a reference that the file at path `file` contains. Converts it to a path from the root of the archive.
pub(super) fn path_beside(file: &str, reference: &str) -> String {
    let reference = percent_decode_str(reference).decode_utf8_lossy();
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = Vec::new();
    // A reference that begins with a slash is relative to the root of the archive.
    let folder = if reference.starts_with('/') { "" } else { folder };
    for part in folder.split('/').chain(reference.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, reference: &str, expect: &str) {
        assert_eq!(path_beside(file, reference), expect);
    }

    #[test]
    fn references_are_relative_to_the_file() {
        check("content.opf", "a.xhtml", "a.xhtml");
        check("OEBPS/content.opf", "a.xhtml", "OEBPS/a.xhtml");
        check("OEBPS/content.opf", "text/a%20b.xhtml", "OEBPS/text/a b.xhtml");
        check("OEBPS/package/content.opf", "../text/./a.xhtml", "OEBPS/text/a.xhtml");
        check("content.opf", "../../a.xhtml", "a.xhtml");
        check("ppt/presentation.xml", "/ppt/slides/slide1.xml", "ppt/slides/slide1.xml");
    }
}
