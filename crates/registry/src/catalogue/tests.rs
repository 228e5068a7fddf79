use super::*;
use polity_llm::Endpoint;
use proptest::prelude::*;

fn service(id: &str, input: &[&str], output: &[&str], tags: &[&str]) -> Service {
    let capabilities = |names: &[&str]| names.iter().filter_map(|name| Capability::new(name)).collect();
    Service {
        capabilities: Capabilities { input: capabilities(input), output: capabilities(output) },
        capability_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..Service::new(ServiceId::new(id), Endpoint::new("rehearsal:", "m"))
    }
}

fn catalogue(services: Vec<Service>, default: Option<&str>) -> (Catalogue, Option<Problem>) {
    let mut services = services.into_iter().map(Arc::new);
    let first = services.next().unwrap();
    let taken = Taken { origin: Origin::File, first, others: services.collect() };
    Catalogue::new(3, &taken, default.map(ServiceId::new).as_ref())
}

fn example(default: Option<&str>) -> Catalogue {
    let services = vec![
        service("text", &["text"], &["text", "tool_calling"], &["文本对话"]),
        service("eyes", &["text", "vision"], &["text"], &["视觉理解", "Fast"]),
        service("all", &["text", "vision", "audio"], &["text", "tool_calling"], &["多模态"]),
    ];
    catalogue(services, default).0
}

#[test]
fn the_default_is_the_named_one_or_the_first() {
    let services = || vec![service("a", &[], &[], &[]), service("b", &[], &[], &[])];
    let check = |default: Option<&str>, expect: &str, problem: Option<&str>| {
        let (catalogue, found) = catalogue(services(), default);
        assert_eq!(catalogue.default_service().id.as_str(), expect);
        assert_eq!(found.map(|problem| problem.to_string()).as_deref(), problem);
    };
    check(None, "a", None);
    check(Some("b"), "b", None);
    let gone =
        "app.json: /defaultService: is not the id of a service; the service \"a\" is used as the default";
    check(Some("c"), "a", Some(gone));
}

#[test]
fn choosing() {
    let check = |id: Option<&str>, required: &[&str], expect: &str, why: Why| {
        let id = id.map(ServiceId::new);
        let required: Vec<_> = required.iter().map(|name| (*name).to_owned()).collect();
        let wish = ServiceWish { service_id: id.as_ref(), required: &required };
        let chosen = example(Some("all")).choose(wish);
        assert_eq!((chosen.service.id.as_str(), chosen.why), (expect, why));
    };
    let matched =
        |missing: &[&str]| Why::Matched { missing: missing.iter().map(|name| (*name).to_owned()).collect() };
    check(None, &[], "all", Why::Default);
    check(Some("eyes"), &[], "eyes", Why::Named);
    check(Some("eyes"), &["audio"], "eyes", Why::Named);
    check(Some("gone"), &["视觉理解"], "all", Why::NamedIsGone(ServiceId::new("gone")));
    check(None, &["vision"], "all", matched(&[]));
    check(None, &["视觉理解"], "eyes", matched(&[]));
    check(None, &["vision", " FAST "], "eyes", matched(&[]));
    check(None, &["文本对话", "tool_calling"], "text", matched(&[]));
    check(None, &["vision", "smell"], "all", matched(&["smell"]));
    check(None, &["smell"], "all", Why::NoMatch);
}

#[test]
fn unknown_services_have_nothing() {
    let catalogue = example(None);
    let nobody = ServiceId::new("nobody");
    assert!(!catalogue.has_capability(&nobody, &Capability::TEXT, Direction::Input));
    assert_eq!(catalogue.capabilities(&nobody), None);
    assert!(catalogue.service(&nobody).is_none());
}

const NAMES: [&str; 5] = ["text", "vision", "audio", "tool_calling", "嗅觉"];

fn some_names() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(&NAMES[..], 0..=NAMES.len())
}

fn some_services() -> impl Strategy<Value = Vec<Service>> {
    prop::collection::vec((some_names(), some_names(), some_names()), 1..6).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered.map(|(n, (input, output, tags))| service(&format!("s{n}"), &input, &output, &tags)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Capability seed (`docs/seeds/capability-routing.design.md`), Property 7: the queries return exactly the
    /// input and output capabilities that `llmservices.json` declares for a service, and none for an unknown service.
    #[test]
    fn capability_property_7_capability_query_api_correctness(
        written in prop::collection::vec((some_names(), some_names()), 1..6),
        asked in 0usize..7,
        name in prop::sample::select(&NAMES[..]),
    ) {
        let services: Vec<_> = written.iter().enumerate().map(|(n, (input, output))| serde_json::json!({
            "id": format!("s{n}"), "baseURL": "rehearsal:", "model": "m",
            "capabilities": {"input": input, "output": output},
        })).collect();
        let text = serde_json::json!({"services": services}).to_string();
        let services = crate::services::parse(&text).unwrap().0;
        let catalogue = catalogue(services.clone(), None).0;
        let id = ServiceId::new(format!("s{asked}"));
        let capability = Capability::new(name).unwrap();
        let names = |side: &[Capability]| side.iter().map(|has| has.as_str().to_owned()).collect::<Vec<_>>();
        let said = catalogue.capabilities(&id).map(|has| (names(&has.input), names(&has.output)));
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(said, written.get(asked).map(|(input, output)| (owned(input), owned(output))));

        let input = written.get(asked).is_some_and(|(input, _)| input.contains(&name));
        let output = written.get(asked).is_some_and(|(_, output)| output.contains(&name));
        prop_assert_eq!(catalogue.has_capability(&id, &capability, Direction::Input), input);
        prop_assert_eq!(catalogue.has_capability(&id, &capability, Direction::Output), output);
        prop_assert_eq!(catalogue.has_capability(&id, &capability, Direction::Both), input && output);

        for direction in [Direction::Input, Direction::Output, Direction::Both] {
            let with = catalogue.services_with(&capability, direction);
            let with: Vec<_> = with.iter().map(|service| service.id.clone()).collect();
            let expect: Vec<_> = services.iter().map(|service| service.id.clone())
                .filter(|id| catalogue.has_capability(id, &capability, direction)).collect();
            prop_assert_eq!(with, expect);
        }
    }

    #[test]
    fn no_service_has_more_of_what_is_required_than_the_chosen_one(
        services in some_services(),
        default in 0usize..6,
        required in some_names(),
    ) {
        let default = format!("s{default}");
        let catalogue = catalogue(services, Some(&default)).0;
        let required: Vec<_> = required.into_iter().map(str::to_owned).collect();
        let chosen = catalogue.choose(ServiceWish { service_id: None, required: &required });
        let has = |service: &Service| required.iter().filter(|name| {
            let capability = Capability::new(name).unwrap();
            service.capabilities.has(&capability, Direction::Input)
                || service.capabilities.has(&capability, Direction::Output)
                || service.capability_tags.contains(name)
        }).count();
        let best = catalogue.services().iter().map(|service| has(service)).max().unwrap_or(0);
        prop_assert_eq!(has(&chosen.service), best);
        if has(catalogue.default_service()) == best {
            prop_assert_eq!(&chosen.service.id, &catalogue.default_service().id);
        }
        match chosen.why {
            Why::Matched { missing } => prop_assert_eq!(missing.len(), required.len() - best),
            Why::Default => prop_assert!(required.is_empty()),
            Why::NoMatch => prop_assert!(best == 0 && !required.is_empty()),
            Why::Named | Why::NamedIsGone(_) => prop_assert!(false, "the wish names no service"),
        }
    }
}
