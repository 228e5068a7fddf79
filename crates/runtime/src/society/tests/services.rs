use super::*;
use polity_llm::{CallError, FailureKind, Patience, WhileOpen};
use polity_view::Circuit;

#[tokio::test]
async fn services_tell_how_they_are_doing_and_no_secret() {
    let world = World::new().await;
    let (society, _) = society(&world);
    world.hire("root", "reader", serde_json::json!({"serviceId": "eyes"})).await;
    let services = society.services().await.unwrap();
    let agents: Vec<(&str, u64, bool)> =
        services.iter().map(|service| (service.id.as_str(), service.agents, service.is_default)).collect();
    assert_eq!(agents, [("words", 1, true), ("eyes", 1, false), ("all", 0, false)]);
    assert!(services.iter().all(|service| !service.key_set && service.state == Default::default()));
    // A model is offered tools unless its service declares capabilities without tool calling. `words` declares no
    // capabilities.
    assert!(services.iter().all(|service| service.calls_tools));

    let configured = world.snapshot.catalogue.service(&ServiceId::new("eyes")).unwrap();
    let gate = society.handles.gates.of(configured);
    let patience = Patience { longest_pause: Duration::from_secs(60), while_open: WhileOpen::Wait };
    let pass = gate.enter(patience).await.unwrap();
    let state = society.service(&configured.id).await.unwrap().unwrap().state;
    assert_eq!((state.in_flight, state.waiting, state.circuit), (1, 0, Circuit::Closed));
    let failure = CallError {
        kind: FailureKind::Unauthorized,
        message: "no such key".to_owned(),
        status: Some(401),
        retry_after: None,
    };
    pass.settle(Some(&failure), |_| Duration::ZERO);
    gate.pause(Duration::from_secs(3600));
    let state = society.service(&configured.id).await.unwrap().unwrap().state;
    assert_eq!(state.in_flight, 0);
    assert!(state.last_error.is_some_and(|error| error.contains("no such key")));
    assert!(state.paused_for_ms.is_some_and(|left| left > 3_000_000));
    gate.forget();
    let state = society.service(&configured.id).await.unwrap().unwrap().state;
    assert_eq!(state, polity_view::ServiceState::default());
}

#[tokio::test]
async fn the_configuration_tells_what_is_in_force_and_what_is_wrong() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let config = society.config();
    assert_eq!(config.services.len(), 3);
    assert_eq!(config.default_service.as_str(), "words");
    assert_eq!(config.problems, []);
    assert_eq!(config.revision, world.snapshot.revision);
    let facts = society.data_facts().await.unwrap();
    assert!(facts.writable);
    let migrations =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations")).unwrap().count();
    assert_eq!((facts.tasks, facts.agents, facts.schema), (1, 0, i64::try_from(migrations).unwrap()));
    assert!(society.service(&ServiceId::new("none")).await.unwrap().is_none());
}
