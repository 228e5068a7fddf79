//! Builds the HTTP clients of this crate, and sets up their TLS.

use std::time::Duration;

/// The HTTP library could not build a client.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up the HTTP client")]
pub struct SetupError(#[from] reqwest::Error);

/// Makes the library `ring` the TLS provider of the process. Further calls change nothing.
pub fn install_crypto_provider() {
    // Fails only if the process already has a TLS provider. That provider then stays in use.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The root certificates that a client trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Roots {
    /// Those of the machine. To read them takes milliseconds.
    Machine,
    /// None, because the client is used for plain HTTP only.
    None,
}

impl Roots {
    /// Returns the roots that a request to this address needs. The client follows no redirects, so it reaches no other
    /// address.
    pub(crate) fn needed_for(url: &str) -> Self {
        let scheme = url.trim_start().split_once(':').map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("http")) {
            Self::None
        } else {
            Self::Machine
        }
    }
}

/// Builds a client that uses no proxy from the environment and follows no redirects. `connect` limits the time for
/// making a connection. It is a limit of the client, because `reqwest` accepts no such limit for a single request.
///
/// A connection may break while it is idle, but no call has to wait for it. `reqwest` sends keep-alive probes every 15
/// seconds. If the server does not acknowledge data for 30 seconds, `reqwest` closes the connection. If `reqwest`
/// cannot begin to send a request on one connection, it sends the request on another connection.
pub(crate) fn http_client(connect: Duration, roots: Roots) -> Result<reqwest::Client, SetupError> {
    install_crypto_provider();
    // Follow no redirects. Otherwise a redirected call would lose its body, and could carry its key to another server.
    let builder = || {
        reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(connect)
            .user_agent(concat!("polity/", env!("CARGO_PKG_VERSION")))
    };
    if roots == Roots::None {
        return Ok(builder().tls_certs_only([]).build()?);
    }
    match builder().build() {
        Ok(client) => Ok(client),
        Err(error) => {
            // A machine without root certificates can still reach local servers without TLS. So this is no error.
            tracing::warn!(%error, "no usable root certificates: only plain http services can be reached");
            Ok(builder().tls_certs_only([]).build()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_needs_no_root_certificates() {
        for url in ["http://127.0.0.1:9/v1", "HTTP://model.local/v1", " http://model"] {
            assert_eq!(Roots::needed_for(url), Roots::None, "{url}");
        }
        for url in ["https://api.example.com/v1", "HTTPS://api", "httpx://a", "", "model:8080/v1", "//http:"]
        {
            assert_eq!(Roots::needed_for(url), Roots::Machine, "{url}");
        }
    }
}
