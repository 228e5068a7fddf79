//! Documents that are crafted to do harm, or damaged.

use std::io::{Cursor, Write as _};

use polity_media::{ChildBounds, Completeness, ExtractError, Extracted};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::documents::{
    DOCX, EPUB, ODP, ODS, ODT, PDF, PPTX, RTF, XLSX, archive, docx, epub, one_of_each, open_document, page,
    pdf_of, pdf_with_trailer,
};
use crate::{bounds, check, run, run_with};

const CASES: u32 = 100;

pub(crate) fn a_zip_bomb_is_refused() {
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
    // If the memory limit is too small for the unpacked content, the child fails, but not this process.
    let tight = ChildBounds { memory: 128 * 1024 * 1024, ..bounds() };
    let outcome = run_with(&std::env::current_exe().unwrap(), &bomb, DOCX, &tight);
    assert!(
        matches!(outcome, Err(ExtractError::Unreadable { .. } | ExtractError::Crashed { .. })),
        "{outcome:?}"
    );
}

pub(crate) fn a_deeply_nested_pdf_is_refused() {
    const DEPTH: usize = 200_000;
    let nested = format!("<</Type/Pages/Count 1/Kids{}{}>>", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let outcome = run(&pdf_of(&["<</Type/Catalog/Pages 2 0 R>>".to_owned(), nested]), PDF);
    assert!(is_about_the_document(&outcome) && outcome.is_err(), "{outcome:?}");

    let pages = "<</Type/Pages/Count 1/Kids[2 0 R]/Parent 2 0 R>>".to_owned();
    let outcome = run(&pdf_of(&["<</Type/Catalog/Pages 2 0 R>>".to_owned(), pages]), PDF);
    assert!(is_about_the_document(&outcome) && outcome.is_err(), "{outcome:?}");
}

pub(crate) fn endless_texts_are_cut() {
    let word = "<w:p><w:r><w:t>endless</w:t></w:r></w:p>".repeat(1_000_000);
    let chapters = format!(
        "<package><manifest><item id='a' href='a.xhtml'/></manifest><spine>{}</spine></package>",
        "<itemref idref='a'/>".repeat(100_000)
    );
    let book = archive(&[
        ("META-INF/container.xml", "<c><rootfile full-path='content.opf'/></c>"),
        ("content.opf", &chapters),
        ("a.xhtml", "<html><body><p>over and over</p></body></html>"),
    ]);
    let letter = format!("{{\\rtf1 {}", "endless\\par ".repeat(1_000_000));
    for (bytes, mime_type) in [(docx(&word), DOCX), (book, EPUB), (letter.into_bytes(), RTF)] {
        let found = run(&bytes, mime_type).unwrap();
        assert_eq!(found.completeness, Completeness::Cut, "{mime_type}");
        assert!(found.text.chars().count() <= bounds().output_chars, "{mime_type}");
    }
}

pub(crate) fn deep_structures_are_refused() {
    let deep = "<w:p>".repeat(2_000_000);
    let book = archive(&[
        ("META-INF/container.xml", "<c><rootfile full-path='content.opf'/></c>"),
        ("content.opf", "<p><item id='a' href='a.xhtml'/><itemref idref='a'/></p>"),
        ("a.xhtml", &deep),
    ]);
    let letter = format!("{{\\rtf1{}", "{".repeat(2_000_000));
    for (bytes, mime_type) in [(docx(&deep), DOCX), (open_document(&deep), ODT), (letter.into_bytes(), RTF)] {
        let outcome = run(&bytes, mime_type);
        assert!(matches!(outcome, Err(ExtractError::Unreadable { .. })), "{mime_type}: {outcome:?}");
    }
    // If one chapter is damaged, only this chapter is missing from the text.
    assert_eq!(run(&book, EPUB).unwrap().completeness, Completeness::PartsUnreadable);
}

pub(crate) fn entities_are_not_expanded_and_nothing_outside_is_read() {
    let entities = "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY f SYSTEM 'file:///proc/self/status'>]>";
    let word = format!("{entities}<w:document xmlns:w='w'><w:p><w:t>x&b;&f;y</w:t></w:p></w:document>");
    check(&archive(&[("word/document.xml", &word)]), DOCX, "x&b;&f;y");
    let text = format!("{entities}<d><text:p>x&b;&f;y</text:p></d>");
    check(&archive(&[("content.xml", &text)]), ODT, "x&b;&f;y");
    let chapter = format!("{entities}<html><body>x&b;&f;y</body></html>");
    let book = archive(&[
        ("META-INF/container.xml", "<c><rootfile full-path='content.opf'/></c>"),
        ("content.opf", "<p><item id='a' href='a.xhtml'/><itemref idref='a'/></p>"),
        ("a.xhtml", &chapter),
    ]);
    check(&book, EPUB, "x&b;&f;y");
}

/// Marks each file of an archive as encrypted with a password.
fn with_password(mut zip: Vec<u8>) -> Vec<u8> {
    // In a zip archive, each file has a header and an entry in the directory. Each of the two begins with a signature,
    // and contains flags at the given offset from this signature. The lowest flag means that the file is encrypted.
    for (signature, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        for at in 0..zip.len() {
            if zip[at..].starts_with(signature) {
                zip[at + flags] |= 1;
            }
        }
    }
    zip
}

pub(crate) fn what_needs_a_password_says_so() {
    for (mime_type, document) in one_of_each() {
        if document.starts_with(b"PK") {
            let outcome = run(&with_password(document), mime_type);
            assert!(matches!(outcome, Err(ExtractError::Encrypted)), "{mime_type}: {outcome:?}");
        }
    }
    let locked =
        archive(&[("META-INF/manifest.xml", "<m><encryption-data/></m>"), ("content.xml", "garbage")]);
    assert!(matches!(run(&locked, ODT), Err(ExtractError::Encrypted)));

    let encrypted = |path: &str| {
        epub(&format!("<encryption><enc:CipherReference xmlns:enc='e' URI='{path}'/></encryption>"))
    };
    assert!(matches!(run(&encrypted("OEBPS/text/a%20a.xhtml"), EPUB), Err(ExtractError::Encrypted)));
    assert!(run(&encrypted("OEBPS/fonts/a.otf"), EPUB).unwrap().text.contains("second"));

    let key = "0".repeat(64);
    let lock = format!("<</Filter/Standard/V 2/R 3/Length 128/P -4/O<{key}>/U<{key}>>>");
    let id = format!("/ID[<{key}><{key}>]");
    let in_trailer = pdf_with_trailer(&page(&["secret"]), &format!("{id}/Encrypt {lock}"));
    let objects = [page(&["secret"]), vec![lock]].concat();
    let as_object = pdf_with_trailer(&objects, &format!("{id}/Encrypt {} 0 R", objects.len()));
    for pdf in [in_trailer, as_object] {
        let outcome = run(&pdf, PDF);
        assert!(matches!(outcome, Err(ExtractError::Encrypted)), "{outcome:?}");
    }
}

pub(crate) fn documents_cut_short_say_so() {
    for (mime_type, document) in one_of_each() {
        let outcome = run(&document[..document.len() / 2], mime_type);
        match outcome {
            Err(ExtractError::Unreadable { .. }) => {}
            // An RTF file that is cut off still gives the text before the cut.
            Ok(found) if mime_type == RTF => assert_eq!(found.completeness, Completeness::PartsUnreadable),
            outcome => panic!("{mime_type}: {outcome:?}"),
        }
    }
}

/// Returns whether the outcome tells what became of the document in the child. Returns `false` if the child never got
/// the document, or if the communication with the child failed.
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
    prop::sample::select(vec![PDF, DOCX, PPTX, XLSX, ODT, ODS, ODP, EPUB, RTF])
}

pub(crate) fn random_bytes_never_reach_the_parent() {
    let signature = prop::sample::select(vec![
        &b""[..],
        b"%PDF-1.4\n",
        b"{\\rtf1",
        b"PK\x03\x04",
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..1_000);
    TestRunner::new(Config { source_file: Some(file!()), ..Config::with_cases(CASES) })
        .run(&(any_type(), signature, bytes), |(mime_type, signature, bytes)| {
            let outcome = run(&[signature, &bytes].concat(), mime_type);
            prop_assert!(is_about_the_document(&outcome), "{outcome:?}");
            Ok(())
        })
        .unwrap();
}

pub(crate) fn damaged_documents_never_reach_the_parent() {
    let documents = one_of_each();
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12);
    TestRunner::new(Config { source_file: Some(file!()), ..Config::with_cases(CASES) })
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
