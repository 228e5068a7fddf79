//! Examines one service: asks its server for facts, and makes a trial call.

use crate::answers::{list, llama_cpp, lm_studio, ollama};
use crate::facts::{Facts, SMALL_WINDOW, Server, Support};
use crate::finding::Finding;
use crate::judge::judge;
use crate::trial::{ToolTrial, Trial, TryTools, try_out};
use polity_llm::{CallError, ChatModel, FailureKind, Inquirer, Question};
use polity_registry::Service;
use polity_society::content::{Capability, Direction};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use url::{Host, Url};

/// Time limits, so that a server that hangs does not block the examination.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Limit for each question to a server about itself.
    pub question: Duration,
    /// Limit for each trial call, including the time in which the server loads the model.
    pub call: Duration,
}

/// The result of an examination.
#[derive(Debug)]
pub struct Examination {
    /// The facts that the server reports.
    pub facts: Facts,
    /// The result of the trial call.
    pub trial: Trial,
    /// All findings about the service, including those with [`Severity::Ok`](crate::Severity::Ok).
    pub findings: Vec<Finding>,
}

/// Examines a service. Asks the server several questions and makes up to two calls; `times` limits each question and
/// each call.
pub async fn examine(
    inquirer: &Inquirer,
    model: &dyn ChatModel,
    service: &Service,
    times: Times,
) -> Examination {
    let examined = Examined { inquirer, service, times };
    let mut facts = Facts::default();
    match examined.survey(&mut facts).await {
        Ok(()) => {}
        Err(error) if is_in_vain(&error) => {
            let trial = Trial { answer: Err(error), tools: ToolTrial::NotTried };
            let findings = judge(service, &facts, &trial);
            return Examination { facts, trial, findings };
        }
        // Continue without the list of models. Some servers have no such list, and some API keys do not permit the
        // client to read the list.
        Err(_) => {}
    }
    // Try a call with a tool, except in two cases: if the server says that the model calls tools, and if polity sends
    // no tools to this service. If the server says that the model calls no tools, try anyway, because the server may
    // still accept the call.
    let is_told = facts.told(&Capability::TOOL_CALLING, Direction::Output) == Some(Support::Has);
    let tools = if is_told || !service.tools_allowed() { TryTools::Spare } else { TryTools::Try };
    let trial = try_out(model, &service.endpoint, tools, times.call).await;
    if trial.answer.is_ok() {
        examined.look_at_loaded(&mut facts).await;
    }
    let findings = judge(service, &facts, &trial);
    Examination { facts, trial, findings }
}

/// Asks the server of a service about itself, without a call. Returns the context window that the server gives now, if
/// the service declares a small window and the server gives a larger one. `question` limits each of two rounds of
/// questions; a service that declares no small window needs only one.
///
/// # Errors
///
/// Fails if no server answers in time, or if the service cannot be asked as it is declared. A server that answers with
/// an error is there, so this function does not fail then.
pub async fn glance(
    inquirer: &Inquirer,
    service: &Service,
    question: Duration,
) -> Result<Option<u64>, CallError> {
    let examined = Examined { inquirer, service, times: Times { question, call: question } };
    let small = service.context_window.filter(|window| *window < SMALL_WINDOW);
    let mut facts = Facts::default();
    let asked = match small {
        Some(_) => examined.survey(&mut facts).await,
        None => examined.ask(Question::OfBase("models")).await.map(|_| ()),
    };
    if let Err(error) = asked
        && (is_in_vain(&error) || error.kind == FailureKind::TimedOut)
    {
        return Err(error);
    }
    let Some(declared) = small else { return Ok(None) };
    examined.look_at_loaded(&mut facts).await;
    Ok(facts.window.instead_of(declared))
}

/// The question to the server has failed with this error. Returns whether a trial call would certainly fail in the same
/// way.
fn is_in_vain(error: &CallError) -> bool {
    matches!(error.kind, FailureKind::Unreachable | FailureKind::Misconfigured)
}

/// A service, with all that is needed to ask its server.
pub(crate) struct Examined<'e> {
    pub(crate) inquirer: &'e Inquirer,
    pub(crate) service: &'e Service,
    pub(crate) times: Times,
}

impl Examined<'_> {
    async fn ask(&self, question: Question<'_>) -> Result<Value, CallError> {
        self.inquirer.ask(&self.service.endpoint, question, self.times.question).await
    }

    /// Asks for the list of models. If the server is on this machine or on the local network, also requests the paths
    /// that only certain kinds of servers have.
    pub(crate) async fn survey(&self, facts: &mut Facts) -> Result<(), CallError> {
        let model = self.service.endpoint.model.as_str();
        let listed = self.ask(Question::OfBase("models"));
        if !is_near(&self.service.endpoint.base_url) {
            facts.add(list::read(&listed.await?, model).unwrap_or_default());
            return Ok(());
        }
        let about = json!({"model": model});
        let (listed, shown, kinds, properties) = tokio::join!(
            listed,
            self.ask(Question::OfServerAbout("api/show", &about)),
            self.ask(Question::OfServer("api/v0/models")),
            self.ask(Question::OfServer("props")),
        );
        let listed = listed.map(|body| list::read(&body, model).unwrap_or_default());
        let alone =
            listed.as_ref().ok().and_then(|facts| facts.models.as_ref()).is_some_and(|all| all.len() == 1);
        facts.add(listed.as_ref().cloned().unwrap_or_default());
        // `props` describes only the model that the server runs now. If the server has several models, this may be
        // another model than the requested one. So the answer counts only if the server has one model.
        let properties = properties.ok().filter(|_| alone);
        let native = [
            shown.ok().and_then(|body| ollama::show(&body)),
            kinds.ok().and_then(|body| lm_studio::read(&body, model)),
            properties.and_then(|body| llama_cpp::read(&body)),
        ];
        // At most one of these answers counts, because a server is of one kind only.
        for native in native.into_iter().flatten().take(1) {
            facts.add(native);
        }
        listed.map(|_| ())
    }

    /// If the context window is still unknown, asks for the window of the loaded model. Some servers report the
    /// window only while a model is loaded.
    pub(crate) async fn look_at_loaded(&self, facts: &mut Facts) {
        if facts.window.in_force.is_some() {
            return;
        }
        let model = self.service.endpoint.model.as_str();
        facts.window.in_force = match facts.server {
            Server::Ollama => {
                let running = self.ask(Question::OfServer("api/ps")).await.ok();
                running.and_then(|body| ollama::running(&body, model))
            }
            Server::LmStudio => {
                let kinds = self.ask(Question::OfServer("api/v0/models")).await.ok();
                kinds.and_then(|body| lm_studio::read(&body, model)).and_then(|facts| facts.window.in_force)
            }
            Server::LlamaCpp | Server::Vllm | Server::OpenRouter | Server::Other => None,
        };
    }
}

/// Returns whether a server is on this machine or on the local network. Some paths exist only on certain kinds of
/// servers. polity requests such paths only from a server for which this returns `true`.
fn is_near(base_url: &str) -> bool {
    match Url::parse(base_url).ok().and_then(|url| url.host().map(|host| host.to_owned())) {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            !name.contains('.')
                || [".local", ".localhost", ".lan", ".home.arpa", ".internal"]
                    .iter()
                    .any(|end| name.ends_with(end))
        }
        Some(Host::Ipv4(address)) => is_private(address.into()),
        Some(Host::Ipv6(address)) => is_private(address.into()),
        None => false,
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

impl Examination {
    /// Returns whether the facts are certainly about the model that answered the trial call.
    pub fn is_sure(&self) -> bool {
        let speaks = self.facts.told(&Capability::TEXT, Direction::Output) != Some(Support::HasNot);
        self.trial.answer.is_ok() && speaks
    }
}

#[cfg(test)]
mod tests;
