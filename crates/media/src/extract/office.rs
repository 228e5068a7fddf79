//! DOCX, PPTX, ODT and ODP: archives of XML.

use std::collections::HashMap;

use super::archive::{Archive, path_beside};
use super::sink::Sink;
use super::xml::{Mark, NOTES, WhiteSpace, attributes, write_text};
use super::{Completeness, Stop};

/// Reads a DOCX file: the document, then its footnotes and endnotes.
pub(super) fn read_word(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut archive = Archive::open(bytes)?;
    // Some programs add a number to the name of this file, as in `word/document2.xml`.
    let main = archive
        .find(|name| name.starts_with("word/document") && name.ends_with(".xml"))
        .ok_or_else(|| Stop::unreadable("the archive has no document"))?;
    write_text(&archive.require(&main)?, WhiteSpace::Kept, office_mark, sink)?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(xml) = archive.read(notes)? {
            write_text(&xml, WhiteSpace::Kept, office_mark, sink)?;
        }
    }
    Ok(Completeness::Whole)
}

/// Reads the slides of a PPTX file in the order of the presentation, each with its notes.
pub(super) fn read_slides(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    const PRESENTATION: &str = "ppt/presentation.xml";
    let mut archive = Archive::open(bytes)?;
    let order = attributes(&archive.require(PRESENTATION)?, "sldId", ["r:id"])?;
    let relationships = archive.require(&relationships_of(PRESENTATION))?;
    let relationships = attributes(&relationships, "Relationship", ["Id", "Target"])?;
    let targets: HashMap<&str, &str> =
        relationships.iter().filter_map(|[id, target]| Some((id.as_deref()?, target.as_deref()?))).collect();
    let mut completeness = Completeness::Whole;
    for [slide] in order {
        let path = slide
            .and_then(|slide| targets.get(slide.as_str()).map(|target| path_beside(PRESENTATION, target)));
        let xml = match &path {
            Some(path) => archive.read(path)?,
            None => None,
        };
        let (Some(path), Some(xml)) = (path, xml) else {
            completeness = Completeness::PartsUnreadable;
            continue;
        };
        write_text(&xml, WhiteSpace::Kept, office_mark, sink)?;
        if let Some(xml) = notes_of(&path, &mut archive)? {
            let part = sink.open_part(NOTES)?;
            write_text(&xml, WhiteSpace::Kept, notes_mark, sink)?;
            sink.close_part(part)?;
        }
        sink.blank_line()?;
    }
    Ok(completeness)
}

/// Reads the file with the notes to a slide. Returns `None` if the slide has no notes.
fn notes_of(slide: &str, archive: &mut Archive<'_>) -> Result<Option<Vec<u8>>, Stop> {
    let Some(relationships) = archive.read(&relationships_of(slide))? else { return Ok(None) };
    let relationships = attributes(&relationships, "Relationship", ["Type", "Target"])?;
    let target = relationships.into_iter().find_map(|[kind, target]| {
        // Only the end of the type is compared, because its beginning differs between variants of the format.
        if kind?.ends_with("/relationships/notesSlide") { target } else { None }
    });
    match target {
        Some(target) => archive.read(&path_beside(slide, &target)),
        None => Ok(None),
    }
}

/// Returns the path of the file that lists the references of the file at `path`.
fn relationships_of(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    format!("{folder}/_rels/{name}.rels")
}

/// Reads an ODT or ODP file.
pub(super) fn read_open_document(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut archive = Archive::open(bytes)?;
    let manifest = archive.read("META-INF/manifest.xml")?.unwrap_or_default();
    if !attributes(&manifest, "encryption-data", [])?.is_empty() {
        return Err(Stop::Encrypted);
    }
    write_text(&archive.require("content.xml")?, WhiteSpace::Collapsed, open_document_mark, sink)?;
    Ok(Completeness::Whole)
}

fn office_mark(element: &str) -> Mark {
    match element {
        "t" => Mark::Text,
        "p" => Mark::Line,
        "tr" => Mark::Row,
        "tc" => Mark::Cell,
        "tab" => Mark::Tab,
        "br" | "cr" => Mark::Break,
        // Skip three elements. The properties `pPr` and `rPr` contain no text: an element `tab` in them only defines a
        // tab stop. A `Fallback` repeats the content of the `Choice` before it.
        "pPr" | "rPr" | "Fallback" => Mark::Skip,
        _ => Mark::Other,
    }
}

/// Returns the same as [`office_mark`], but skips fields, because fields in notes contain only the number of the
/// slide and the date.
fn notes_mark(element: &str) -> Mark {
    if element == "fld" { Mark::Skip } else { office_mark(element) }
}

fn open_document_mark(element: &str) -> Mark {
    match element {
        "p" | "h" => Mark::TextLine,
        "page" => Mark::Line,
        "notes" => Mark::Notes,
        "table-row" => Mark::Row,
        "table-cell" => Mark::Cell,
        "tab" => Mark::Tab,
        "s" => Mark::Space,
        "line-break" => Mark::Break,
        "tracked-changes" => Mark::Skip,
        _ => Mark::Other,
    }
}
