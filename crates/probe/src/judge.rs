//! Compares the declaration of a service with the facts that the server reports and with the trial call.

use crate::facts::{Facts, SMALL_WINDOW, Server, Support};
use crate::finding::{Field, Finding, Severity};
use crate::trial::{ToolTrial, Trial};
use polity_llm::{CallError, FailureKind, ServerKind};
use polity_registry::{Declaration, Remedy, Service, larger_window, without_tools};
use polity_society::content::{Capability, Direction};
use polity_society::id::ServiceId;
use std::collections::BTreeMap;
use std::time::Duration;

/// A service is slow if a short answer takes longer than this.
const SLOW: Duration = Duration::from_secs(20);
/// Number of models that are suggested in place of a missing model.
const GUESSES: usize = 3;
/// Minimum similarity of a suggested name to the missing name. A similarity is a number from 0 to 1.
const NEAR: f64 = 0.5;

/// Returns all findings about a service.
pub(crate) fn judge(service: &Service, facts: &Facts, trial: &Trial) -> Vec<Finding> {
    let mut findings = of_answer(service, facts, trial);
    findings.extend(of_tools(service, facts, &trial.tools));
    findings.extend(of_capabilities(service, facts));
    findings.extend(of_window(service, facts));
    findings
}

/// Returns the findings for which the declaration of a service is enough. The server is not asked.
pub fn of_declaration(service: &Service) -> Vec<Finding> {
    of_window(service, &Facts::default()).into_iter().chain(tools_not_declared(service)).collect()
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
        // The server says that the request is wrong, and its list does not contain the model. So the missing model is
        // the cause.
        Err(error) if is_missing && blames_request(error) => {
            let missing = CallError { kind: FailureKind::NoSuchModel, ..error.clone() };
            let Remedy { code, advice } = Remedy::of(service, &missing, kind(service, facts.server));
            let what = format!("there is no model {model:?} on this server ({})", error.message);
            vec![Finding::problem(code, what, format!("{advice}{}", guesses(facts, model)))]
        }
        Err(error) => vec![failed(service, facts.server, error)],
    }
}

fn blames_request(error: &CallError) -> bool {
    matches!(
        error.kind,
        FailureKind::Refused | FailureKind::NoSuchModel | FailureKind::NotAnAnswer | FailureKind::Passing
    )
}

/// Returns the kind of a service's server. If the server does not report its kind, returns the kind that usually
/// listens on the service's port.
fn kind(service: &Service, server: Server) -> Option<ServerKind> {
    match server {
        Server::Ollama => Some(ServerKind::Ollama),
        Server::LmStudio => Some(ServerKind::LmStudio),
        Server::LlamaCpp => Some(ServerKind::LlamaCpp),
        Server::Vllm => Some(ServerKind::Vllm),
        Server::OpenRouter => None,
        Server::Other => ServerKind::usual_at(&service.endpoint.base_url),
    }
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

/// Returns the end of a sentence about a missing model. For example, the end suggests models with similar names.
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
    let Remedy { code, advice } = Remedy::of(service, error, kind(service, server));
    let who = if server == Server::Other { String::new() } else { format!("{server}: ") };
    Finding::problem(code, format!("no answer: {who}{error}"), advice)
}

fn of_tools(service: &Service, facts: &Facts, trial: &ToolTrial) -> Option<Finding> {
    if !service.tools_allowed() {
        return tools_not_declared(service);
    }
    match (facts.told(&Capability::TOOL_CALLING, Direction::Output), trial) {
        // This is a problem and not only a warning. Every request of an agent offers tools, so the server would refuse
        // every request.
        (told, ToolTrial::Refused(error)) => {
            let what =
                format!("does not accept tools: the server refused a call with a tool ({})", error.message);
            Some(no_tools(Severity::Problem, what, service, told))
        }
        (told @ Some(Support::HasNot), _) => {
            let what = format!("{} reports that the model does not call tools", facts.server);
            Some(no_tools(Severity::Warning, what, service, told))
        }
        (Some(Support::Has), _) => {
            Some(Finding::ok("tools", format!("{} reports that the model calls tools", facts.server)))
        }
        (None, ToolTrial::Taken) => Some(Finding::ok("tools", "accepts tools")),
        (None, ToolTrial::NotTried | ToolTrial::Unclear) => None,
    }
}

fn no_tools(severity: Severity, what: String, service: &Service, told: Option<Support>) -> Finding {
    let finding = Finding { severity, ..Finding::warning("no_tools", what, without_tools(service)) };
    // Corrections follow only from reports of the server. If only the trial call has failed, there is no correction.
    if told == Some(Support::HasNot) { finding.settled_by(Field::Output) } else { finding }
}

fn tools_not_declared(service: &Service) -> Option<Finding> {
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
    let sides =
        [(Direction::Input, &facts.input, Field::Input), (Direction::Output, &facts.output, Field::Output)];
    let mut findings = Vec::new();
    for (direction, told, field) in sides {
        for (capability, support) in told {
            let is_declared = is_declared(service, capability, direction);
            let name = capability.as_str();
            match support {
                Support::Has if !is_declared => {
                    let what =
                        format!("{server} reports that the model has {name:?}, but it is not declared");
                    let advice = format!("add {name:?} to {}", field.name());
                    findings.push(Finding::hint("not_declared", what, advice).settled_by(field));
                }
                // `tool_calling` is left out here, because `of_tools` reports it.
                Support::HasNot if is_declared && *capability != Capability::TOOL_CALLING => {
                    let what =
                        format!("{name:?} is declared, but {server} reports that the model does not have it");
                    let advice = format!("remove {name:?} from {}", field.name());
                    findings.push(Finding::warning("not_there", what, advice).settled_by(field));
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
    let outgrown = declared.and_then(|declared| Some((declared, window.instead_of(declared)?)));
    if let Some((declared, there)) = outgrown {
        let what =
            format!("contextWindow is {declared}, but {} now gives the model {there} tokens", facts.server);
        let advice = format!("set contextWindow to {there}");
        let finding = Finding::warning("window_outgrown", what, advice).settled_by(Field::Window);
        let small = small_window(&service.id, there, kind(service, facts.server));
        return std::iter::once(finding).chain(small).collect();
    }
    let mut findings = Vec::new();
    match (declared, window.in_force, window.largest) {
        (Some(declared), Some(there), _) if declared > there => findings.push(Finding::warning(
            "window_too_large",
            format!("contextWindow is {declared}, but {} gives the model only {there} tokens", facts.server),
            format!(
                "set contextWindow to {there}, or {}",
                larger_window(&service.id, Some(there), kind(service, facts.server))
            ),
        )),
        (Some(declared), None, Some(largest)) if declared > largest => findings.push(Finding::warning(
            "window_too_large",
            format!("contextWindow is {declared}, but the model supports at most {largest} tokens"),
            format!("set contextWindow to {largest} or less"),
        )),
        (None, Some(there), _) => {
            let what =
                format!("contextWindow is not declared; {} gives the model {there} tokens", facts.server);
            let advice = format!("set contextWindow to {there}");
            findings.push(Finding::hint("window_not_declared", what, advice).settled_by(Field::Window));
        }
        (Some(_), _, _) | (None, None, _) => {}
    }
    let counts = [declared, window.in_force].into_iter().flatten().min();
    findings.extend(counts.and_then(|window| small_window(&service.id, window, kind(service, facts.server))));
    findings
}

/// Returns a warning if the context window of a service is small. `server` only affects the advice.
pub fn small_window(id: &ServiceId, tokens: u64, server: Option<ServerKind>) -> Option<Finding> {
    if tokens >= SMALL_WINDOW {
        return None;
    }
    let what = format!(
        "a context window of {tokens} tokens is small: agents get short rules and few tools, and older turns are soon \
         summed up"
    );
    Some(Finding::warning("window_small", what, larger_window(id, Some(tokens), server)))
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
        // The loop finds a circle several times, once from each of its services. Report the circle only from the
        // service with the smallest id.
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
