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
    /// The tools that always exist.
    tools: Vec<Arc<dyn Tool>>,
    /// Exists only if the settings name a search provider.
    web_search: Arc<dyn Tool>,
}

impl WebTools {
    /// `files` writes an answer from the web into the workspace of an agent, if the agent asks to save it.
    pub fn new(settings: WebSettings, files: Files) -> Self {
        let access = Arc::new(Access::new(Arc::clone(&settings)));
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(FetchPage::new(Arc::clone(&access))),
            Arc::new(HttpRequest::new(Arc::clone(&access), files)),
        ];
        Self { settings, tools, web_search: Arc::new(WebSearch::new(access)) }
    }
}

impl Toolbox for WebTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.tools.clone();
        if (self.settings)().search.is_some() {
            tools.push(Arc::clone(&self.web_search));
        }
        tools
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
