//! Finds out why a call failed. If the failure alone does not show what to change, the functions ask the server for the
//! list of its models.

use crate::chat::{CallError, FailureKind};
use crate::endpoint::Endpoint;
use crate::inquire::{Inquirer, Question};
use crate::scrub::scrub_name;
use crate::target::Target;
use polity_bounds::Budget;
use secrecy::SecretString;
use serde_json::Value;
use std::time::Duration;

/// Time limit for all questions about a failed call together. So the questions delay the failure by at most this time.
const BUDGET: Duration = Duration::from_secs(2);
/// Maximum number of models that a message names.
const NAMED: usize = 5;

/// Adds the cause to a failure, if the server's list of models shows the cause. Otherwise returns the failure
/// unchanged.
///
/// The answers of the server take their memory from the budget `answers`.
pub(super) async fn explain(
    client: reqwest::Client,
    answers: Budget,
    endpoint: &Endpoint,
    failure: CallError,
) -> CallError {
    let inquirer = Inquirer::with(client, answers);
    let found = tokio::time::timeout(BUDGET, cause(&inquirer, endpoint, &failure)).await;
    match found {
        Ok(Some((kind, message))) => CallError { kind, message, ..failure },
        Ok(None) | Err(_) => failure,
    }
}

/// Returns the kind of the failure and a message that names the cause; `None` if the server does not show the cause.
async fn cause(
    inquirer: &Inquirer,
    endpoint: &Endpoint,
    failure: &CallError,
) -> Option<(FailureKind, String)> {
    if may_be_wrong_path(failure) {
        let others = other_bases(&endpoint.base_url);
        // If the server lists its models below the configured base URL, it also answers chats there. So this base URL
        // is right.
        if others.is_empty() || models(inquirer, endpoint, &endpoint.base_url).await.is_some() {
            return None;
        }
        for base_url in others {
            if models(inquirer, endpoint, &base_url).await.is_some() {
                let message = format!(
                    "nothing answers a chat at {}; a model server answers at {base_url}",
                    endpoint.base_url
                );
                return Some((FailureKind::WrongAddress, message));
            }
        }
        return None;
    }
    if !matches!(failure.kind, FailureKind::NoSuchModel | FailureKind::NothingLoaded) {
        return None;
    }
    let models = models(inquirer, endpoint, &endpoint.base_url).await.unwrap_or_default();
    // If the secrets cannot be read, no request was sent, so the server knows none of them.
    let target = Target::resolve(endpoint, |name| std::env::var(name).ok());
    let secrets = target.map(|target| target.secrets).unwrap_or_default();
    let said = failure.message.trim_end_matches('.');
    Some((failure.kind, format!("{said}; {}", named(&models, &secrets))))
}

/// Returns whether the path of the base URL may be the cause of the failure: the server may be a model server, but the
/// path may be wrong.
fn may_be_wrong_path(failure: &CallError) -> bool {
    match (failure.kind, failure.status) {
        (FailureKind::Refused, Some(404 | 405)) => true,
        // LM Studio answers an unknown path with a success status.
        (FailureKind::Passing | FailureKind::Refused, Some(200)) => {
            failure.message.to_lowercase().contains("unexpected endpoint")
        }
        _ => false,
    }
}

/// Guesses which base URLs the person may have meant. Some people leave out `/v1`. Others write `/v1` and then the path
/// of the chat call.
fn other_bases(base_url: &str) -> Vec<String> {
    let Ok(mut url) = reqwest::Url::parse(base_url.trim()) else { return Vec::new() };
    let written = url.path().trim_end_matches('/').to_owned();
    let paths = match written.split_once("/v1/") {
        Some((before, _)) => vec![format!("{before}/v1")],
        None if written.is_empty() => vec!["/v1".to_owned()],
        None if written.ends_with("/v1") => Vec::new(),
        None => vec![format!("{written}/v1"), "/v1".to_owned()],
    };
    let with_path = |path: String| {
        url.set_path(&path);
        url.to_string()
    };
    paths.into_iter().map(with_path).collect()
}

async fn models(inquirer: &Inquirer, endpoint: &Endpoint, base_url: &str) -> Option<Vec<String>> {
    let at = Endpoint { base_url: base_url.to_owned(), ..endpoint.clone() };
    let list = inquirer.ask(&at, Question::OfBase("models"), BUDGET).await.ok()?;
    let entries = list.get("data")?.as_array()?;
    let name = |entry: &Value| {
        entry.get("id")?.as_str().filter(|id| !id.chars().any(char::is_control)).map(str::to_owned)
    };
    Some(entries.iter().filter_map(name).collect())
}

/// Names some models of a server. The server chooses the names, so a name may be very long or contain a secret.
fn named(models: &[String], secrets: &[SecretString]) -> String {
    let shown = |model: &String| format!("{:?}", scrub_name(model, secrets));
    let shown: Vec<String> = models.iter().take(NAMED).map(shown).collect();
    match (shown.is_empty(), models.len() > NAMED) {
        (true, _) => "the server lists no models".to_owned(),
        (false, false) => format!("the server has {}", shown.join(", ")),
        (false, true) => format!("the server has {}, …", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_may_be_meant() {
        let check = |base_url: &str, expect: &[&str]| assert_eq!(other_bases(base_url), expect, "{base_url}");
        check("http://h:1", &["http://h:1/v1"]);
        check("http://h:1/", &["http://h:1/v1"]);
        check("http://h:1/v1", &[]);
        check("http://h:1/v1/", &[]);
        check("http://h:1/api", &["http://h:1/api/v1", "http://h:1/v1"]);
        check("http://h:1/v1/chat/completions", &["http://h:1/v1"]);
        check("nonsense", &[]);
    }
}
