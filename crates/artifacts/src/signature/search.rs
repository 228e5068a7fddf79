//! Finds a sequence of bytes in a longer sequence.

pub(super) fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

pub(super) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    position(bytes, wanted).is_some()
}
