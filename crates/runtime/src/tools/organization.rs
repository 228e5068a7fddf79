//! Roles and agents: `create_role`, `find_role_by_name`, `spawn_agent`, `spawn_agent_with_task`, `terminate_agent`,
//! `get_org_structure`.

use super::{Context, Done, Ran};
use crate::door;
use crate::rest;
use polity_decide::arguments::{
    CreateRole, FindRoleByName, FirstMessage, NewRole, OwnWorkspace, ShortBrief, SpawnAgent,
    SpawnAgentWithTask, TerminateAgent,
};
use polity_decide::result;
use polity_registry::{Catalogue, ServiceWish};
use polity_society::agent::Standing;
use polity_society::id::{AgentId, ArtifactId};
use polity_society::message::RESULT_SCHEMA;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::role::Role;
use polity_society::rules::{self, Answering, Descendant, Draft, HireFacts, HireWish, LastWord, RoleWish};
use polity_society::text::TextKey;
use polity_store::mint;
use polity_store::seen::{self, Holder, Step};
use polity_store::{Error, Stopped, Tx, agents, apply, contacts, keep, roles};
use serde_json::{Value, json};

pub(super) async fn create_role(tx: &mut Tx, context: &Context<'_>, arguments: CreateRole) -> Ran {
    let (_, shown) = make_role(tx, context, arguments).await?;
    Ok(Done::json(shown))
}

/// Creates a role. If the caller has already created a role with this name, uses that role instead. Returns the role,
/// and what the caller is told about it.
async fn make_role(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: CreateRole,
) -> Result<(Role, Value), Stopped> {
    let rights = super::rights(tx, context).await?;
    let lacking = rights.lacking(&arguments.tool_groups);
    if !lacking.is_empty() {
        let tool = "create_role".to_owned();
        let allowed = rights.among(context.snapshot.settings.groups());
        return Err(Refusal::ToolNotPermitted { tool, groups: lacking, allowed }.into());
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
    Ok((role, shown))
}

/// If the service of a role lacks required capabilities, adds two lists to `shown`: the missing capabilities, and all
/// capabilities that services offer.
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

pub(super) async fn find_role(tx: &mut Tx, context: &Context<'_>, arguments: &FindRoleByName) -> Ran {
    let (role, caller) = (role_of(tx, context, &arguments.name).await?, context.caller);
    if let Some(Role { creator, interface_spec: Some(_), .. }) = &role
        && *creator != caller.agent
    {
        // The result shows what the role offers. This is text of its creator.
        let (from, to) = (Holder::Agent(creator.clone()), Holder::Agent(caller.agent.clone()));
        seen::pass(tx, &caller.task, &from, &to, &Step::Role { from: creator.clone() }).await?;
    }
    let shown = role.map_or(Value::Null, |role| show_role(&role, &context.snapshot.catalogue));
    Ok(Done::json(shown))
}

/// Returns the role with this id or name, if the caller may hire into it.
async fn role_of(tx: &mut Tx, context: &Context<'_>, meant: &str) -> Result<Option<Role>, Stopped> {
    let caller = context.caller;
    let usable = roles::usable(&mut tx.connection, &caller.agent, &caller.task, meant).await?;
    Ok(rules::find_role(usable, &caller.agent, meant)?)
}

/// A hired agent, and the result of the call for the caller.
struct Hired {
    id: AgentId,
    shown: Value,
}

async fn hire(
    tx: &mut Tx,
    context: &Context<'_>,
    wish: HireWish,
    own: Option<OwnWorkspace>,
) -> Result<Hired, Stopped> {
    if let (Some(OwnWorkspace), Some(refusal)) = (own, &context.no_worktree) {
        return Err(refusal.clone().into());
    }
    let caller = context.caller;
    let role = role_of(tx, context, &wish.role).await?;
    let Some(parent) = agents::get(&mut tx.connection, &caller.agent).await? else {
        return Err(missing(&caller.agent).into());
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
        return Err(Refusal::InvalidTaskBrief(vec![problem]).into());
    }
    let limits = &context.snapshot.settings.limits;
    rules::check_hire(&wish, &facts, limits)?;
    let called = wish.name.as_ref().or(facts.role.as_ref().map(|role| &role.name));
    let id = match called {
        Some(name) => mint::agent(&mut tx.connection, name).await?,
        None => return Err(Refusal::NotChildRole { role: wish.role }.into()),
    };
    let changes = rules::hire(wish, &facts, id.clone(), limits)?;
    apply::apply(tx, context.snapshot, changes).await?;
    // The parent wrote the brief, and the creator of the role wrote the role prompt. Both texts may come from sources
    // that their writers have seen.
    let creator = facts.role.as_ref().map(|role| &role.creator).filter(|creator| **creator != caller.agent);
    for writer in [Some(&caller.agent), creator].into_iter().flatten() {
        let (from, to) = (Holder::Agent(writer.clone()), Holder::Agent(id.clone()));
        let step = Step::Hired { from: writer.clone() };
        seen::pass(tx, &caller.task, &from, &to, &step).await?;
    }
    if own.is_some() {
        agents::give_worktree(tx, &id).await?;
    }
    let role = facts.role.as_ref();
    let shown = json!({
        "id": id,
        "roleId": role.map(|role| &role.id),
        "roleName": role.map(|role| &role.name),
    });
    Ok(Hired { id, shown })
}

pub(super) async fn spawn(tx: &mut Tx, context: &Context<'_>, arguments: SpawnAgent) -> Ran {
    let SpawnAgent { role_id, task_brief: ShortBrief(task_brief), name, workspace } = arguments;
    let hired = hire(tx, context, HireWish { role: role_id, brief: task_brief, name }, workspace).await?;
    Ok(Done::json(hired.shown))
}

/// Hires an agent and sends the agent a message in one step. If the message is refused, nobody is hired.
pub(super) async fn spawn_with_task(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: SpawnAgentWithTask,
) -> Ran {
    let savepoint = tx.savepoint("hire").await?;
    let ran = keep(hire_and_write(tx, context, arguments).await)?;
    if ran.is_err() {
        tx.undo(&savepoint).await?;
    }
    tx.release(savepoint).await?;
    Ok(ran?)
}

async fn hire_and_write(tx: &mut Tx, context: &Context<'_>, arguments: SpawnAgentWithTask) -> Ran {
    let SpawnAgentWithTask {
        role_id,
        role,
        task_brief,
        initial_message: FirstMessage(message),
        name,
        workspace,
    } = arguments;
    let (role, made, ignored) = match (role_id, role) {
        (Some(id), None) => (id, Value::Null, Vec::new()),
        // The call names an existing role, so the description of a new role is ignored.
        (Some(id), Some(_)) => (id, Value::Null, vec!["role".to_owned()]),
        (None, Some(NewRole(role))) => {
            let (role, shown) = make_role(tx, context, *role).await?;
            (role.id.to_string(), shown, Vec::new())
        }
        (None, None) => {
            let missing = FieldProblem::new("roleId", Fault::Missing);
            return Err(Refusal::InvalidArguments(vec![missing]).into());
        }
    };
    let mut hired = hire(tx, context, HireWish { role, brief: task_brief, name }, workspace).await?;
    let draft =
        Draft { to: hired.id.to_string(), payload: message, answering: Answering::AsWritten, due_at: None };
    let sent = door::send(tx, context.snapshot, context.caller, draft, LastWord::UnlessWaiting).await?;
    hired.shown["messageId"] = json!(sent.id);
    let not_open = sent.ignored.iter().map(|id| format!("initialMessage.request_id: {id}"));
    let done = Done::json(hired.shown).naming(not_open.collect());
    Ok(done.with(made, &["unmet", "available", "message"]).naming(ignored))
}

pub(super) async fn terminate(tx: &mut Tx, context: &Context<'_>, arguments: &TerminateAgent) -> Ran {
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
    let (id, changes) = rules::end_subtree(&caller.agent, &arguments.agent_id, reason, &descendants)?;
    let ended = changes.len();
    apply::apply(tx, context.snapshot, changes).await?;
    rest::after_waits(tx, context.snapshot).await?;
    Ok(Done::json(json!({"status": "success", "id": id, "ended": ended})))
}

/// Returns the caller, its descendants and its other contacts. The caller gets no information about any other agent.
pub(super) async fn structure(tx: &mut Tx, context: &Context<'_>) -> Ran {
    let caller = context.caller;
    let Some(me) = agents::get(&mut tx.connection, &caller.agent).await? else {
        return Err(missing(&caller.agent).into());
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
    Ok(Done::json(json!({"self": show(&me), "descendants": descendants, "contacts": contacts})))
}

/// Builds the error for a caller that has no row in the table `agents`.
fn missing(caller: &AgentId) -> Error {
    Error::Damaged { table: "agents", what: format!("{caller} is missing") }
}
