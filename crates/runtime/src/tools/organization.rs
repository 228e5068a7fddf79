//! Roles and agents: `create_role`, `find_role_by_name`, `spawn_agent`, `spawn_agent_with_task`, `terminate_agent`,
//! `get_org_structure`.

use super::arguments::{
    CreateRole, FindRoleByName, FirstMessage, NewRole, ShortBrief, SpawnAgent, SpawnAgentWithTask,
    TerminateAgent,
};
use super::{Context, Done, Ran};
use crate::door;
use crate::rest;
use polity_decide::result;
use polity_registry::{Catalogue, ServiceWish};
use polity_society::agent::Standing;
use polity_society::id::{AgentId, ArtifactId};
use polity_society::message::{Payload, RESULT_SCHEMA};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::role::Role;
use polity_society::rules::{self, Answering, Descendant, Draft, HireFacts, HireWish, LastWord, RoleWish};
use polity_society::text::TextKey;
use polity_store::mint;
use polity_store::{Error, Tx, agents, apply, contacts, roles};
use serde_json::{Value, json};

pub(super) async fn create_role(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: CreateRole,
) -> Result<Ran, Error> {
    Ok(make_role(tx, context, arguments).await?.map(|(_, shown)| Done::json(shown)))
}

/// Creates a role, or finds the caller's role with that name. Also returns what the caller is told about it.
async fn make_role(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: CreateRole,
) -> Result<Result<(Role, Value), Refusal>, Error> {
    let rights = super::rights(tx, context).await?;
    let lacking = rights.lacking(&arguments.tool_groups);
    if !lacking.is_empty() {
        let tool = "create_role".to_owned();
        return Ok(Err(Refusal::ToolNotPermitted { tool, groups: lacking, allowed: rights.groups() }));
    }
    let catalogue = &context.snapshot.catalogue;
    let CreateRole { name, role_prompt, interface_spec, service_id, required_capabilities, tool_groups } =
        arguments;
    let wish = RoleWish { name, prompt: role_prompt.0, interface_spec, required_capabilities, tool_groups };
    let chosen = catalogue
        .choose(ServiceWish { service_id: service_id.as_ref(), required: &wish.required_capabilities })
        .service
        .id
        .clone();
    let caller = context.caller;
    let existing =
        roles::made_by(&mut tx.connection, &caller.agent, &caller.task, wish.name.as_str()).await?;
    let is_new = existing.is_none();
    let required = wish.required_capabilities.clone();
    let id = mint::role(&mut tx.connection).await?;
    let creator = (caller.agent.clone(), caller.task.clone());
    let (role, changes) = rules::create_role(wish, existing, creator, id, chosen);
    apply::apply(tx, context.snapshot, changes).await?;
    let mut shown = show_role(&role, catalogue);
    if !is_new {
        shown["existing"] = json!(true);
    }
    show_unmet(&mut shown, &role, &required, context);
    Ok(Ok((role, shown)))
}

/// Adds the required capabilities that the service of a role lacks, and those that other services offer.
fn show_unmet(shown: &mut Value, role: &Role, required: &[String], context: &Context<'_>) {
    let catalogue = &context.snapshot.catalogue;
    let service = catalogue.service_for(Some(&role.service));
    let unmet = service.lacks(required);
    if unmet.is_empty() {
        return;
    }
    let values = [("service", service.id.as_str()), ("unmet", &*unmet.join(", "))];
    shown["message"] = json!(context.snapshot.prompts.texts.fill(TextKey::RoleUnmet, &values));
    shown["unmet"] = json!(unmet);
    shown["available"] = json!(catalogue.available());
}

fn show_role(role: &Role, catalogue: &Catalogue) -> Value {
    let service = catalogue.service_for(Some(&role.service));
    let mut shown = json!({
        "id": role.id,
        "name": role.name,
        "serviceId": service.id,
        "capabilities": service.capabilities,
    });
    if let Some(spec) = &role.interface_spec {
        shown["interface_spec"] = json!(spec);
    }
    shown
}

pub(super) async fn find_role(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: &FindRoleByName,
) -> Result<Ran, Error> {
    let role = match role_of(tx, context, &arguments.name).await? {
        Ok(role) => role,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let shown = role.map_or(Value::Null, |role| show_role(&role, &context.snapshot.catalogue));
    Ok(Ok(Done::json(shown)))
}

/// Returns the role with this id or name, if the caller may hire into it.
async fn role_of(
    tx: &mut Tx,
    context: &Context<'_>,
    meant: &str,
) -> Result<Result<Option<Role>, Refusal>, Error> {
    let caller = context.caller;
    let usable = roles::usable(&mut tx.connection, &caller.agent, &caller.task, meant).await?;
    Ok(rules::find_role(usable, &caller.agent, meant))
}

/// A hired agent, and what the caller is told about it.
struct Hired {
    id: AgentId,
    shown: Value,
}

async fn hire(tx: &mut Tx, context: &Context<'_>, wish: HireWish) -> Result<Result<Hired, Refusal>, Error> {
    let caller = context.caller;
    let role = match role_of(tx, context, &wish.role).await? {
        Ok(role) => role,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(parent) = agents::get(&mut tx.connection, &caller.agent).await? else {
        return Err(Error::Damaged { table: "agents", what: format!("{} is missing", caller.agent) });
    };
    let mentioned = ArtifactId::all_in(&json!(wish.brief).to_string());
    let facts = HireFacts {
        task: caller.task.clone(),
        parent: parent.party(&context.snapshot.catalogue),
        contacts: door::known_parties(&mut tx.connection, &context.snapshot.catalogue, caller).await?,
        role,
        children: agents::count_children(&mut tx.connection, &caller.agent, &caller.task).await?,
        agents: agents::count_of_task(&mut tx.connection, &caller.task).await?,
        openable: door::openable(&mut tx.connection, caller, &mentioned).await?,
    };
    if let Some(Err(error)) = wish.brief.result_schema().map(|schema| result::read(&schema)) {
        let problem = FieldProblem::new(RESULT_SCHEMA, Fault::Rule(error));
        return Ok(Err(Refusal::InvalidTaskBrief(vec![problem])));
    }
    let limits = &context.snapshot.settings.limits;
    if let Err(refusal) = rules::check_hire(&wish, &facts, limits) {
        return Ok(Err(refusal));
    }
    let called = wish.name.as_ref().or(facts.role.as_ref().map(|role| &role.name));
    let id = match called {
        Some(name) => mint::agent(&mut tx.connection, name).await?,
        None => return Ok(Err(Refusal::NotChildRole { role: wish.role })),
    };
    let changes = match rules::hire(wish, &facts, id.clone(), limits) {
        Ok(changes) => changes,
        Err(refusal) => return Ok(Err(refusal)),
    };
    apply::apply(tx, context.snapshot, changes).await?;
    let role = facts.role.as_ref();
    let shown = json!({
        "id": id,
        "roleId": role.map(|role| &role.id),
        "roleName": role.map(|role| &role.name),
    });
    Ok(Ok(Hired { id, shown }))
}

pub(super) async fn spawn(tx: &mut Tx, context: &Context<'_>, arguments: SpawnAgent) -> Result<Ran, Error> {
    let SpawnAgent { role_id, task_brief: ShortBrief(task_brief), name } = arguments;
    let hired = hire(tx, context, HireWish { role: role_id, brief: task_brief, name }).await?;
    Ok(hired.map(|hired| Done::json(hired.shown)))
}

/// Hires an agent and sends it a message in one step: if the message is refused, nobody is hired.
pub(super) async fn spawn_with_task(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: SpawnAgentWithTask,
) -> Result<Ran, Error> {
    let SpawnAgentWithTask { role_id, role, task_brief, initial_message: FirstMessage(message), name } =
        arguments;
    let savepoint = tx.savepoint("hire").await?;
    let (role, made, ignored) = match (role_id, role) {
        (Some(id), None) => (id, Value::Null, Vec::new()),
        // The role exists already, so its description is ignored.
        (Some(id), Some(_)) => (id, Value::Null, vec!["role".to_owned()]),
        (None, Some(NewRole(role))) => {
            let (role, shown) = match make_role(tx, context, *role).await? {
                Ok(made) => made,
                Err(refusal) => {
                    tx.release(savepoint).await?;
                    return Ok(Err(refusal));
                }
            };
            (role.id.to_string(), shown, Vec::new())
        }
        (None, None) => {
            tx.release(savepoint).await?;
            let missing = FieldProblem::new("roleId", Fault::Missing);
            return Ok(Err(Refusal::InvalidArguments(vec![missing])));
        }
    };
    let wish = HireWish { role, brief: task_brief, name };
    let ran = hire_and_write(tx, context, wish, message).await?;
    let ran = ran.map(|done| done.with(made, &["unmet", "available", "message"]).naming(ignored));
    if ran.is_err() {
        tx.undo(&savepoint).await?;
    }
    tx.release(savepoint).await?;
    Ok(ran)
}

async fn hire_and_write(
    tx: &mut Tx,
    context: &Context<'_>,
    wish: HireWish,
    payload: Payload,
) -> Result<Ran, Error> {
    let hired = match hire(tx, context, wish).await? {
        Ok(hired) => hired,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let draft = Draft { to: hired.id.to_string(), payload, answering: Answering::AsWritten, due_at: None };
    let sent = door::send(tx, context.snapshot, context.caller, draft, LastWord::UnlessWaiting).await?;
    Ok(sent.map(|sent| {
        let mut shown = hired.shown;
        shown["messageId"] = json!(sent.id);
        let ignored = sent.ignored.iter().map(|id| format!("initialMessage.request_id: {id}"));
        Done::json(shown).naming(ignored.collect())
    }))
}

pub(super) async fn terminate(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: &TerminateAgent,
) -> Result<Ran, Error> {
    let caller = context.caller;
    let below = agents::below(&mut tx.connection, &caller.agent, &caller.task).await?;
    let descendants: Vec<Descendant> = below
        .into_iter()
        .map(|row| Descendant {
            id: row.id,
            parent: row.parent,
            role_name: row.role_name,
            standing: row.standing,
        })
        .collect();
    let reason = arguments.reason.as_deref().unwrap_or_default();
    match rules::end_subtree(&caller.agent, &arguments.agent_id, reason, &descendants) {
        Ok((id, changes)) => {
            let ended = changes.len();
            apply::apply(tx, context.snapshot, changes).await?;
            rest::after_waits(tx, context.snapshot).await?;
            Ok(Ok(Done::json(json!({"status": "success", "id": id, "ended": ended}))))
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Shows the caller, its descendants and its other contacts. The caller learns of no other agents.
pub(super) async fn structure(tx: &mut Tx, context: &Context<'_>) -> Result<Ran, Error> {
    let caller = context.caller;
    let Some(me) = agents::get(&mut tx.connection, &caller.agent).await? else {
        return Err(Error::Damaged { table: "agents", what: format!("{} is missing", caller.agent) });
    };
    let below = agents::below(&mut tx.connection, &caller.agent, &caller.task).await?;
    let others = contacts::of(&mut tx.connection, &caller.agent, &caller.task).await?;
    let show = |row: &agents::AgentRow| {
        let mut shown = json!({"id": row.id, "roleName": row.role_name, "parentAgentId": row.parent});
        if let Some(role) = &row.role {
            shown["roleId"] = json!(role);
        }
        if let Some(name) = &row.name {
            shown["name"] = json!(name);
        }
        if row.standing == Standing::Ended {
            shown["ended"] = json!(true);
        }
        shown
    };
    let descendants: Vec<Value> = below.iter().map(show).collect();
    let is_below = |id: &AgentId| below.iter().any(|row| row.id == *id);
    let contacts: Vec<Value> = others
        .iter()
        .filter(|contact| !is_below(&contact.agent.id))
        .map(|contact| json!({"id": contact.agent.id, "roleName": contact.agent.role_name}))
        .collect();
    Ok(Ok(Done::json(json!({"self": show(&me), "descendants": descendants, "contacts": contacts}))))
}
