//! Compares the declaration of a service with the facts that the server reports and with the trial call.

use crate::facts::{Facts, Server, Support};
use crate::finding::Finding;
use crate::trial::{ToolTrial, Trial};
use polity_llm::{CallError, FailureKind};
use polity_registry::{Declaration, Service};
use polity_society::content::{Capability, Direction};
use polity_society::id::ServiceId;
use std::collections::BTreeMap;
use std::time::Duration;

/// A context window of fewer tokens than this is small: the rules and a task brief alone take thousands of tokens.
const SMALL_WINDOW: u64 = 8_192;
/// A service is slow if a short answer takes longer than this.
const SLOW: Duration = Duration::from_secs(20);
/// Number of models that are suggested in place of a missing model.
const GUESSES: usize = 3;
/// Minimum similarity between a suggested name and the missing name, between 0 and 1.
const NEAR: f64 = 0.5;

/// Returns all findings about a service.
pub(crate) fn judge(service: &Service, facts: &Facts, trial: &Trial) -> Vec<Finding> {
    let mut findings = of_answer(service, facts, trial);
    findings.extend(of_tools(service, facts, &trial.tools));
    findings.extend(of_capabilities(service, facts));
    findings.extend(of_window(service, facts));
    findings
}

/// Returns the findings about a service that polity can make without asking the server.
pub fn of_declaration(service: &Service) -> Vec<Finding> {
    of_window(service, &Facts::default()).into_iter().chain(without_tools(service)).collect()
}

fn of_answer(service: &Service, facts: &Facts, trial: &Trial) -> Vec<Finding> {
    let model = service.endpoint.model.as_str();
    let is_missing = facts.models.is_some() && facts.listed(model).is_none();
    match &trial.answer {
        Ok(took) => {
            let mut findings = vec![answered(*took)];
            if is_missing {
                findings.push(Finding::hint(
                    "model_not_listed",
                    format!("{} answers, but does not list the model {model:?}", facts.server),
                    format!(
                        "if another model answers than the one you want, set \"model\" to a name from the list{}",
                        guesses(facts, model)
                    ),
                ));
            }
            findings
        }
        // The server says that the request is wrong, and does not list the model. So the missing model is the cause.
        Err(error) if is_missing && blames_request(error) => vec![Finding::problem(
            "model_missing",
            format!("there is no model {model:?} on this server ({})", error.message),
            match facts.server {
                Server::Ollama => {
                    format!("run `ollama pull {model}`, or change \"model\"{}", guesses(facts, model))
                }
                _ => format!("change \"model\"{}", guesses(facts, model)),
            },
        )],
        Err(error) => vec![failed(service, facts.server, error)],
    }
}

fn blames_request(error: &CallError) -> bool {
    matches!(error.kind, FailureKind::Refused | FailureKind::NotAnAnswer | FailureKind::Passing)
}

fn answered(took: Duration) -> Finding {
    let what = match took.as_millis() {
        milliseconds @ ..1_000 => format!("answers a small call in {milliseconds} ms"),
        _ => format!("answers a small call in {:.1} s", took.as_secs_f64()),
    };
    if took < SLOW {
        return Finding::ok("answers", what);
    }
    let advice =
        "the first call may have to load the model, so try again; if it stays slow, use a smaller model";
    Finding::hint("slow", what, advice)
}

/// Suggests the models with the most similar names, as the end of a sentence.
fn guesses(facts: &Facts, model: &str) -> String {
    let models = facts.models.iter().flatten();
    let mut scored: Vec<(f64, &String)> = models
        .map(|listed| {
            (strsim::normalized_damerau_levenshtein(&listed.to_lowercase(), &model.to_lowercase()), listed)
        })
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let near: Vec<String> = scored.iter().take(GUESSES).map(|(_, listed)| format!("{listed:?}")).collect();
    let all = facts.models.as_deref().unwrap_or_default();
    match (near.as_slice(), all) {
        ([], []) => "; the server lists no models".to_owned(),
        ([], [first, ..]) if all.len() == 1 => format!("; the server has {first:?}"),
        ([], _) => String::new(),
        (near, _) => format!("; perhaps you mean {}", near.join(" or ")),
    }
}

fn failed(service: &Service, server: Server, error: &CallError) -> Finding {
    let is_local =
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| service.endpoint.base_url.contains(host));
    let (code, advice) = match error.kind {
        FailureKind::Unreachable if is_local => {
            ("unreachable", "start the server, or correct the port in \"baseURL\"")
        }
        FailureKind::Unreachable => {
            ("unreachable", "check \"baseURL\", and whether this machine can reach it")
        }
        FailureKind::TimedOut => (
            "timed_out",
            "check whether the server is busy or stuck; if it only has to load the model, try again with a longer --timeout",
        ),
        FailureKind::RateLimited => ("rate_limited", "wait, or raise the limits of your account"),
        FailureKind::Passing => {
            ("server_error", "check the server's log; if the server is overloaded, try again later")
        }
        FailureKind::Unauthorized => {
            ("key_refused", "correct \"apiKey\", or the environment variable that it names")
        }
        FailureKind::ContextOverflow => {
            ("context_overflow", "give the model a larger context window: even a short question does not fit")
        }
        FailureKind::CallNotParsed => (
            "call_not_parsed",
            "the server cannot read the tool calls that the model writes: use the chat template that belongs to the model",
        ),
        FailureKind::MediaRefused | FailureKind::Refused => (
            "refused",
            "check \"model\", \"extraBody\" and \"dialect\": the server does not accept the request",
        ),
        FailureKind::BrokenOff => ("broken_off", "check the server's log: the server closed the connection"),
        FailureKind::NotAnAnswer => (
            "not_an_answer",
            "check \"baseURL\": this address does not offer Chat Completions (most servers need a path such as /v1)",
        ),
        FailureKind::Misconfigured => {
            ("misconfigured", "correct this in llmservices.json or in the environment")
        }
    };
    let who = if server == Server::Other { String::new() } else { format!("{server}: ") };
    Finding::problem(code, format!("no answer: {who}{error}"), advice)
}

fn of_tools(service: &Service, facts: &Facts, trial: &ToolTrial) -> Option<Finding> {
    let advice = "agents work by calling tools: use another model, or declare an output without \"tool_calling\", so that the model gets no tools";
    if !service.tools_allowed() {
        return without_tools(service);
    }
    match (facts.told(&Capability::TOOL_CALLING, Direction::Output), trial) {
        (Some(Support::HasNot), _) => {
            let what = format!("{} reports that the model does not call tools", facts.server);
            Some(Finding::warning("no_tools", what, advice))
        }
        (_, ToolTrial::Refused(error)) => {
            let what =
                format!("does not accept tools: the server refused a call with a tool ({})", error.message);
            Some(Finding::warning("no_tools", what, advice))
        }
        (Some(Support::Has), _) => Some(Finding::ok("tools", "calls tools")),
        (None, ToolTrial::Taken) => Some(Finding::ok("tools", "accepts tools")),
        (None, ToolTrial::NotTried | ToolTrial::Unclear) => None,
    }
}

fn without_tools(service: &Service) -> Option<Finding> {
    let what = "gets no tools, because its declared output has no \"tool_calling\"";
    let advice = "agents on this service can only answer; add \"tool_calling\" if the model can call tools";
    (!service.tools_allowed()).then(|| Finding::hint("tools_not_declared", what, advice))
}

fn of_capabilities(service: &Service, facts: &Facts) -> Vec<Finding> {
    let server = facts.server;
    if facts.told(&Capability::TEXT, Direction::Output) == Some(Support::HasNot) {
        let what = format!("{server} reports that the model does not write text");
        return vec![Finding::problem("not_a_chat_model", what, "set \"model\" to a chat model")];
    }
    let sides = [(Direction::Input, &facts.input, "input"), (Direction::Output, &facts.output, "output")];
    let mut findings = Vec::new();
    for (direction, told, side) in sides {
        for (capability, support) in told {
            let is_declared = is_declared(service, capability, direction);
            let name = capability.as_str();
            match support {
                Support::Has if !is_declared => findings.push(Finding::hint(
                    "not_declared",
                    format!("{server} reports that the model has {name:?}, but it is not declared"),
                    format!("add {name:?} to capabilities.{side}, or run `polity doctor --fix`"),
                )),
                // `tool_calling` is left out here, because `of_tools` reports it.
                Support::HasNot if is_declared && *capability != Capability::TOOL_CALLING => {
                    findings.push(Finding::warning(
                        "not_there",
                        format!("{name:?} is declared, but {server} reports that the model does not have it"),
                        format!("remove {name:?} from capabilities.{side}, or run `polity doctor --fix`"),
                    ));
                }
                Support::Has | Support::HasNot => {}
            }
        }
    }
    findings
}

/// Returns whether a capability counts as declared. `tool_calling` also counts as declared if a service declares no
/// output, because polity sends tools to such a service.
pub(crate) fn is_declared(service: &Service, capability: &Capability, direction: Direction) -> bool {
    let is_tools = *capability == Capability::TOOL_CALLING && direction == Direction::Output;
    service.capabilities.has(capability, direction)
        || (is_tools && service.declared != Declaration::Declared && service.tools_allowed())
}

fn of_window(service: &Service, facts: &Facts) -> Vec<Finding> {
    let (declared, window) = (service.context_window, facts.window);
    let mut findings = Vec::new();
    match (declared, window.in_force, window.largest) {
        (Some(declared), Some(there), _) if declared > there => findings.push(Finding::warning(
            "window_too_large",
            format!("contextWindow is {declared}, but {} gives the model only {there} tokens", facts.server),
            format!(
                "set contextWindow to {there}{}",
                larger(facts.server).map(|how| format!(", or {how}")).unwrap_or_default()
            ),
        )),
        (Some(declared), None, Some(largest)) if declared > largest => findings.push(Finding::warning(
            "window_too_large",
            format!("contextWindow is {declared}, but the model supports at most {largest} tokens"),
            format!("set contextWindow to {largest} or less"),
        )),
        (None, Some(there), _) => findings.push(Finding::hint(
            "window_not_declared",
            format!("contextWindow is not declared; {} gives the model {there} tokens", facts.server),
            format!("set contextWindow to {there}, or run `polity doctor --fix`"),
        )),
        (Some(_), _, _) | (None, None, _) => {}
    }
    let counts = [declared, window.in_force].into_iter().flatten().min();
    findings.extend(counts.and_then(|window| small_window(window, facts.server)));
    findings
}

/// Returns a warning if a context window is small. `server` only affects the advice; if the kind of server is
/// unknown, pass [`Server::Other`].
pub fn small_window(tokens: u64, server: Server) -> Option<Finding> {
    if tokens >= SMALL_WINDOW {
        return None;
    }
    let what = format!(
        "a context window of {tokens} tokens is small: agents get short rules and few tools, and older turns are soon \
         summed up"
    );
    let how = larger(server).unwrap_or(
        "give the model a larger context window and declare it as contextWindow in llmservices.json, or use another model",
    );
    Some(Finding::warning("window_small", what, how))
}

/// Returns advice on how to give a model a larger context window on this kind of server.
fn larger(server: Server) -> Option<&'static str> {
    match server {
        Server::Ollama => Some("start Ollama with a larger OLLAMA_CONTEXT_LENGTH"),
        Server::LmStudio => Some("load the model with a larger context length in LM Studio"),
        Server::LlamaCpp => Some("start llama-server with a larger --ctx-size"),
        Server::Vllm => Some("start vLLM with a larger --max-model-len"),
        Server::OpenRouter | Server::Other => None,
    }
}

/// Warns of fallbacks that form a circle, once for each circle.
pub fn circles<'s>(services: impl IntoIterator<Item = &'s Service>) -> Vec<Finding> {
    let next: BTreeMap<&ServiceId, Option<&ServiceId>> =
        services.into_iter().map(|service| (&service.id, service.fallback.as_ref())).collect();
    let mut findings = Vec::new();
    for start in next.keys().copied() {
        let mut way = vec![start];
        let mut at = start;
        while let Some(to) = next.get(at).copied().flatten().filter(|to| !way.contains(to)) {
            way.push(to);
            at = to;
        }
        let closes = next.get(at).copied().flatten() == Some(start);
        // The loop finds a circle once from each of its members. Only the member with the smallest id reports the
        // circle.
        if closes && way.iter().all(|member| *member >= start) {
            let names: Vec<&str> = way.iter().map(|id| id.as_str()).chain([start.as_str()]).collect();
            findings.push(Finding::warning(
                "fallback_circle",
                format!("fallbacks go in a circle: {}", names.join(" → ")),
                "remove one \"fallback\", or set it to a service that does not fall back on these",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
