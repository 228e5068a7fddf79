//! EPUB: an archive of XHTML files, with a list that specifies their order.

use std::collections::HashSet;

use super::archive::{Archive, path_beside};
use super::sink::Sink;
use super::xml::{Mark, WhiteSpace, attributes, write_text};
use super::{Completeness, Stop};

/// Reads the chapters of a book in their order.
pub(super) fn read(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut archive = Archive::open(bytes)?;
    let roots = attributes(&archive.require("META-INF/container.xml")?, "rootfile", ["full-path"])?;
    let package_path = roots
        .into_iter()
        .find_map(|[path]| path)
        .ok_or_else(|| Stop::unreadable("the container names no package"))?;
    let package = archive.require(&package_path)?;
    // The book is refused only if a chapter is encrypted. In many books, only fonts are encrypted.
    let encryption = archive.read("META-INF/encryption.xml")?.unwrap_or_default();
    let encrypted = attributes(&encryption, "CipherReference", ["URI"])?;
    let encrypted: HashSet<String> =
        encrypted.into_iter().flatten().flatten().map(|uri| path_beside("", &uri)).collect();
    let items = attributes(&package, "item", ["id", "href"])?;
    let mut completeness = Completeness::Whole;
    for [chapter] in attributes(&package, "itemref", ["idref"])? {
        let href = items.iter().find_map(|[id, href]| href.as_ref().filter(|_| *id == chapter));
        let path = href.map(|href| path_beside(&package_path, href));
        let xml = match path {
            Some(path) if encrypted.contains(&path) => return Err(Stop::Encrypted),
            Some(path) => archive.read(&path)?,
            None => None,
        };
        let Some(xml) = xml else {
            completeness = Completeness::PartsUnreadable;
            continue;
        };
        match write_text(&xml, WhiteSpace::Collapsed, mark, sink) {
            Ok(()) => sink.blank_line()?,
            Err(Stop::Unreadable(_)) => completeness = Completeness::PartsUnreadable,
            Err(stop) => return Err(stop),
        }
    }
    Ok(completeness)
}

fn mark(element: &str) -> Mark {
    match element {
        "body" => Mark::Text,
        "p" | "div" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" | "ul" | "ol" | "dl" | "dt" | "dd"
        | "section" | "article" | "aside" | "nav" | "header" | "footer" | "blockquote" | "figure"
        | "figcaption" | "pre" | "table" | "hr" => Mark::Line,
        "tr" => Mark::Row,
        "td" | "th" => Mark::Cell,
        "br" => Mark::Break,
        "head" | "script" | "style" => Mark::Skip,
        _ => Mark::Other,
    }
}
