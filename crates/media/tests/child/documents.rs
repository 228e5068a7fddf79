//! Builds minimal documents of each format.

use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub(crate) const PDF: &str = "application/pdf";
pub(crate) const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
pub(crate) const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
pub(crate) const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
pub(crate) const ODT: &str = "application/vnd.oasis.opendocument.text";
pub(crate) const ODS: &str = "application/vnd.oasis.opendocument.spreadsheet";
pub(crate) const EPUB: &str = "application/epub+zip";
pub(crate) const ODP: &str = "application/vnd.oasis.opendocument.presentation";
pub(crate) const RTF: &str = "application/rtf";

pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A PDF with these objects. The first object must be the catalogue.
pub(crate) fn pdf_of(objects: &[String]) -> Vec<u8> {
    pdf_with_trailer(objects, "")
}

pub(crate) fn pdf_with_trailer(objects: &[String], trailer: &str) -> Vec<u8> {
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(pdf.len());
        write!(pdf, "{} 0 obj\n{object}\nendobj\n", index + 1).unwrap();
    }
    let start = pdf.len();
    write!(pdf, "xref\n0 {}\n0000000000 65535 f \n", offsets.len() + 1).unwrap();
    for offset in &offsets {
        writeln!(pdf, "{offset:010} 00000 n ").unwrap();
    }
    let size = offsets.len() + 1;
    write!(pdf, "trailer\n<</Size {size}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n").unwrap();
    pdf
}

pub(crate) fn pdf(lines: &[&str]) -> Vec<u8> {
    pdf_of(&page(lines))
}

/// The objects of a PDF whose only page contains these lines.
pub(crate) fn page(lines: &[&str]) -> Vec<String> {
    let mut drawing = "BT /F1 12 Tf 72 720 Td".to_owned();
    for line in lines {
        drawing.push_str(&format!(" ({line}) Tj 0 -14 Td"));
    }
    drawing.push_str(" ET");
    vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
            .to_owned(),
        format!("<</Length {}>>\nstream\n{drawing}\nendstream", drawing.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ]
}

pub(crate) fn docx(body: &str) -> Vec<u8> {
    archive(&[(
        "word/document.xml",
        &format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>"),
    )])
}

pub(crate) fn xlsx() -> Vec<u8> {
    archive(&[
        (
            "_rels/.rels",
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        (
            "xl/workbook.xml",
            r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="收入" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>"#,
        ),
        (
            "xl/styles.xml",
            r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>"#,
        ),
        (
            "xl/worksheets/sheet1.xml",
            r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>month</t></is></c><c r="C1" t="inlineStr"><is><t>sum</t></is></c></row><row r="2"><c r="A2" s="1"><v>45943</v></c><c r="C2"><v>1234.5</v></c></row><row r="1048576"><c r="XFD1048576"><v>7</v></c></row></sheetData></worksheet>"#,
        ),
    ])
}

/// A presentation that stores its last slide in its first file. Only the last slide has notes with text.
pub(crate) fn pptx() -> Vec<u8> {
    let slide = |text: &str| {
        format!("<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>")
    };
    archive(&[
        (
            "ppt/presentation.xml",
            "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='rId2'/><p:sldId id='257' r:id='rId1'/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id='rId1' Target='slides/slide1.xml'/><Relationship Id='rId2' Target='/ppt/slides/slide2.xml'/></Relationships>",
        ),
        ("ppt/slides/slide1.xml", &slide("shown last")),
        (
            "ppt/slides/_rels/slide1.xml.rels",
            "<Relationships><Relationship Id='rId1' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/slideLayout' Target='../slideLayouts/slideLayout1.xml'/><Relationship Id='rId2' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/notesSlide' Target='../notesSlides/notesSlide7.xml'/></Relationships>",
        ),
        (
            "ppt/notesSlides/notesSlide7.xml",
            "<p:notes xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>说慢一点</a:t></a:r></a:p><a:p><a:r><a:t>and thank</a:t></a:r></a:p><a:p><a:fld type='slidenum'><a:t>2</a:t></a:fld></a:p></p:notes>",
        ),
        ("ppt/slides/slide2.xml", &slide("shown first")),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            "<Relationships><Relationship Id='rId1' Type='http://purl.oclc.org/ooxml/officeDocument/relationships/notesSlide' Target='../notesSlides/notesSlide8.xml'/></Relationships>",
        ),
        ("ppt/notesSlides/notesSlide8.xml", "<p:notes xmlns:p='p' xmlns:a='a'><a:p/></p:notes>"),
    ])
}

/// An OpenDocument file with this body: a text, a sheet or a presentation.
pub(crate) fn open_document(body: &str) -> Vec<u8> {
    let content = format!(
        "<office:document-content xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' \
         xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0' \
         xmlns:table='urn:oasis:names:tc:opendocument:xmlns:table:1.0' \
         xmlns:presentation='urn:oasis:names:tc:opendocument:xmlns:presentation:1.0' \
         xmlns:draw='urn:oasis:names:tc:opendocument:xmlns:drawing:1.0'><office:body>{body}</office:body></office:document-content>"
    );
    archive(&[
        ("mimetype", ODS),
        ("content.xml", &content),
        ("META-INF/manifest.xml", "<manifest:manifest xmlns:manifest='m'/>"),
    ])
}

pub(crate) const TABLE: &str = "<office:spreadsheet><table:table table:name='T'><table:table-row><table:table-cell office:value-type='string'><text:p>a</text:p></table:table-cell><table:table-cell office:value-type='float' office:value='2'><text:p>2</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>";

/// A book of two chapters. `encryption` is the content of the file that lists what is encrypted.
pub(crate) fn epub(encryption: &str) -> Vec<u8> {
    archive(&[
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path='OEBPS/content.opf'/></rootfiles></container>",
        ),
        ("META-INF/encryption.xml", encryption),
        (
            "OEBPS/content.opf",
            "<package><manifest><item id='b' href='b.xhtml'/><item id='a' href='text/a%20a.xhtml'/></manifest><spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
        ),
        ("OEBPS/b.xhtml", "<html><body><p>second</p></body></html>"),
        (
            "OEBPS/text/a a.xhtml",
            "<html><head><title>no</title><style>p{}</style></head><body><h1>第一章</h1>\n<p>first\n <b>bold</b>&nbsp;text<br/>next</p></body></html>",
        ),
    ])
}

pub(crate) const LETTER: &[u8] =
    br"{\rtf1\ansi\ansicpg936{\fonttbl{\f0\fcharset134 SimSun;}}\f0 \'c4\'e3\'ba\'c3\par a {\b letter}.}";

/// One document of each format, with its MIME type.
pub(crate) fn one_of_each() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (PDF, pdf(&["Hello, world", "second line"])),
        (DOCX, docx("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>")),
        (PPTX, pptx()),
        (XLSX, xlsx()),
        (ODT, open_document("<office:text><text:p>Hello</text:p></office:text>")),
        (ODS, open_document(TABLE)),
        (
            ODP,
            open_document(
                "<office:presentation><draw:page><text:p>Hello</text:p></draw:page></office:presentation>",
            ),
        ),
        (EPUB, epub("")),
        (RTF, LETTER.to_vec()),
    ]
}
