//! Decides how one piece of content reaches one model. If the model cannot read the content, a text replaces it; this
//! crate also writes these texts.
//!
//! This crate must not know bytes, storage, wire formats or the contact registries of agents. The functions take
//! plain data: facts about an artifact, the capabilities of a model, and the texts of a language. They return a
//! decision or a text. The crate has no IO, no clock and no state, so equal inputs give equal results.
//!
//! The path of data: [`route()`] takes two facts about an artifact, its kind and its MIME type. It also takes two facts
//! about a service, its capabilities and its file types, as they are configured *now*. The function returns a
//! [`Route`]. Depending on the route, the caller sends a page of the text ([`cut_text`]), the encoded bytes, or one of
//! the descriptions. For `get_artifact`, the function [`route_result`] combines the route with the [`Material`] that
//! the caller has. The function returns a [`RouteResult`], which [`tool_message`] turns into the `tool` message. For an
//! attachment that cannot be shown, the caller builds an [`AttachmentBlock`], whose text can be parsed again.

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
pub use file_types::FileTypes;
pub use fit::{Excerpt, bounded_message, page_message};
pub use left_out::LeftOut;
pub use page::{Page, cut_text};
pub use result::{
    ContentType, FileContent, FilePart, ImageAddress, ImagePart, Material, Metadata, RouteResult, Routed,
    artifact_not_found, route_result, tool_message,
};
pub use route::{AudioFormat, Reason, Routable, Route, route};
pub use words::HumanSize;
