//! Sends one request to one server (a *hop*): resolves the server's name once, judges the addresses, and connects to
//! these addresses only. So a name server cannot give a public address for the check and then a private address for
//! the connection.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolving};
use rustls::ClientConfig;

use crate::error::Error;
use crate::judge::{Destination, Refused, Target, judge_addresses};
use crate::request::Request;
use crate::resolve::Resolve;
use crate::settings::Settings;
use crate::shown::shown_url;

/// Time limit for one connection with its TLS handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// Maximum size of all headers of an answer together, in bytes. The HTTP library has limits of its own: at most 100
/// headers, and at most 400 KiB.
const LARGEST_HEADERS: usize = 64 * 1024;

/// The encodings that `body` decodes.
const ACCEPTED_ENCODINGS: &str = "gzip, deflate, br, zstd";

/// A response. Its headers have arrived, but nobody has read its body yet.
pub(crate) struct Answer {
    pub(crate) response: reqwest::Response,
    pub(crate) host: String,
}

/// The resolver and the TLS settings that all hops share.
pub(crate) struct Network {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) tls: ClientConfig,
    /// The address of the test server. In tests, all requests to public addresses go there instead.
    #[cfg(test)]
    pub(crate) stand_in: Option<SocketAddr>,
}

/// Why one request to one server failed: the addresses of the server were refused, or something else went wrong.
pub(crate) enum Failed {
    Refused(Refused),
    Other(Error),
}

impl Network {
    /// Sends one request to a target whose URL was accepted, and waits for the head of the answer.
    pub(crate) async fn send(
        &self,
        request: &Request,
        target: &Target,
        settings: &Settings,
    ) -> Result<Answer, Failed> {
        let host = shown_url(&target.host());
        let found = self.resolve(target).await.map_err(Failed::Other)?;
        let addresses = judge_addresses(target, &found, settings).map_err(Failed::Refused)?;
        let response = self.exchange(request, addresses, &host).await.map_err(Failed::Other)?;
        Ok(Answer { response, host })
    }

    async fn resolve(&self, target: &Target) -> Result<Vec<IpAddr>, Error> {
        let Destination::Name(name) = target.destination() else { return Ok(Vec::new()) };
        let unresolved = |reason: String| Error::Unresolved { host: shown_url(name), reason };
        match self.resolver.addresses(name).await {
            Ok(found) if found.is_empty() => Err(unresolved("the name has no addresses".to_owned())),
            Ok(found) => Ok(found),
            Err(error) => Err(unresolved(shown_url(&error.to_string()))),
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        addresses: Vec<SocketAddr>,
        host: &str,
    ) -> Result<reqwest::Response, Error> {
        let client = self.client(addresses).map_err(|error| Error::Setup { reason: causes(&error) })?;
        let mut sending = client
            .request(request.method.clone(), request.url.clone())
            .header(http::header::ACCEPT_ENCODING, ACCEPTED_ENCODINGS)
            .headers(request.headers.clone());
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        let response = sending.send().await.map_err(|error| of_sending(&error, host))?;
        let size: usize =
            response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if size > LARGEST_HEADERS {
            return Err(Error::HeadersTooLarge { host: host.to_owned(), limit: LARGEST_HEADERS });
        }
        Ok(response)
    }

    /// Builds an HTTP client that can reach only the given addresses. Each request gets a new client. Otherwise, a
    /// request could use an open connection of an earlier request, to an address that was not judged for this request.
    fn client(&self, addresses: Vec<SocketAddr>) -> reqwest::Result<reqwest::Client> {
        let addresses = addresses.into_iter().map(|address| self.dialled(address)).collect();
        reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(0)
            .user_agent(concat!("polity/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            .dns_resolver(Arc::new(Judged(addresses)))
            .build()
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "in tests, the network knows where public addresses are played")]
    fn dialled(&self, address: SocketAddr) -> SocketAddr {
        address
    }

    #[cfg(test)]
    fn dialled(&self, address: SocketAddr) -> SocketAddr {
        self.stand_in.filter(|_| polity_addresses::is_public(address.ip())).unwrap_or(address)
    }
}

/// The resolver of a client for one request. For every name, the resolver returns the addresses that were judged.
struct Judged(Vec<SocketAddr>);

impl reqwest::dns::Resolve for Judged {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Reads the root certificates of the machine. If there are none, only requests without TLS work.
pub(crate) fn tls() -> Result<ClientConfig, rustls::Error> {
    use rustls_platform_verifier::BuilderVerifierExt as _;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        || ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    match builder()?.with_platform_verifier() {
        Ok(verified) => Ok(verified.with_no_client_auth()),
        Err(error) => {
            tracing::warn!(%error, "no usable root certificates: tools can reach plain http only");
            Ok(builder()?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
        }
    }
}

fn of_sending(error: &reqwest::Error, host: &str) -> Error {
    let host = host.to_owned();
    let reason = causes(error);
    if error.is_connect() {
        return Error::Unreachable { host, reason };
    }
    if reason.contains("head is too large") {
        return Error::HeadersTooLarge { host, limit: LARGEST_HEADERS };
    }
    Error::Broken { host, reason }
}

/// Returns the text of the innermost cause of an error, because it is the most specific cause.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if std::ptr::addr_eq(innermost, error) && error.source().is_none() {
        return if error.is_timeout() {
            "no connection in time".to_owned()
        } else {
            shown_url(&error.to_string())
        };
    }
    shown_url(&innermost.to_string())
}
