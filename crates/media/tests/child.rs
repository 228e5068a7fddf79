//! Documents through a real child: this program starts itself again, by its own name or by one that says how to
//! misbehave.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is a test, which clippy does not see without the standard harness"
)]

use std::ffi::OsString;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use bytes::Bytes;
use polity_media::{
    ChildBounds, Completeness, EXTRACT_ARGUMENT, ExtractError, Extracted, child_main, run_child,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const PDF: &str = "application/pdf";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const ODT: &str = "application/vnd.oasis.opendocument.text";
const ODS: &str = "application/vnd.oasis.opendocument.spreadsheet";
const EPUB: &str = "application/epub+zip";

const CASES: u32 = 100;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    if arguments.next().is_some_and(|first| first == EXTRACT_ARGUMENT) {
        return be_child(&program, arguments);
    }
    let tests: [(&str, fn()); 14] = [
        ("the_text_of_a_pdf", the_text_of_a_pdf),
        ("the_text_of_a_docx", the_text_of_a_docx),
        ("the_slides_of_a_pptx_in_their_order", the_slides_of_a_pptx_in_their_order),
        ("the_cells_of_an_xlsx", the_cells_of_an_xlsx),
        ("the_text_of_open_documents", the_text_of_open_documents),
        ("the_chapters_of_an_epub_in_their_order", the_chapters_of_an_epub_in_their_order),
        ("a_long_text_is_cut", a_long_text_is_cut),
        ("what_is_not_readable_says_why", what_is_not_readable_says_why),
        ("a_zip_bomb_is_refused", a_zip_bomb_is_refused),
        ("a_deeply_nested_pdf_is_refused", a_deeply_nested_pdf_is_refused),
        ("a_child_that_misbehaves_is_an_error", a_child_that_misbehaves_is_an_error),
        ("the_child_has_no_files_and_no_environment", the_child_has_no_files_and_no_environment),
        ("random_bytes_never_reach_the_parent", random_bytes_never_reach_the_parent),
        ("damaged_documents_never_reach_the_parent", damaged_documents_never_reach_the_parent),
    ];
    for (name, test) in tests {
        println!("test {name} ...");
        test();
    }
    println!("{} passed", tests.len());
    ExitCode::SUCCESS
}

fn be_child(program: &OsString, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match Path::new(program).file_name().and_then(|name| name.to_str()) {
        Some("hangs") => loop {
            std::thread::park();
        },
        Some("floods") => loop {
            if std::io::stdout().write_all(&[b'a'; 4096]).is_err() {
                return ExitCode::SUCCESS;
            }
        },
        Some("mumbles") => {
            std::io::stdout().write_all(&[0xFF; 16]).unwrap();
            ExitCode::SUCCESS
        }
        Some("panics") => panic!("on purpose"),
        Some("tells") => {
            for (name, _) in std::env::vars_os() {
                println!("{}", name.display());
            }
            child_main(arguments);
            if std::fs::File::open("/dev/null").is_ok() {
                println!("a file");
            }
            ExitCode::SUCCESS
        }
        _ => child_main(arguments),
    }
}

fn bounds() -> ChildBounds {
    ChildBounds { output_chars: 10_000, ..ChildBounds::default() }
}

fn run_with(
    program: &Path,
    bytes: &[u8],
    mime_type: &str,
    bounds: &ChildBounds,
) -> Result<Extracted, ExtractError> {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(run_child(program, Bytes::copy_from_slice(bytes), mime_type, bounds))
}

fn run(bytes: &[u8], mime_type: &str) -> Result<Extracted, ExtractError> {
    run_with(&std::env::current_exe().unwrap(), bytes, mime_type, &bounds())
}

fn check(bytes: &[u8], mime_type: &str, expect: &str) {
    let expect = Extracted { text: expect.to_owned(), completeness: Completeness::Whole };
    assert_eq!(run(bytes, mime_type).unwrap(), expect);
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A PDF of these objects, the first of which is the catalogue.
fn pdf_of(objects: &[String]) -> Vec<u8> {
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
    write!(pdf, "trailer\n<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n", offsets.len() + 1).unwrap();
    pdf
}

fn pdf(lines: &[&str]) -> Vec<u8> {
    let mut drawing = "BT /F1 12 Tf 72 720 Td".to_owned();
    for line in lines {
        drawing.push_str(&format!(" ({line}) Tj 0 -14 Td"));
    }
    drawing.push_str(" ET");
    pdf_of(&[
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
            .to_owned(),
        format!("<</Length {}>>\nstream\n{drawing}\nendstream", drawing.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ])
}

fn docx(body: &str) -> Vec<u8> {
    archive(&[(
        "word/document.xml",
        &format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>"),
    )])
}

fn xlsx() -> Vec<u8> {
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

fn the_text_of_a_pdf() {
    check(&pdf(&["Hello, world", "second line"]), PDF, "Hello, world\nsecond line");
    check(&pdf(&[]), PDF, "");
}

fn the_text_of_a_docx() {
    let body = "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>标题 &amp; more</w:t></w:r></w:p>\
        <w:p><w:r><w:t xml:space='preserve'>one </w:t></w:r><w:r><w:t>two</w:t><w:tab/><w:t>three</w:t></w:r></w:p>\
        <w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
    check(&docx(body), DOCX, "标题 & more\none two\tthree\na \tb");
}

fn the_slides_of_a_pptx_in_their_order() {
    let slide = |text: &str| {
        format!("<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>")
    };
    let files = [
        (
            "ppt/presentation.xml",
            "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='rId2'/><p:sldId id='257' r:id='rId1'/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id='rId1' Target='slides/slide1.xml'/><Relationship Id='rId2' Target='/ppt/slides/slide2.xml'/></Relationships>",
        ),
        ("ppt/slides/slide1.xml", &slide("shown last")),
        ("ppt/slides/slide2.xml", &slide("shown first")),
    ];
    check(&archive(&files), PPTX, "shown first\n\nshown last");
    let without_one = run(&archive(&files[..3]), PPTX).unwrap();
    assert_eq!(without_one.completeness, Completeness::PartsUnreadable);
    assert_eq!(without_one.text, "shown last");
}

fn the_cells_of_an_xlsx() {
    let far_away = "\t".repeat(64);
    check(&xlsx(), XLSX, &format!("收入\nmonth\t\tsum\n2025-10-13\t\t1234.5\n{far_away}7"));
}

fn the_text_of_open_documents() {
    let content = |body: &str| {
        let content = format!(
            "<office:document-content xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' \
             xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0' \
             xmlns:table='urn:oasis:names:tc:opendocument:xmlns:table:1.0'><office:body>{body}</office:body></office:document-content>"
        );
        archive(&[
            ("content.xml", content.as_str()),
            ("META-INF/manifest.xml", "<manifest:manifest xmlns:manifest='m'/>"),
        ])
    };
    let text = "<office:text><text:h>Title</text:h><text:p>one\n   <text:span>two</text:span><text:s/>three<text:line-break/>four</text:p></office:text>";
    check(&content(text), ODT, "Title\none two three\nfour");
    let locked =
        archive(&[("META-INF/manifest.xml", "<m><encryption-data/></m>"), ("content.xml", "garbage")]);
    assert!(matches!(run(&locked, ODT), Err(ExtractError::Encrypted)));

    let table = "<office:spreadsheet><table:table table:name='T'><table:table-row><table:table-cell office:value-type='string'><text:p>a</text:p></table:table-cell><table:table-cell office:value-type='float' office:value='2'><text:p>2</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>";
    let content = format!(
        "<office:document-content xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' xmlns:text='urn:oasis:names:tc:opendocument:xmlns:text:1.0' xmlns:table='urn:oasis:names:tc:opendocument:xmlns:table:1.0'><office:body>{table}</office:body></office:document-content>"
    );
    let ods = archive(&[("mimetype", ODS), ("META-INF/manifest.xml", "<m/>"), ("content.xml", &content)]);
    check(&ods, ODS, "T\na\t2");
}

fn the_chapters_of_an_epub_in_their_order() {
    let book = archive(&[
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path='OEBPS/content.opf'/></rootfiles></container>",
        ),
        (
            "OEBPS/content.opf",
            "<package><manifest><item id='b' href='b.xhtml'/><item id='a' href='text/a%20a.xhtml'/></manifest><spine><itemref idref='a'/><itemref idref='b'/></spine></package>",
        ),
        ("OEBPS/b.xhtml", "<html><body><p>second</p></body></html>"),
        (
            "OEBPS/text/a a.xhtml",
            "<html><head><title>no</title><style>p{}</style></head><body><h1>第一章</h1>\n<p>first\n <b>bold</b>&nbsp;text<br/>next</p></body></html>",
        ),
    ]);
    check(&book, EPUB, "第一章\nfirst bold text\nnext\n\nsecond");
}

fn a_long_text_is_cut() {
    let program = std::env::current_exe().unwrap();
    let bounds = ChildBounds { output_chars: 5, ..bounds() };
    let expect = |text: &str| Extracted { text: text.to_owned(), completeness: Completeness::Cut };
    let document = docx("<w:p><w:r><w:t>一二三四五六</w:t></w:r></w:p>");
    assert_eq!(run_with(&program, &document, DOCX, &bounds).unwrap(), expect("一二三四五"));
    assert_eq!(run_with(&program, &pdf(&["abcdefgh"]), PDF, &bounds).unwrap(), expect("abcde"));
}

fn what_is_not_readable_says_why() {
    assert!(matches!(run(b"text", "text/plain"), Err(ExtractError::Unsupported { .. })));
    assert!(matches!(run(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", DOCX), Err(ExtractError::Encrypted)));
    let Err(ExtractError::Unreadable { reason }) = run(&archive(&[("a", "b")]), DOCX) else {
        panic!("a document was found where there is none");
    };
    assert_eq!(reason, "no document in the archive");
    let small = ChildBounds { memory: 400, ..bounds() };
    let outcome = run_with(Path::new("/nonexistent"), &[0; 101], PDF, &small);
    assert!(matches!(outcome, Err(ExtractError::TooLarge { bytes: 101, max_bytes: 100 })));
    let outcome = run_with(Path::new("/nonexistent"), b"", PDF, &bounds());
    assert!(matches!(outcome, Err(ExtractError::Start(_))));
}

fn a_zip_bomb_is_refused() {
    const MEGABYTE: usize = 1024 * 1024;
    let spaces = " ".repeat(MEGABYTE);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("word/document.xml", SimpleFileOptions::default()).unwrap();
    for _ in 0..300 {
        zip.write_all(spaces.as_bytes()).unwrap();
    }
    let bomb = zip.finish().unwrap().into_inner();
    assert!(bomb.len() < MEGABYTE);
    for mime_type in [DOCX, XLSX] {
        assert!(matches!(run(&bomb, mime_type), Err(ExtractError::InflatesTooMuch)), "{mime_type}");
    }
    // With too little memory for what would be read, the child fails, and nobody else.
    let tight = ChildBounds { memory: 128 * 1024 * 1024, ..bounds() };
    let outcome = run_with(&std::env::current_exe().unwrap(), &bomb, DOCX, &tight);
    assert!(
        matches!(outcome, Err(ExtractError::Unreadable { .. } | ExtractError::Crashed { .. })),
        "{outcome:?}"
    );
}

fn a_deeply_nested_pdf_is_refused() {
    const DEPTH: usize = 200_000;
    let nested = format!("<</Type/Pages/Count 1/Kids{}{}>>", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let outcome = run(&pdf_of(&["<</Type/Catalog/Pages 2 0 R>>".to_owned(), nested]), PDF);
    assert!(is_about_the_document(&outcome) && outcome.is_err(), "{outcome:?}");

    let pages = "<</Type/Pages/Count 1/Kids[2 0 R]/Parent 2 0 R>>".to_owned();
    let outcome = run(&pdf_of(&["<</Type/Catalog/Pages 2 0 R>>".to_owned(), pages]), PDF);
    assert!(is_about_the_document(&outcome) && outcome.is_err(), "{outcome:?}");
}

/// This program under another name.
fn alias(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &path).unwrap();
    path
}

fn a_child_that_misbehaves_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, time: Duration| {
        let bounds = ChildBounds { time, ..bounds() };
        // More than a pipe holds, so that a child that does not listen is noticed too.
        run_with(&alias(folder.path(), name), &[0; 1_000_000], PDF, &bounds)
    };
    let long = Duration::from_secs(600);
    assert!(matches!(run("hangs", Duration::from_millis(50)), Err(ExtractError::TimedOut { .. })));
    assert!(matches!(run("floods", long), Err(ExtractError::Garbled)));
    assert!(matches!(run("mumbles", long), Err(ExtractError::Garbled)));
    assert!(matches!(run("panics", long), Err(ExtractError::Crashed { .. })));
}

fn the_child_has_no_files_and_no_environment() {
    let folder = tempfile::tempdir().unwrap();
    assert!(std::env::vars_os().next().is_some());
    let found = run_with(&alias(folder.path(), "tells"), b"", PDF, &bounds()).unwrap();
    assert_eq!(found.text, "");

    let status =
        Command::new(std::env::current_exe().unwrap()).args([EXTRACT_ARGUMENT, "nonsense"]).status().unwrap();
    assert!(!status.success());
}

/// Whether the outcome speaks of the document, and not of the conversation with the child.
fn is_about_the_document(outcome: &Result<Extracted, ExtractError>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(error) => match error {
            ExtractError::Encrypted
            | ExtractError::InflatesTooMuch
            | ExtractError::Unreadable { .. }
            | ExtractError::TimedOut { .. }
            | ExtractError::Crashed { .. } => true,
            ExtractError::Unsupported { .. }
            | ExtractError::TooLarge { .. }
            | ExtractError::Garbled
            | ExtractError::Start(_)
            | ExtractError::Talk(_)
            | ExtractError::Stopping => false,
        },
    }
}

fn any_type() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![PDF, DOCX, PPTX, XLSX, ODT, ODS, EPUB])
}

fn random_bytes_never_reach_the_parent() {
    let signature = prop::sample::select(vec![
        &b""[..],
        b"%PDF-1.4\n",
        b"PK\x03\x04",
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..1_000);
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) })
        .run(&(any_type(), signature, bytes), |(mime_type, signature, bytes)| {
            let outcome = run(&[signature, &bytes].concat(), mime_type);
            prop_assert!(is_about_the_document(&outcome), "{outcome:?}");
            Ok(())
        })
        .unwrap();
}

fn damaged_documents_never_reach_the_parent() {
    let documents = vec![
        (PDF, pdf(&["Hello, world", "second line"])),
        (DOCX, docx("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>")),
        (XLSX, xlsx()),
    ];
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12);
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) })
        .run(
            &(prop::sample::select(documents), any::<prop::sample::Index>(), damage),
            |((mime_type, mut bytes), cut, damage)| {
                for (at, value) in damage {
                    let at = at.index(bytes.len());
                    bytes[at] = value;
                }
                bytes.truncate(bytes.len().min(2 * cut.index(bytes.len())));
                let outcome = run(&bytes, mime_type);
                prop_assert!(is_about_the_document(&outcome), "{outcome:?}");
                Ok(())
            },
        )
        .unwrap();
}
