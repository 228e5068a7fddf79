//! Extracts documents in a real child process. The test program starts itself again as the child. Under its own name,
//! the child behaves well. Another name, such as `hangs`, tells the child how to misbehave.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the whole program is a test, which clippy does not recognise without the standard harness"
)]

mod documents;

mod hostile;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use bytes::Bytes;
use polity_media::{
    ChildBounds, Completeness, EXTRACT_ARGUMENT, ExtractError, Extracted, child_main, run_child,
};
use tokio::runtime::Runtime;

use crate::documents::{
    DOCX, EPUB, LETTER, ODP, ODS, ODT, PDF, PPTX, RTF, TABLE, XLSX, archive, docx, epub, open_document, pdf,
    pptx, xlsx,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    if arguments.next().is_some_and(|first| first == EXTRACT_ARGUMENT) {
        return be_child(&program, arguments);
    }
    let tests: [(&str, fn()); 20] = [
        ("the_text_of_a_pdf", the_text_of_a_pdf),
        ("the_text_of_a_docx", the_text_of_a_docx),
        (
            "the_slides_of_a_pptx_in_their_order_with_their_notes",
            the_slides_of_a_pptx_in_their_order_with_their_notes,
        ),
        ("the_cells_of_an_xlsx", the_cells_of_an_xlsx),
        ("the_text_of_open_documents", the_text_of_open_documents),
        ("the_chapters_of_an_epub_in_their_order", the_chapters_of_an_epub_in_their_order),
        ("the_text_of_an_rtf", the_text_of_an_rtf),
        ("a_long_text_is_cut", a_long_text_is_cut),
        ("what_is_not_readable_says_why", what_is_not_readable_says_why),
        ("a_child_that_misbehaves_is_an_error", a_child_that_misbehaves_is_an_error),
        ("the_child_has_no_files_and_no_environment", the_child_has_no_files_and_no_environment),
        ("hostile::a_zip_bomb_is_refused", hostile::a_zip_bomb_is_refused),
        ("hostile::a_deeply_nested_pdf_is_refused", hostile::a_deeply_nested_pdf_is_refused),
        ("hostile::endless_texts_are_cut", hostile::endless_texts_are_cut),
        ("hostile::deep_structures_are_refused", hostile::deep_structures_are_refused),
        (
            "hostile::entities_are_not_expanded_and_nothing_outside_is_read",
            hostile::entities_are_not_expanded_and_nothing_outside_is_read,
        ),
        ("hostile::what_needs_a_password_says_so", hostile::what_needs_a_password_says_so),
        ("hostile::documents_cut_short_say_so", hostile::documents_cut_short_say_so),
        ("hostile::random_bytes_never_reach_the_parent", hostile::random_bytes_never_reach_the_parent),
        (
            "hostile::damaged_documents_never_reach_the_parent",
            hostile::damaged_documents_never_reach_the_parent,
        ),
    ];
    // With the argument `hostile`, only the tests of hostile documents run. All other arguments are ignored.
    let only_hostile = std::env::args_os().any(|argument| argument == "hostile");
    let is_wanted = |name: &str| !only_hostile || name.starts_with("hostile::");
    let mut passed = 0;
    for (name, test) in tests.into_iter().filter(|(name, _)| is_wanted(name)) {
        println!("test {name} ...");
        test();
        passed += 1;
    }
    // `tests/attack.sh` reads this line, so the line has the form that the standard harness prints.
    println!("test result: ok. {passed} passed; 0 failed");
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

fn the_slides_of_a_pptx_in_their_order_with_their_notes() {
    check(&pptx(), PPTX, "shown first\n\nshown last\n<notes>\n说慢一点\nand thank\n</notes>");
    let without_slide = archive(&[
        (
            "ppt/presentation.xml",
            "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='rId1'/><p:sldId id='257' r:id='rId2'/><p:sldId id='258'/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id='rId1' Target='slides/slide1.xml'/><Relationship Id='rId2' Target='slides/slide2.xml'/></Relationships>",
        ),
        (
            "ppt/slides/slide2.xml",
            "<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>there</a:t></a:r></a:p></p:sld>",
        ),
    ]);
    let found = run(&without_slide, PPTX).unwrap();
    assert_eq!((found.text.as_str(), found.completeness), ("there", Completeness::PartsUnreadable));
}

fn the_cells_of_an_xlsx() {
    let far_away = "\t".repeat(64);
    check(&xlsx(), XLSX, &format!("收入\nmonth\t\tsum\n2025-10-13\t\t1234.5\n{far_away}7"));
}

fn the_text_of_open_documents() {
    let text = "<office:text><text:h>Title</text:h><text:p>one\n   <text:span>two</text:span><text:s/>three<text:line-break/>four</text:p></office:text>";
    check(&open_document(text), ODT, "Title\none two three\nfour");
    let slides = "<office:presentation><draw:page><text:p>one</text:p><presentation:notes><text:p>say it</text:p></presentation:notes></draw:page><draw:page><text:p>two</text:p><presentation:notes><text:p/></presentation:notes></draw:page></office:presentation>";
    check(&open_document(slides), ODP, "one\n<notes>\nsay it\n</notes>\ntwo");
    check(&open_document(TABLE), ODS, "T\na\t2");
}

fn the_chapters_of_an_epub_in_their_order() {
    check(&epub(""), EPUB, "第一章\nfirst bold text\nnext\n\nsecond");
}

fn the_text_of_an_rtf() {
    check(LETTER, RTF, "你好\na letter.");
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
        panic!("a document was found in an archive that has none");
    };
    assert_eq!(reason, "the archive has no document");
    let small = ChildBounds { memory: 400, ..bounds() };
    let outcome = run_with(Path::new("/nonexistent"), &[0; 101], PDF, &small);
    assert!(matches!(outcome, Err(ExtractError::TooLarge { bytes: 101, max_bytes: 100 })));
    let outcome = run_with(Path::new("/nonexistent"), b"", PDF, &bounds());
    assert!(matches!(outcome, Err(ExtractError::Start(_))));
}

/// Makes a symbolic link to this program, so that it can be started under another name.
fn alias(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &path).unwrap();
    path
}

fn a_child_that_misbehaves_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, time: Duration| {
        let bounds = ChildBounds { time, ..bounds() };
        // The document is larger than the buffer of a pipe. So if a child never reads its input, the write of the
        // document blocks. This is tested too.
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
