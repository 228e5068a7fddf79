//! Safe access to the web for the tools of agents: requests, readable pages, and search.
//!
//! This crate must not know agents, tasks, models, the database or the command line. The caller decides what an agent
//! may do, and passes its own rules about URLs as a [`Permit`]. The texts that this crate returns come from
//! strangers, so the caller must show these texts to models as quotations.
//!
//! The path of a request: *[`Request`] → `judge` (may a request go to this URL?) → `resolve` (resolves the name once) →
//! `judge` (are all addresses public?) → `hop` (connects to these addresses and no others) → `redirect` (makes the next
//! request, which begins at `judge` again) → `body` (decompresses and bounds the body) → [`Response`]*. For a page, the
//! response then goes *→ `page` → `html` → [`Page`]*. `judge`, `redirect` and `html` are plain functions over plain
//! data; only `resolve`, `hop` and `body` do IO.

mod shown;

mod settings;

mod judge;

mod error;

mod request;

mod redirect;

mod resolve;

mod hop;

mod body;

mod web;

mod html;

mod page;

mod search;

#[cfg(test)]
mod testing;

pub use error::Error;
pub use html::{Cut, Link, Part, Readable, read_html};
pub use judge::{Destination, Refused, Target, judge_addresses, judge_url};
pub use page::{OtherPage, Page, TextPage, page_of};
pub use request::{Request, Response};
pub use resolve::{Resolve, SystemResolver};
pub use search::Hit;
pub use settings::{AllowedHost, AllowedHostError, Search, SearchKey, Settings};
pub use web::{Call, Permit, Web};
