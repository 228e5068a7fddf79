//! The daemon converts attachments to fit the limits of a service. If the daemon cannot send an attachment and cannot
//! read text from it, it describes the attachment in words.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::json;

use crate::support::database::Database;
use crate::support::files::{PICTURE, base64, files_below, from_data_url, holds_base64_of, write};
use crate::support::serving::Serving;
use crate::support::{app, events, home_with, json_lines, last_asked, run, service, text_of};

/// Returns a PDF of one page with this text.
fn pdf_that_says(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 24 Tf 20 100 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 144] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        offsets.push(file.len());
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for offset in offsets {
        file.push_str(&format!("{offset:010} 00000 n \n"));
    }
    file.push_str(&format!(
        "trailer << /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF",
        objects.len() + 1
    ));
    file.into_bytes()
}

#[test]
fn a_document_comes_with_its_text_where_the_model_takes_no_files() {
    let server = ScriptedServer::start(|asked| {
        if asked.has_called("get_artifact") {
            return Answer::say("read");
        }
        let text = asked.last_user_text();
        let reference = crate::support::references(&text).remove(0);
        Answer::call("get_artifact", json!({"ref": reference, "offset": 10, "limit": 7}))
    });
    let polity = home_with(&server, &["text"]);
    let path = write(&polity, "report.pdf", &pdf_that_says("Quarterly revenue 42 million"));
    run(&polity, &["read it", "--attach", &path]).expect_code(0);
    let asked = last_asked(&server);
    let text = asked.messages().iter().map(text_of).collect::<Vec<_>>().join("\n");
    assert!(text.contains("【收到附件】"), "{text}");
    assert!(text.contains("（以下是系统从 report.pdf 中提取的文字，不含图片和版式）"), "{text}");
    assert!(text.contains("Quarterly revenue 42 million"), "{text}");
    let result = &asked.results_of("get_artifact")[0].value;
    assert_eq!((result["routing"].as_str(), result["nextOffset"].as_u64()), (Some("text"), Some(17)));
    assert!(result["content"].as_str().expect("words").ends_with("revenue"), "{result}");
}

#[test]
fn a_file_that_only_looks_like_a_document_is_described() {
    let server = ScriptedServer::start(|_| Answer::say("seen"));
    let polity = home_with(&server, &["text"]);
    let path = write(&polity, "broken.pdf", b"%PDF-1.4\n1 0 obj << /Kids [1 0 R] /Pages 1 0 R >>\n%%EOF");
    run(&polity, &["read it", "--attach", &path]).expect_code(0);
    let text = last_asked(&server).last_user_text();
    assert!(text.contains("【收到附件】") && !text.contains("提取的文字"), "{text}");
}

#[test]
fn a_picture_that_is_too_large_for_the_service_is_scaled_and_the_original_stays() {
    let server = ScriptedServer::start(|_| Answer::say("seen"));
    let mut small = service("one", &server, &["text", "vision"]);
    small["maxImageEdge"] = json!(48);
    let polity = Polity::new(&json!({"services": [small]}), &app(&json!({})));
    let path = write(&polity, "picture.png", PICTURE);
    run(&polity, &["look", "--attach", &path]).expect_code(0);
    let asked = last_asked(&server);
    let sent = from_data_url(asked.image_urls()[0], "image/png");
    // Every PNG has its width at offset 16 and its height at offset 20, both in big-endian order.
    let size = |at: usize| u32::from_be_bytes(sent[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((size(16), size(20)), (48, 27));
    let blobs = files_below(&polity.data_dir().join("artifacts"));
    assert!(
        blobs.iter().any(|blob| fs::read(blob).expect("a blob") == PICTURE),
        "the original is not stored"
    );
}

/// Sends an attachment that the model cannot get. Returns two texts in which the model is told about the attachment:
/// the message, and the result of `get_artifact`.
#[track_caller]
fn told_of(service_fields: &serde_json::Value, name: &str, bytes: &[u8]) -> [String; 2] {
    let server = ScriptedServer::start(|asked| {
        if asked.has_called("get_artifact") {
            return Answer::say("read");
        }
        let reference = crate::support::references(&asked.last_user_text()).remove(0);
        Answer::call("get_artifact", json!({"ref": reference}))
    });
    let mut only = service("one", &server, &["text", "vision", "file"]);
    for (field, value) in service_fields.as_object().expect("fields") {
        only[field] = value.clone();
    }
    let polity = Polity::new(&json!({"services": [only]}), &app(&json!({})));
    let path = write(&polity, name, bytes);
    run(&polity, &["look", "--attach", &path]).expect_code(0);
    let asked = last_asked(&server);
    assert!(asked.image_urls().is_empty() && asked.parts("file").is_empty());
    let result = asked.results_of("get_artifact").remove(0);
    let content = result.value["content"].as_str().expect("words").to_owned();
    let told = [text_of(&asked.messages()[1]), content];
    for text in &told {
        for advice in ["get_artifact", "create_role", "较早", "稍后"] {
            assert!(!text.contains(advice), "{advice:?} is advice that would fail again: {text}");
        }
    }
    told
}

#[test]
fn a_file_that_is_too_large_alone_is_told_with_size_and_limit() {
    // The document has 300,000 bytes, and 400,000 bytes in base64. This is more than a request may have.
    let document = [&b"%PDF-1.4\n"[..], &vec![7; 299_991]].concat();
    for text in told_of(&json!({"maxRequestBytes": 350_000}), "report.pdf", &document) {
        assert!(text.contains("没有附上: 编码后 390.6 KB，超过一次请求的媒体上限 341.8 KB"), "{text}");
    }
}

#[test]
fn a_picture_with_too_many_pixels_is_told_with_size_and_limit() {
    // The header of a bitmap contains its width and height, so the file needs no pixels.
    let mut bitmap = Vec::from(*b"BM");
    bitmap.extend([0x36_u32, 0, 0x36, 40, 12_000, 12_000].iter().flat_map(|word| word.to_le_bytes()));
    bitmap.extend([1, 0, 24, 0]);
    bitmap.extend([0; 24]);
    for text in told_of(&json!({}), "large.bmp", &bitmap) {
        assert!(text.contains("12000 × 12000 像素") && text.contains("256.0 MB"), "{text}");
    }
}

/// Returns the example picture with a header that promises this many pixels in each direction.
fn promising(edge: u32) -> Vec<u8> {
    // The first chunk of a PNG begins at offset 12 with its type. Then come the width, the height and five more bytes. A
    // checksum of all these bytes follows.
    let mut picture = PICTURE.to_vec();
    picture[16..20].copy_from_slice(&edge.to_be_bytes());
    picture[20..24].copy_from_slice(&edge.to_be_bytes());
    let checksum = !picture[12..29].iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1)))
    });
    picture[29..33].copy_from_slice(&checksum.to_be_bytes());
    picture
}

#[test]
fn a_picture_that_promises_billions_of_pixels_takes_little_memory_of_a_daemon() {
    /// Maximum growth of the daemon's memory, in MiB. The pixels would take more than two gigabytes.
    const LITTLE: u64 = 64;
    let server = ScriptedServer::start(|_| Answer::say("seen"));
    let polity = home_with(&server, &["text", "vision"]);
    let serving = Serving::start(&polity);
    let look = |picture: &[u8]| {
        let url = format!("data:image/png;base64,{}", base64(picture));
        let content =
            json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]);
        let body = json!({"model": "polity", "messages": [{"role": "user", "content": content}]});
        let answer = serving.call("POST /v1/chat/completions", body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        last_asked(&server)
    };
    // The first picture makes the daemon allocate memory that it keeps for all later pictures.
    assert_eq!(look(PICTURE).image_urls().len(), 1);
    serving.forget_peak();
    let before = serving.resident();
    let asked = look(&promising(50_000));
    let added = serving.peak() - before;
    assert!(asked.image_urls().is_empty());
    let text = asked.last_user_text();
    assert!(text.contains("50000 × 50000 像素"), "{text}");
    assert!(added <= LITTLE, "{added} MiB");
}

#[test]
fn attachments_that_are_too_large_together_are_told_so() {
    let server = ScriptedServer::start(|_| Answer::say("seen"));
    let mut only = service("one", &server, &["text", "file"]);
    only["maxRequestBytes"] = json!(100_000);
    let polity = Polity::new(&json!({"services": [only]}), &app(&json!({})));
    let document = |name: &str| write(&polity, name, &[&b"%PDF-1.4\n"[..], &vec![7; 60_000]].concat());
    let (one, two) = (document("one.pdf"), document("two.pdf"));
    run(&polity, &["look", "--attach", &one, "--attach", &two]).expect_code(0);
    let text = last_asked(&server).last_user_text();
    assert!(
        text.matches("同一条消息的附件合计超过一次请求的媒体上限（编码后 97.7 KB）").count() == 2,
        "{text}"
    );
    assert!(!text.contains("较早的附件"), "{text}");
}

/// Returns damaged versions of an artifact's file. A broken disk or a person may leave such a file.
fn damages() -> [Vec<u8>; 4] {
    let mut flipped = PICTURE.to_vec();
    *flipped.last_mut().expect("bytes") ^= 1;
    [flipped, PICTURE[..PICTURE.len() / 2].to_vec(), Vec::new(), [PICTURE, b"more"].concat()]
}

/// Plays a run with a picture that ends before a model has answered. The server answers only from then on, because the
/// run may send a request before its time is over.
fn after_a_run_without_an_answer(input: &[&str]) -> (ScriptedServer, Polity) {
    let has_ended = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&has_ended);
    let server = ScriptedServer::start(move |_| match answers.load(Ordering::SeqCst) {
        true => Answer::say("unreadable"),
        false => Answer::error(503, json!({"error": {"message": "try again"}})),
    });
    let polity = home_with(&server, input);
    let path = write(&polity, "picture.png", PICTURE);
    let ended = run(&polity, &["look", "--attach", &path, "--timeout", "0s"]);
    assert_eq!(ended.code, Some(124), "{}", ended.stderr);
    has_ended.store(true, Ordering::SeqCst);
    (server, polity)
}

#[test]
fn bytes_that_changed_on_disk_are_told_as_unreadable_and_never_sent() {
    for damaged in damages() {
        // The test damages the stored bytes, and the second run reads the damaged bytes.
        let (server, polity) = after_a_run_without_an_answer(&["text", "vision"]);
        let blob = files_below(&polity.data_dir().join("artifacts"))
            .into_iter()
            .find(|file| fs::read(file).expect("a file") == PICTURE)
            .expect("the stored picture");
        fs::write(blob, &damaged).expect("damage");

        let ended = run(&polity, &["--resume", "--json"]).expect_code(0);
        let lines = json_lines(&ended.stdout);
        assert_eq!(events(&lines, "artifact_unreadable").len(), 1, "{}", ended.stdout);
        let request = server.requests().pop().expect("a request");
        assert!(!holds_base64_of(&request.raw, PICTURE));
        assert!(request.conversation().image_urls().is_empty());
        let text = request.conversation().last_user_text();
        assert!(text.contains("读取失败"), "{text}");
    }
}

#[test]
fn a_row_that_was_damaged_is_told_as_unreadable_and_nothing_is_sent() {
    for damage in [
        "UPDATE artifacts SET kind = 'sculpture'",
        "UPDATE artifacts SET meta = '{\"page\":'",
        "UPDATE artifacts SET mime_type = ''",
        "UPDATE artifacts SET blob = '../../../etc/passwd'",
    ] {
        let (server, polity) = after_a_run_without_an_answer(&["text", "vision", "file"]);
        Database::write(&polity.data_dir()).execute(damage);

        let ended = run(&polity, &["--resume", "--json"]).expect_code(0);
        let lines = json_lines(&ended.stdout);
        assert_eq!(events(&lines, "artifact_unreadable").len(), 1, "{damage}: {}", ended.stdout);
        let request = server.requests().pop().expect("a request");
        assert!(!holds_base64_of(&request.raw, PICTURE), "{damage}");
        let text = request.conversation().last_user_text();
        assert!(text.contains("读取失败") && text.contains("picture.png"), "{damage}: {text}");
    }
}
