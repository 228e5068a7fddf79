//! Uploads and downloads of the bytes of artifacts.

use crate::client::Client;
use crate::error::Error;
use crate::transport::Asked;
use bytes::Bytes;
use futures::stream;
use polity_view::ArtifactView;
use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Number of bytes that the client reads from a file at a time.
const PIECE: usize = 256 * 1024;

/// Time limit for the daemon's answer once it has received the whole file.
const ANSWER: Duration = Duration::from_secs(60);

/// Minimum speed of an upload, in bytes per second. Even a busy disk is faster. If the daemon is slower, the client
/// assumes that the daemon hangs.
const SLOWEST: u64 = 100_000;

/// A callback that receives the number of bytes transferred so far.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

impl Client {
    /// Stores a file as an artifact of the person. Never retries: a second upload would create a second artifact.
    pub async fn put_artifact(&self, path: &Path, progress: Progress) -> Result<ArtifactView, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let file = tokio::fs::File::open(path).await.map_err(failed)?;
        let size = file.metadata().await.map_err(failed)?.len();
        let mut query = Vec::new();
        if let Some(name) = path.file_name() {
            query.push(("filename".to_owned(), name.to_string_lossy().into_owned()));
        }
        let asked = Asked::new(Method::POST, &["api", "artifacts"]).query(query);
        let door = self.transport.door()?;
        // The client declares no format, so the daemon detects it from the bytes and the name of the file.
        let unknown = HeaderValue::from_static("application/octet-stream");
        // The daemon sends nothing during an upload, so the usual time limit for its silence must not apply.
        let transport = self.transport.unhurried()?;
        let request = transport
            .request(&door, &asked)?
            .timeout(upload_time(size))
            .header(CONTENT_TYPE, unknown)
            .header(CONTENT_LENGTH, size)
            .body(reqwest::Body::wrap_stream(pieces(file.take(size), progress)));
        let response = transport.send(&door, request).await?;
        response
            .json()
            .await
            .map_err(|error| Error::Unreadable { url: door.url.to_string(), reason: error.to_string() })
    }

    /// Writes the bytes of an artifact into `into`, and returns how many bytes it has written. `name` appears in errors
    /// only.
    pub async fn artifact_content(
        &self,
        id: &str,
        into: &mut (impl AsyncWrite + Unpin),
        name: &Path,
        progress: &Progress,
    ) -> Result<u64, Error> {
        let path = ["api", "artifacts", id, "content"];
        let asked = Asked::new(Method::GET, &path);
        let door = self.transport.door()?;
        let mut response = self.transport.send(&door, self.transport.request(&door, &asked)?).await?;
        let failed = |source| Error::File { path: name.to_owned(), source };
        let mut written = 0;
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.transport.broken(&door, &error))?
        {
            into.write_all(&chunk).await.map_err(failed)?;
            written += chunk.len() as u64;
            progress(written);
        }
        into.flush().await.map_err(failed)?;
        Ok(written)
    }
}

/// Returns the time limit for an upload of this many bytes, including the daemon's answer.
fn upload_time(bytes: u64) -> Duration {
    ANSWER + Duration::from_secs(bytes / SLOWEST)
}

/// Streams the bytes of a file, piece by piece.
fn pieces(
    file: impl AsyncRead + Send + Unpin + 'static,
    progress: Progress,
) -> impl futures::Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold((file, 0_u64), move |(mut file, sent)| {
        let progress = Arc::clone(&progress);
        async move {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).await?;
            if read == 0 {
                return Ok(None);
            }
            piece.truncate(read);
            let sent = sent + read as u64;
            progress(sent);
            Ok(Some((Bytes::from(piece), (file, sent))))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_has_more_time() {
        assert_eq!(upload_time(0), Duration::from_secs(60));
        assert_eq!(upload_time(256_000_000), Duration::from_secs(60 + 2_560));
        assert!(upload_time(u64::MAX) > upload_time(u64::MAX / 2));
    }
}
