//! Checks how much memory the media of a request take while the request is written.

#![expect(clippy::unwrap_used, reason = "a test helper may panic like the test itself")]

use allocation_counter::{AllocationInfo, measure};
use polity_llm::{Body, Data, Endpoint, Message, Part, Request};

const MIB: usize = 1024 * 1024;

fn pictures(count: usize, size: usize) -> Request {
    let picture = || Part::Image { mime_type: "image/png".to_owned(), data: Data::from(vec![7; size]) };
    Request { messages: vec![Message::User((0..count).map(|_| picture()).collect())], ..Request::default() }
}

/// Writes the request. Returns the memory that the writing takes and the length of the body.
fn written(request: &Request) -> (AllocationInfo, usize) {
    let endpoint = Endpoint::new("http://127.0.0.1", "m");
    let mut length = 0;
    let taken = measure(|| length = Body::new(request, &endpoint).to_json().unwrap().len());
    (taken, length)
}

/// Writes a request with `count` pictures of `size` bytes each. Checks how much memory the writing takes, and how much
/// memory stays in use afterwards.
fn check(count: usize, size: usize) {
    let encoded = u64::try_from(count * size.div_ceil(3) * 4).unwrap();
    let request = pictures(count, size);
    let (first, length) = written(&request);
    let (next, _) = written(&request.clone());
    let length = u64::try_from(length).unwrap();
    assert_eq!(first.bytes_current, i64::try_from(encoded).unwrap(), "only the base64 is kept");
    assert_eq!(next.bytes_current, 0, "nothing is encoded again");
    assert_eq!(next.bytes_total + encoded, first.bytes_total, "encoding allocates only its result");
    assert!(next.bytes_max <= length + 100_000, "{} bytes for a body of {length}", next.bytes_max);
    assert!(length <= encoded + 2_000, "{length} bytes for {encoded} of media");
}

#[test]
fn media_are_encoded_once_and_go_into_one_buffer() {
    check(1, 8 * MIB);
    check(6, 3 * MIB / 2);
    check(8, 100_001);
}
