//! EPUB: an archive of XHTML with a list that says the order.

use percent_encoding::percent_decode_str;

use super::archive::Archive;
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
    let items = attributes(&package, "item", ["id", "href"])?;
    let mut completeness = Completeness::Whole;
    for [chapter] in attributes(&package, "itemref", ["idref"])? {
        let href = items.iter().find_map(|[id, href]| href.as_ref().filter(|_| *id == chapter));
        let xml = match href {
            Some(href) => archive.read(&path_beside(&package_path, href))?,
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

/// The path in the archive of what a file refers to.
fn path_beside(file: &str, reference: &str) -> String {
    let reference = percent_decode_str(reference).decode_utf8_lossy();
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = Vec::new();
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
    }
}
