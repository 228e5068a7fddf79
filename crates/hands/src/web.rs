//! The tools of the group `web`: fetch a page, send a request, search. The crate `polity_web` decides which addresses
//! these tools may reach.
//!
//! Each call reads the current settings, so a changed setting applies to the next call.

mod access;
mod fetch_page;
mod http_request;
mod web_search;

use crate::files::Files;
use crate::table::Toolbox;
use crate::tool::Tool;
pub use access::WebSettings;

use access::Access;
use fetch_page::FetchPage;
use http_request::HttpRequest;
use std::sync::Arc;
use web_search::WebSearch;

/// The tools of the group `web`.
pub struct WebTools {
    settings: WebSettings,
    fetch_page: Arc<FetchPage>,
    http_request: Arc<HttpRequest>,
    web_search: Arc<WebSearch>,
}

impl WebTools {
    /// `files` writes an answer from the web into the workspace of an agent, if the agent asks to save it.
    pub fn new(settings: WebSettings, files: Files) -> Self {
        let access = Arc::new(Access::new(Arc::clone(&settings)));
        Self {
            settings,
            fetch_page: Arc::new(FetchPage::new(Arc::clone(&access))),
            http_request: Arc::new(HttpRequest::new(Arc::clone(&access), files)),
            web_search: Arc::new(WebSearch::new(access)),
        }
    }
}

impl Toolbox for WebTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = vec![self.fetch_page.clone(), self.http_request.clone()];
        if (self.settings)().search.is_some() {
            tools.push(self.web_search.clone());
        }
        tools
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
