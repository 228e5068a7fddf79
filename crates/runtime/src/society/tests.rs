mod answering;
mod now;
mod opened_to_read;
mod reading;
mod services;
mod statements;
mod upkeep;
mod writing;

use super::*;
use crate::testing::World;
use crate::testing::model::{Say, ScriptedModel};
use polity_hands::table::Hands;
use std::time::Duration;

/// Returns a society that uses the database of a world. No agent works in this society, so nobody changes what the
/// test writes.
fn society(world: &World) -> (Society, Arc<ScriptedModel>) {
    let model = ScriptedModel::always(Say::Hang);
    let handles = world.handles(model.clone(), Hands::none());
    let society = Society {
        handles,
        data: world.directory.path().to_owned(),
        events: world.signals.events.clone(),
        first_event: 0,
        broken: watch::channel(None).1,
        stop: CancellationToken::new(),
        ended: CancellationToken::new(),
        tasks: TaskTracker::new(),
    };
    (society, model)
}

/// Checks that a value fits the schema of its type, and stays the same when it is written as JSON and read again.
fn check_shape<T>(value: &T)
where
    T: serde::Serialize + serde::de::DeserializeOwned + schemars::JsonSchema + PartialEq + std::fmt::Debug,
{
    let json = serde_json::to_value(value).unwrap();
    let schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(&json).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {json}");
    assert_eq!(&serde_json::from_value::<T>(json).unwrap(), value);
}

/// Runs SQL directly.
async fn sql(world: &World, statement: String) {
    world
        .write(move |tx| {
            Box::pin(async move {
                polity_sql::query(polity_sql::Sql::built(statement)).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
}
