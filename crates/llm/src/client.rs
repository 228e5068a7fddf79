//! The HTTP client that everything here shares, and its TLS.

use std::time::Duration;

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up the HTTP client")]
pub struct SetupError(#[from] reqwest::Error);

/// Makes ring the process's TLS provider. A second call changes nothing.
pub fn install_crypto_provider() {
    // Fails only where there is a provider already, which is then the one.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Makes a client that goes where it is told: no proxy of the environment, no redirects. `connect` is how long a
/// connection may take to be made; the library knows that of a client only, not of a request.
///
/// A connection that has died while nobody used it does not make a call wait: the library asks for signs of life every
/// 15 seconds, gives up what is not acknowledged after 30, and sends a request that could not even begin on another one.
pub(crate) fn http_client(connect: Duration) -> Result<reqwest::Client, SetupError> {
    install_crypto_provider();
    // A redirected call would lose its body, and could take its key elsewhere.
    let builder = || {
        reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(connect)
            .user_agent(concat!("polity/", env!("CARGO_PKG_VERSION")))
    };
    match builder().build() {
        Ok(client) => Ok(client),
        Err(error) => {
            // Machines without root certificates can still reach their local servers.
            tracing::warn!(%error, "no usable root certificates: only plain http services can be reached");
            Ok(builder().tls_certs_only([]).build()?)
        }
    }
}
