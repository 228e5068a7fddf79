//! DOCX, PPTX, ODT and ODP: archives of XML.

use super::archive::Archive;
use super::sink::Sink;
use super::xml::{Mark, WhiteSpace, attributes, write_text};
use super::{Completeness, Stop};

/// Reads a DOCX file: the document, then its footnotes and endnotes.
pub(super) fn read_word(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut archive = Archive::open(bytes)?;
    // Some writers number it.
    let main = archive
        .find(|name| name.starts_with("word/document") && name.ends_with(".xml"))
        .ok_or_else(|| Stop::unreadable("no document in the archive"))?;
    write_text(&archive.require(&main)?, WhiteSpace::Kept, office_mark, sink)?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(xml) = archive.read(notes)? {
            write_text(&xml, WhiteSpace::Kept, office_mark, sink)?;
        }
    }
    Ok(Completeness::Whole)
}

/// Reads the slides of a PPTX file in the order in which they are shown.
pub(super) fn read_slides(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut archive = Archive::open(bytes)?;
    let order = attributes(&archive.require("ppt/presentation.xml")?, "sldId", ["r:id"])?;
    let relationships = archive.require("ppt/_rels/presentation.xml.rels")?;
    let relationships = attributes(&relationships, "Relationship", ["Id", "Target"])?;
    let mut completeness = Completeness::Whole;
    for [slide] in order {
        let target = relationships.iter().find_map(|[id, target]| target.as_ref().filter(|_| *id == slide));
        let xml = match target {
            Some(target) => archive.read(&slide_path(target))?,
            None => None,
        };
        let Some(xml) = xml else {
            completeness = Completeness::PartsUnreadable;
            continue;
        };
        write_text(&xml, WhiteSpace::Kept, office_mark, sink)?;
        sink.blank_line()?;
    }
    Ok(completeness)
}

/// Targets are relative to the folder of the presentation, or absolute in the archive.
fn slide_path(target: &str) -> String {
    target.strip_prefix('/').map_or_else(|| format!("ppt/{target}"), str::to_owned)
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
        // Properties define tab stops with the same name; a fallback says again what the choice before it said.
        "pPr" | "rPr" | "Fallback" => Mark::Skip,
        _ => Mark::Other,
    }
}

fn open_document_mark(element: &str) -> Mark {
    match element {
        "p" | "h" => Mark::TextLine,
        "page" => Mark::Line,
        "table-row" => Mark::Row,
        "table-cell" => Mark::Cell,
        "tab" => Mark::Tab,
        "s" => Mark::Space,
        "line-break" => Mark::Break,
        "tracked-changes" => Mark::Skip,
        _ => Mark::Other,
    }
}
