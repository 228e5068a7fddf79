//! The check of each service: its declaration compared with what its server reports.

use super::Network;
use super::report::{SERVICE, Section};
use crate::failure::Failure;
use crate::output::Elapsed;
use futures::{FutureExt, StreamExt};
use polity_llm::{HttpModel, Inquirer};
use polity_probe::{Correction, Finding, Times, corrections, examine, of_declaration};
use polity_registry::{Catalogue, Origin, Service};
use polity_rehearsal::SCHEME;

/// Maximum number of services that are checked concurrently.
const AT_A_TIME: usize = 8;

/// Checks all services; returns the findings and the corrections that `--fix` can write, in the order of the services.
/// While a service is asked, `elapsed` names it. As soon as a service has been checked, `tell` gets its findings and its
/// correction.
pub(super) async fn look(
    catalogue: &Catalogue,
    inquirer: &Inquirer,
    network: Network,
    times: Times,
    elapsed: &Elapsed,
    tell: impl Fn(&mut Section, Option<&Correction>) -> Result<(), Failure>,
) -> Result<(Vec<Section>, Vec<Correction>), Failure> {
    let model = HttpModel::default();
    // `--fix` edits `llmservices.json`, so it can correct services only if that file declares them.
    let is_file = *catalogue.origin() == Origin::File;
    let services = catalogue.services().iter().enumerate();
    let looks = services.map(|(place, service)| {
        look_at(service, inquirer, &model, network, times, elapsed).map(move |looked| (place, looked))
    });
    let mut coming = futures::stream::iter(looks).buffer_unordered(AT_A_TIME);
    let mut looked = Vec::new();
    while let Some((place, (mut section, correction))) = coming.next().await {
        let correction = correction.filter(|_| is_file);
        tell(&mut section, correction.as_ref())?;
        looked.push((place, section, correction));
    }
    looked.sort_by_key(|(place, ..)| *place);
    let (sections, corrections): (Vec<_>, Vec<_>) =
        looked.into_iter().map(|(_, section, correction)| (section, correction)).unzip();
    Ok((sections, corrections.into_iter().flatten().collect()))
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
