//! `GET /metrics`: metrics for Prometheus.

mod exposition;

use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::extract::State;
use axum::http::{HeaderName, header};
use exposition::{Exposition, Sort};
use polity_view::{AgentState, Circuit, ConfigView, DataFacts, ServiceUsage, ServiceView, Severity};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/metrics", "metrics", metrics, |operation| {
        operation.summary("Metrics for Prometheus.").gives_content(
            200,
            "The metrics.",
            "text/plain",
            json!({"type": "string"}),
        )
    });
}

async fn metrics(
    State(shared): State<Arc<Shared>>,
) -> Result<([(HeaderName, &'static str); 1], String), Problem> {
    let figures = Figures {
        uptime: shared.started.elapsed(),
        jobs: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        facts: shared.society.data_facts().await?,
        agents: shared.society.agent_states().await?,
        services: shared.society.services().await?,
        spent: shared.society.spent().await?,
        config: shared.society.config(),
        newest_event: *shared.society.newest_event().borrow(),
    };
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], figures.written()))
}

/// The name of a metric, its help text, and a function that reads its value from a service.
type Gauge = (&'static str, &'static str, fn(&ServiceView) -> f64);

/// The data from which all metrics are computed.
struct Figures {
    uptime: Duration,
    /// Number of tasks of the asynchronous runtime, which have nothing to do with the tasks of the society.
    jobs: usize,
    facts: DataFacts,
    agents: Vec<(AgentState, u64)>,
    services: Vec<ServiceView>,
    spent: Vec<ServiceUsage>,
    config: ConfigView,
    newest_event: i64,
}

impl Figures {
    fn written(&self) -> String {
        let mut out = Exposition::default();
        self.process(&mut out);
        self.society(&mut out);
        self.spent(&mut out);
        self.gates(&mut out);
        out.finish()
    }

    fn process(&self, out: &mut Exposition) {
        out.family("polity_build_info", Sort::Gauge, "The version of the running daemon.");
        out.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        out.family("polity_uptime_seconds", Sort::Gauge, "How long the daemon has been serving.");
        out.sample(&[], self.uptime.as_secs_f64());
        out.family(
            "polity_runtime_jobs",
            Sort::Gauge,
            "Jobs of the asynchronous runtime, such as connections.",
        );
        out.sample(&[], self.jobs as f64);
        out.family("polity_config_revision", Sort::Gauge, "The revision of the configuration in force.");
        out.sample(&[], self.config.revision as f64);
        out.family("polity_config_problems", Sort::Gauge, "Problems in the current configuration files.");
        for (severity, name) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
            let count = self.config.problems.iter().filter(|problem| problem.severity == severity).count();
            out.sample(&[("severity", name)], count as f64);
        }
        out.family("polity_data_writable", Sort::Gauge, "Whether the data directory can be written to.");
        out.sample(&[], f64::from(u8::from(self.facts.writable)));
    }

    fn society(&self, out: &mut Exposition) {
        let facts = &self.facts;
        out.family("polity_agents", Sort::Gauge, "Agents that have not ended.");
        for (state, count) in &self.agents {
            out.sample(&[("state", state.as_str())], *count as f64);
        }
        out.family("polity_tasks", Sort::Gauge, "Tasks.");
        out.sample(&[("state", "open")], facts.open_tasks as f64);
        out.sample(&[("state", "idle")], facts.tasks.saturating_sub(facts.open_tasks) as f64);
        out.family("polity_messages", Sort::Gauge, "Stored messages.");
        out.sample(&[("state", "waiting")], facts.waiting_messages as f64);
        out.sample(&[("state", "read")], facts.messages.saturating_sub(facts.waiting_messages) as f64);
        out.family("polity_artifacts", Sort::Gauge, "Stored artifacts.");
        out.sample(&[], facts.artifacts as f64);
        out.family("polity_artifact_bytes", Sort::Gauge, "Bytes of all artifacts, duplicates included.");
        out.sample(&[], facts.artifact_bytes as f64);
        out.family("polity_database_bytes", Sort::Gauge, "Bytes of the database that are in use.");
        out.sample(&[], facts.database_bytes as f64);
        out.family("polity_events_total", Sort::Counter, "Events since the data directory was created.");
        // The number of the newest event comes from this process and not from the database, because the event may
        // have been deleted from the database.
        out.sample(&[], self.newest_event as f64);
    }

    fn spent(&self, out: &mut Exposition) {
        // Usage is deleted together with its task, so these values can decrease. Therefore they are gauges.
        let spent = &self.spent;
        out.family(
            "polity_model_calls",
            Sort::Gauge,
            "Calls that a model has answered, in tasks that are still stored.",
        );
        for one in spent {
            out.sample(&[("service", one.service.as_str()), ("model", &one.model)], one.usage.calls as f64);
        }
        out.family("polity_model_tokens", Sort::Gauge, "Tokens of these calls.");
        for one in spent {
            let labels = |direction| {
                [("service", one.service.as_str()), ("model", &*one.model), ("direction", direction)]
            };
            out.sample(&labels("in"), one.usage.prompt_tokens as f64);
            out.sample(&labels("out"), one.usage.completion_tokens as f64);
        }
        out.family("polity_model_cost", Sort::Gauge, "Cost of these calls, by the prices of the services.");
        for one in spent {
            if let Some(cost) = one.usage.cost {
                out.sample(&[("service", one.service.as_str()), ("model", &one.model)], cost);
            }
        }
    }

    fn gates(&self, out: &mut Exposition) {
        let gauges: [Gauge; 4] = [
            ("polity_service_calls_in_flight", "Calls in progress.", |one| one.state.in_flight as f64),
            ("polity_service_callers_waiting", "Callers that wait for a free place.", |one| {
                one.state.waiting as f64
            }),
            ("polity_service_paused_seconds", "Time until the service is called again.", |one| {
                one.state.paused_for_ms.unwrap_or_default() as f64 / 1000.0
            }),
            ("polity_service_agents", "Live agents that use a service.", |one| one.agents as f64),
        ];
        for (name, help, value) in gauges {
            out.family(name, Sort::Gauge, help);
            for one in &self.services {
                out.sample(&[("service", one.id.as_str())], value(one));
            }
        }
        out.family(
            "polity_service_circuit",
            Sort::Gauge,
            "1 for the state that the circuit of a service is in.",
        );
        for one in &self.services {
            for (circuit, name) in
                [(Circuit::Closed, "closed"), (Circuit::Open, "open"), (Circuit::HalfOpen, "half_open")]
            {
                let is = f64::from(u8::from(one.state.circuit == circuit));
                out.sample(&[("service", one.id.as_str()), ("state", name)], is);
            }
        }
    }
}
