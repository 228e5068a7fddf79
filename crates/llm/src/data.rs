//! Keeps the bytes of a medium. After a request has sent the bytes, also keeps their base64 form.

use base64::Engine;
use base64::engine::Simd;
use base64::engine::general_purpose::PAD;
use bytes::Bytes;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};

static ENGINE: LazyLock<Simd> = LazyLock::new(|| Simd::standard(PAD));

/// The bytes of a medium. The first request that sends the bytes encodes them as base64. All clones share the encoded
/// form, so later requests need not encode the same bytes again.
#[derive(Clone)]
pub struct Data {
    bytes: Bytes,
    base64: Arc<OnceLock<String>>,
    /// The name of the medium, for people who look at the request later.
    name: Option<Arc<str>>,
}

impl Data {
    /// Returns the bytes in base64. The first call encodes them.
    pub(crate) fn base64(&self) -> &str {
        self.base64.get_or_init(|| ENGINE.encode(&self.bytes))
    }

    /// Names the bytes. The name is not sent.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns a stand-in for the medium. If a request contains the stand-in, the request shows the name and the length
    /// of the bytes, and not their base64 form.
    pub(crate) fn by_reference(&self) -> Self {
        let length = self.bytes.len();
        let shown = match &self.name {
            Some(name) => format!("<{name}, {length} bytes>"),
            None => format!("<{length} bytes>"),
        };
        Self { bytes: Bytes::new(), base64: Arc::new(OnceLock::from(shown)), name: None }
    }

    /// Returns how many bytes of memory the medium takes after a request has sent it: its content and the base64 form
    /// of the content.
    pub fn footprint(&self) -> usize {
        self.bytes.len() + self.bytes.len().div_ceil(3) * 4
    }
}

impl From<Bytes> for Data {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, base64: Arc::new(OnceLock::new()), name: None }
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Data {
    /// Logs and failed tests show requests. So this shows the size, and never the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_what_was_encoded() {
        let data = Data::from(vec![0xff; 3]);
        let clone = data.clone();
        assert_eq!(clone.base64(), "////");
        assert!(std::ptr::eq(data.base64(), clone.base64()));
        assert_eq!(data.footprint(), 7);
    }
}
