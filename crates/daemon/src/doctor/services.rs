//! The check of each service: its declaration compared with what its server reports.

use super::Network;
use super::report::{SERVICE, Section};
use crate::output::Elapsed;
use futures::StreamExt;
use polity_llm::{HttpModel, Inquirer};
use polity_probe::{Correction, Finding, Times, corrections, examine, of_declaration};
use polity_registry::{Catalogue, Origin, Service};
use polity_rehearsal::SCHEME;

/// Maximum number of services that are checked concurrently.
const AT_A_TIME: usize = 8;

/// Checks all services; returns the findings and the corrections that `--fix` can write. While a service is asked,
/// `elapsed` names it.
pub(super) async fn look(
    catalogue: &Catalogue,
    inquirer: &Inquirer,
    network: Network,
    times: Times,
    elapsed: &Elapsed,
) -> (Vec<Section>, Vec<Correction>) {
    let model = HttpModel::default();
    let services = catalogue.services().iter();
    let looks = services.map(|service| look_at(service, inquirer, &model, network, times, elapsed));
    let looked: Vec<_> = futures::stream::iter(looks).buffered(AT_A_TIME).collect().await;
    let (sections, corrections): (Vec<_>, Vec<_>) = looked.into_iter().unzip();
    // `--fix` edits `llmservices.json`, so it can correct services only if that file declares them.
    let is_file = *catalogue.origin() == Origin::File;
    (sections, corrections.into_iter().flatten().filter(|_| is_file).collect())
}

async fn look_at(
    service: &Service,
    inquirer: &Inquirer,
    model: &HttpModel,
    network: Network,
    times: Times,
    elapsed: &Elapsed,
) -> (Section, Option<Correction>) {
    let section = |findings| {
        let detail = format!("{} at {}", service.endpoint.model, service.endpoint.base_url);
        Section::new(SERVICE, service.id.as_str(), findings).with(detail)
    };
    if service.endpoint.base_url.starts_with(SCHEME) {
        let finding = Finding::ok("built_in", "is built in, and needs no server");
        return (Section::new(SERVICE, service.id.as_str(), vec![finding]), None);
    }
    if network == Network::LeftAlone {
        let mut findings = of_declaration(service);
        findings.push(Finding::ok("not_asked", "was not asked (--offline)"));
        return (section(findings), None);
    }
    let _asking = elapsed.step("asking", &format!("service {}", service.id));
    let examination = examine(inquirer, model, service, times).await;
    let correction = if examination.is_sure() { corrections(service, &examination.facts) } else { None };
    (section(examination.findings), correction)
}
