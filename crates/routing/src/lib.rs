//! Decides how one piece of content reaches one model, and writes the texts that stand for what it cannot take.
//!
//! It must not know bytes, storage, wire formats or agents' registries: what is known about an artifact, what a model
//! can do and the texts of a language come in as plain data; a decision or a text goes out. Nothing here does IO, has a
//! clock or remembers anything, so the same inputs always give the same answer.
//!
//! The path of data: an artifact's kind and MIME type, with the capabilities and file types of the service that is
//! configured *now*, go through [`route()`] and become a [`Route`]. The caller then does what the route says: it puts a
//! page of the text ([`cut_text`]), the encoded bytes, or one of the descriptions in their place. For `get_artifact` the
//! route and what the caller has in hand make a [`RouteResult`], and that makes the text of the `tool` message
//! ([`tool_message`]). For the attachment of a message they make an [`AttachmentBlock`], which can be read back.

mod route;

mod file_types;

mod page;

mod words;

mod quote;

mod template;

mod left_out;

mod describe;

mod attachment;

mod result;

mod fit;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod table;
#[cfg(test)]
mod testing;

pub use attachment::{AttachmentBlock, BlockReason, Help, parse_attachment_block};
pub use describe::{describe_failure, describe_old, describe_together, describe_unreadable, inline_text};
pub use file_types::{BadPattern, FileTypes};
pub use fit::{Excerpt, bounded_message, page_message};
pub use left_out::LeftOut;
pub use page::{Page, cut_text};
pub use result::{
    ContentType, FileContent, FilePart, ImageAddress, ImagePart, Material, Metadata, RouteResult, Routed,
    artifact_not_found, route_result, tool_message,
};
pub use route::{AudioFormat, Content, Reason, Route, route};
pub use words::HumanSize;
