//! The services and the MCP servers with their current state, and the configuration.

use super::Society;
use crate::ask::{self, DirectAnswer, DirectError, Line};
use crate::handles::Handles;
use polity_decide::foresee::rules_tokens;
use polity_hands::server_state::Standing;
use polity_llm::GateCircuit;
use polity_registry::{Origin, Place, Problem, ServerSettings, Service, Severity as Gravity, Snapshot};
use polity_society::id::ServiceId;
use polity_society::tool_group::ServerName;
use polity_store::Error;
use polity_store::view as readings;
use polity_view::{
    Circuit, ConfigProblem, ConfigView, PriceView, RefusedMedia, ServerCondition, ServerView, ServiceState,
    ServiceView, Severity, UsageSum,
};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

impl Society {
    /// Returns the services, in the order of `llmservices.json`.
    pub async fn services(&self) -> Result<Vec<ServiceView>, Error> {
        services(&self.handles).await
    }

    /// Returns a service; `None` if there is no service with this id.
    pub async fn service(&self, id: &ServiceId) -> Result<Option<ServiceView>, Error> {
        Ok(self.services().await?.into_iter().find(|service| service.id == *id))
    }

    /// Ends all pauses of a service, after failures or because the service asked for them. The next request is sent to
    /// it at once. Does nothing if there is no service with this id.
    pub fn try_again(&self, id: &ServiceId) {
        if let Some(service) = self.handles.registry.current().catalogue.service(id) {
            self.handles.gates.of(service).try_again();
        }
    }

    /// Returns the MCP servers of the configuration, sorted by name.
    pub fn servers(&self) -> Vec<ServerView> {
        servers(&self.handles)
    }

    /// Asks root's service once, outside the society. Nothing is stored. If the caller gives a schema, the answer is
    /// JSON that fits this schema.
    pub async fn ask_directly(
        &self,
        lines: &[Line],
        schema: Option<&Value>,
    ) -> Result<DirectAnswer, DirectError> {
        ask::direct(&self.handles, lines, schema).await
    }

    /// Returns the configuration in force, and the problems of its files.
    pub fn config(&self) -> ConfigView {
        let registry = &self.handles.registry;
        config(&registry.current(), registry.config_dir())
    }

    /// Returns everything that the configuration in force declares, without secrets.
    pub fn config_in_force(&self) -> serde_json::Value {
        self.handles.registry.current().to_json()
    }

    /// Reads the configuration files again, and brings valid changes into force.
    pub async fn reload(&self) -> ConfigView {
        self.handles.registry.reload().await;
        self.config()
    }
}

async fn services(handles: &Handles) -> Result<Vec<ServiceView>, Error> {
    let snapshot = handles.registry.current();
    let mut moment = handles.store.moment().await?;
    let mut agents: HashMap<ServiceId, u64> = HashMap::new();
    for (chosen, count) in readings::agents::by_service(&mut moment).await? {
        *agents.entry(snapshot.catalogue.service_for(chosen.as_ref()).id.clone()).or_default() += count;
    }
    let spent = readings::usage::by_service(&mut moment).await?;
    let show = |service: &std::sync::Arc<Service>| {
        let usage = spent.get(&service.id).copied().unwrap_or_default();
        let agents = agents.get(&service.id).copied().unwrap_or_default();
        view(handles, &snapshot, service, agents, usage)
    };
    Ok(snapshot.catalogue.services().iter().map(show).collect())
}

fn servers(handles: &Handles) -> Vec<ServerView> {
    let standings: HashMap<ServerName, Standing> =
        handles.hands.servers().into_iter().map(|state| (state.name, state.standing)).collect();
    let snapshot = handles.registry.current();
    let view = |(name, settings): (&ServerName, &ServerSettings)| {
        let (state, reason) = match standings.get(name) {
            None => (ServerCondition::NotRunning, None),
            Some(Standing::Starting) => (ServerCondition::Starting, None),
            Some(Standing::Connected { .. }) => (ServerCondition::Connected, None),
            Some(Standing::Failed { why }) => (ServerCondition::Failed, Some(why.clone())),
            Some(Standing::Restarting { why }) => (ServerCondition::Restarting, Some(why.clone())),
            Some(Standing::Unusable { why }) => (ServerCondition::Unusable, Some(why.clone())),
        };
        let (tools, left_out) = match standings.get(name) {
            Some(Standing::Connected { tools, left_out }) => (Some(*tools as u64), Some(*left_out as u64)),
            Some(_) | None => (None, None),
        };
        let groups = settings.groups.iter().cloned().collect();
        ServerView { name: name.clone(), state, tools, left_out, reason, groups }
    };
    snapshot.settings.servers.iter().map(view).collect()
}

fn view(
    handles: &Handles,
    snapshot: &Snapshot,
    service: &Service,
    agents: u64,
    usage: UsageSum,
) -> ServiceView {
    let distrust = handles.trusts.distrust(snapshot, &service.id);
    let refused = (!distrust.refused.is_empty()).then(|| RefusedMedia {
        all: distrust.of_all == crate::trust::OfAll::Yes,
        artifacts: distrust.refused.into_iter().collect(),
    });
    ServiceView {
        id: service.id.clone(),
        name: service.name.clone(),
        model: service.endpoint.model.clone(),
        // The URL contains no secret: the registry accepts no URL with a user name, a password or a query.
        base_url: service.endpoint.base_url.clone(),
        capabilities: service.capabilities.clone(),
        calls_tools: service.tools_allowed(),
        capability_tags: service.capability_tags.clone(),
        description: Some(service.description.clone()).filter(|text| !text.is_empty()),
        context_window: service.context_window,
        rules_tokens: rules_tokens(service, &snapshot.prompts),
        max_concurrent: service.max_concurrent.map(|most| most.get() as u64),
        fallback: service.fallback.clone(),
        price: service.price.map(|price| PriceView { input: price.input, output: price.output }),
        is_default: snapshot.catalogue.default_service().id == service.id,
        key_set: service.endpoint.has_key(|name| std::env::var(name).ok()),
        agents,
        state: state(handles, service),
        usage,
        refused_media: refused,
    }
}

/// Returns the current state of each service, in the order of `llmservices.json`.
pub(super) fn states(handles: &Handles, snapshot: &Snapshot) -> Vec<(ServiceId, ServiceState)> {
    let services = snapshot.catalogue.services().iter();
    services.map(|service| (service.id.clone(), state(handles, service))).collect()
}

fn state(handles: &Handles, service: &Service) -> ServiceState {
    let Some(gate) = handles.gates.known(service) else { return ServiceState::default() };
    let status = gate.status();
    ServiceState {
        in_flight: status.in_flight,
        waiting: status.waiting,
        paused_for_ms: status.paused_for.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        circuit: match status.circuit {
            GateCircuit::Closed => Circuit::Closed,
            GateCircuit::Open => Circuit::Open,
            GateCircuit::HalfOpen => Circuit::HalfOpen,
        },
        last_error: status.last_failure.map(|failure| failure.to_string()),
        failing_since: status.failing_for.map(|long| {
            polity_store::now()
                .as_millis()
                .saturating_sub(i64::try_from(long.as_millis()).unwrap_or(i64::MAX))
        }),
    }
}

fn config(snapshot: &Snapshot, directory: &Path) -> ConfigView {
    let default = snapshot.catalogue.default_service();
    ConfigView {
        revision: snapshot.revision,
        directory: Some(absolute(directory).display().to_string()),
        origin: snapshot.catalogue.origin().to_string(),
        is_rehearsal: *snapshot.catalogue.origin() == Origin::Rehearsal,
        language: snapshot.settings.language,
        problems: snapshot.problems.iter().map(problem).collect(),
        services: snapshot.catalogue.services().iter().map(|service| service.id.clone()).collect(),
        default_service: default.id.clone(),
        default_service_url: Some(default.endpoint.base_url.clone()),
        default_context_window: default.context_window,
        limits: snapshot.settings.limits,
        prompts: snapshot.settings.prompts.as_ref().map(|path| path.display().to_string()),
    }
}

/// Returns the absolute path, so that processes with another working directory can use it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn problem(problem: &Problem) -> ConfigProblem {
    let (pointer, line, column) = match &problem.place {
        Place::Whole => (None, None, None),
        Place::Pointer(pointer) => (Some(pointer.clone()), None, None),
        Place::Position { line, column } => (None, Some(*line as u64), Some(*column as u64)),
    };
    ConfigProblem {
        file: problem.file.clone(),
        pointer,
        line,
        column,
        severity: match problem.severity {
            Gravity::Error => Severity::Error,
            Gravity::Warning => Severity::Warning,
        },
        message: problem.what.clone(),
        done: problem.done.clone(),
    }
}
