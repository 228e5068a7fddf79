//! Derives corrections of a declaration from the facts that the server reports.

use crate::facts::{Facts, Support};
use polity_registry::{Declaration, Service};
use polity_society::content::{Capability, Direction};
use std::collections::BTreeMap;

/// Changes to one service in `llmservices.json`. An absent field stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// Id of the service.
    pub service: String,
    /// The new list for `capabilities.input`.
    pub input: Option<Vec<String>>,
    /// The new list for `capabilities.output`.
    pub output: Option<Vec<String>>,
    /// The new `contextWindow`. If the service already declares a context window, this is absent, unless the declared
    /// window is small and the server gives a larger one.
    pub context_window: Option<u64>,
}

/// Returns the changes that make a declaration agree with the facts of its server, or `None` if they already agree.
pub fn corrections(service: &Service, facts: &Facts) -> Option<Correction> {
    let declared = &service.capabilities;
    let input = with(&declared.input, &facts.input);
    let output = with(&declared.output, &facts.output);
    let tools = facts.told(&Capability::TOOL_CALLING, Direction::Output);
    // Add an output only if the server reports whether the model calls tools. A service that declares no output gets
    // tools. A service that declares an output without `tool_calling` gets no tools. So an added output could take the
    // tools away.
    let (is_input, is_output) = match service.declared {
        Declaration::Declared => (input != names(&declared.input), output != names(&declared.output)),
        Declaration::InputOnly => (input != names(&declared.input), tools.is_some()),
        Declaration::Assumed => (tools.is_some() || input != names(&declared.input), tools.is_some()),
    };
    let correction = Correction {
        service: service.id.to_string(),
        input: is_input.then_some(input),
        output: is_output.then_some(output),
        context_window: match service.context_window {
            Some(declared) => facts.window.instead_of(declared),
            None => facts.window.in_force,
        },
    };
    let Correction { input, output, context_window, service: _ } = &correction;
    (input.is_some() || output.is_some() || context_window.is_some()).then_some(correction)
}

fn names(capabilities: &[Capability]) -> Vec<String> {
    capabilities.iter().map(Capability::to_string).collect()
}

/// Returns the declared list with corrections from the server's report: adds capabilities that the model has, and
/// removes capabilities that the model lacks. Text always stays, because a chat needs text.
fn with(declared: &[Capability], told: &BTreeMap<Capability, Support>) -> Vec<String> {
    let is_denied = |capability: &Capability| {
        *capability != Capability::TEXT && told.get(capability) == Some(&Support::HasNot)
    };
    let mut list: Vec<Capability> =
        declared.iter().filter(|capability| !is_denied(capability)).cloned().collect();
    for (capability, support) in told {
        if *support == Support::Has && !list.contains(capability) {
            list.push(capability.clone());
        }
    }
    names(&list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::Endpoint;
    use polity_society::content::Capabilities;
    use polity_society::id::ServiceId;
    use proptest::prelude::*;

    fn service(declared: Declaration, input: &[Capability], output: &[Capability]) -> Service {
        let capabilities = Capabilities { input: input.to_vec(), output: output.to_vec() };
        let endpoint = Endpoint::new("http://127.0.0.1:1/v1", "m");
        Service { declared, capabilities, ..Service::new(ServiceId::new("s"), endpoint) }
    }

    fn facts(input: &[(Capability, Support)], output: &[(Capability, Support)]) -> Facts {
        let side = |told: &[(Capability, Support)]| told.iter().cloned().collect();
        Facts { input: side(input), output: side(output), ..Facts::default() }
    }

    /// Checks a correction. `expect` has the form `input | output | window`, where `=` stands for a field that stays
    /// unchanged.
    fn check(service: &Service, facts: &Facts, expect: &str) {
        let Some(Correction { input, output, context_window, .. }) = corrections(service, facts) else {
            assert_eq!("=", expect);
            return;
        };
        let side = |side: Option<Vec<String>>| side.map_or_else(|| "=".to_owned(), |list| list.join(" "));
        let window = context_window.map_or_else(|| "=".to_owned(), |window| window.to_string());
        assert_eq!(format!("{} | {} | {window}", side(input), side(output)), expect);
    }

    const TEXT: Capability = Capability::TEXT;
    const VISION: Capability = Capability::VISION;
    const TOOLS: Capability = Capability::TOOL_CALLING;

    #[test]
    fn what_is_declared_is_completed_and_cut() {
        let own = Capability::new("smell").unwrap();
        let declared = service(Declaration::Declared, &[TEXT, own, VISION], &[TEXT, TOOLS]);
        check(&declared, &Facts::default(), "=");
        check(&declared, &facts(&[(VISION, Support::Has)], &[(TOOLS, Support::Has)]), "=");
        check(&declared, &facts(&[(VISION, Support::HasNot)], &[]), "text smell | = | =");
        let more = facts(&[(Capability::AUDIO, Support::Has)], &[(TOOLS, Support::HasNot)]);
        check(&declared, &more, "text smell vision audio | text | =");
        check(&declared, &facts(&[], &[(TEXT, Support::HasNot)]), "=");
    }

    #[test]
    fn tools_are_never_lost_because_nothing_is_known_of_them() {
        let assumed = service(Declaration::Assumed, &[TEXT], &[TEXT]);
        let sees = |output: &[(Capability, Support)]| facts(&[(VISION, Support::Has)], output);
        check(&assumed, &sees(&[]), "text vision | = | =");
        check(&assumed, &sees(&[(TOOLS, Support::Has)]), "text vision | text tool_calling | =");
        check(&assumed, &sees(&[(TOOLS, Support::HasNot)]), "text vision | text | =");
        check(&assumed, &facts(&[], &[(TEXT, Support::Has)]), "=");
        let input_only = service(Declaration::InputOnly, &[TEXT, VISION], &[TEXT]);
        check(&input_only, &sees(&[(Capability::STRUCTURED_OUTPUT, Support::Has)]), "=");
        check(&input_only, &sees(&[(TOOLS, Support::Has)]), "= | text tool_calling | =");
    }

    #[test]
    fn a_window_is_set_only_where_there_is_none_or_a_small_one() {
        let mut declared = service(Declaration::Declared, &[TEXT], &[TEXT]);
        let mut told = Facts::default();
        told.window.largest = Some(100_000);
        check(&declared, &told, "=");
        told.window.in_force = Some(4096);
        check(&declared, &told, "= | = | 4096");
        declared.context_window = Some(1_000_000);
        check(&declared, &told, "=");
        told.window.in_force = Some(16_384);
        declared.context_window = Some(4_096);
        check(&declared, &told, "= | = | 16384");
        // A window that is not small may be smaller than that of the server, because the person wants it so.
        declared.context_window = Some(8_192);
        check(&declared, &told, "=");
        told.window.in_force = Some(2_048);
        declared.context_window = Some(4_096);
        check(&declared, &told, "=");
    }

    fn capability() -> impl Strategy<Value = Capability> {
        "text|vision|audio|video|file|smell|tool_calling".prop_map(|name| Capability::new(&name).unwrap())
    }

    fn told() -> impl Strategy<Value = BTreeMap<Capability, Support>> {
        let support = prop_oneof![Just(Support::Has), Just(Support::HasNot)];
        prop::collection::btree_map(capability(), support, 0..6)
    }

    proptest! {
        #[test]
        fn a_corrected_declaration_needs_no_correction(
            declared in prop_oneof![Just(Declaration::Declared), Just(Declaration::InputOnly), Just(Declaration::Assumed)],
            input in prop::collection::vec(capability(), 0..5),
            output in prop::collection::vec(capability(), 0..5),
            told_input in told(),
            told_output in told(),
            window in prop::option::of(1_u64..20_000),
            declared_window in prop::option::of(1_u64..20_000),
        ) {
            let input = if declared == Declaration::Assumed { vec![TEXT] } else { input };
            let output = if declared == Declaration::Declared { output } else { vec![TEXT] };
            let mut service = Service { context_window: declared_window, ..service(declared, &input, &output) };
            let mut told = Facts { input: told_input, output: told_output, ..Facts::default() };
            told.window.in_force = window;
            let tools_before = service.tools_allowed();
            if let Some(correction) = corrections(&service, &told) {
                let read = |names: Vec<String>| names.iter().filter_map(|name| Capability::new(name)).collect();
                if correction.input.is_some() && service.declared == Declaration::Assumed {
                    service.declared = Declaration::InputOnly;
                }
                if let Some(list) = correction.input { service.capabilities.input = read(list); }
                if let Some(list) = correction.output {
                    service.capabilities.output = read(list);
                    service.declared = Declaration::Declared;
                }
                service.context_window = correction.context_window.or(service.context_window);
            }
            prop_assert_eq!(corrections(&service, &told), None);
            if told.told(&TOOLS, Direction::Output).is_none() {
                prop_assert_eq!(service.tools_allowed(), tools_before);
            }
        }
    }
}
