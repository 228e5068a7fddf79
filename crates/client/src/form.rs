//! Forms with files (`multipart/form-data`).

/// A form under construction.
pub(crate) struct Form {
    boundary: String,
    body: Vec<u8>,
}

impl Form {
    pub(crate) fn new() -> Self {
        // The boundary is random, so that it does not occur in the content of a part.
        Self { boundary: format!("polity-{:032x}", fastrand::u128(..)), body: Vec::new() }
    }

    /// Returns the value of the header `Content-Type`.
    pub(crate) fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// Adds a field with a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.part(&format!("name=\"{name}\""), "", text.as_bytes());
    }

    /// Adds a file without a declared format, so that the daemon detects the format from the bytes and the name.
    pub(crate) fn file(&mut self, name: &str, filename: &str, bytes: &[u8]) {
        let filename: String = filename.chars().filter(|character| !character.is_control()).collect();
        let filename = filename.replace('\\', "\\\\").replace('"', "\\\"");
        let disposition = format!("name=\"{name}\"; filename=\"{filename}\"");
        self.part(&disposition, "Content-Type: application/octet-stream\r\n", bytes);
    }

    fn part(&mut self, disposition: &str, headers: &str, content: &[u8]) {
        let head =
            format!("--{}\r\nContent-Disposition: form-data; {disposition}\r\n{headers}\r\n", self.boundary);
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(content);
        self.body.extend_from_slice(b"\r\n");
    }

    /// Ends the form and returns the body of the request.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.body.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::extract::Multipart;
    use axum::routing::post;

    #[tokio::test]
    async fn a_server_reads_what_was_written() {
        let read = async |mut form: Multipart| {
            let mut read = Vec::new();
            while let Some(field) = form.next_field().await.unwrap() {
                let (name, file) = (field.name().map(str::to_owned), field.file_name().map(str::to_owned));
                read.push(format!("{name:?} {file:?} {:?}", field.bytes().await.unwrap()));
            }
            read.join("\n")
        };
        let mut form = Form::new();
        form.text("text", "看图\r\n--\"x\"");
        form.file("attachment", "a \"b\" 图.png", b"\0\r\n--\xff");
        form.file("attachment", "line\r\nbreak", b"");
        let request = http::Request::post("/").header("content-type", form.content_type());
        let request = request.body(axum::body::Body::from(form.finish())).unwrap();
        let response =
            tower::ServiceExt::oneshot(Router::new().route("/", post(read)), request).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&body),
            "Some(\"text\") None b\"\\xe7\\x9c\\x8b\\xe5\\x9b\\xbe\\r\\n--\\\"x\\\"\"\n\
             Some(\"attachment\") Some(\"a \\\"b\\\" 图.png\") b\"\\0\\r\\n--\\xff\"\n\
             Some(\"attachment\") Some(\"linebreak\") b\"\""
        );
    }
}
