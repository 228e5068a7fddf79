//! Roles and agents: `create_role`, `find_role_by_name`, `spawn_agent`, `spawn_agent_with_task`, `terminate_agent`,
//! `get_org_structure`.

use super::arguments::{CreateRole, FindRoleByName, SpawnAgent, SpawnAgentWithTask, TerminateAgent};
use super::{Context, Done, Ran};
use crate::door::{self, service_for};
use crate::mint;
use crate::store::{Error, Tx, agents, apply, contacts, roles};
use polity_registry::{Catalogue, ServiceWish};
use polity_society::agent::Standing;
use polity_society::brief::TaskBrief;
use polity_society::id::{AgentId, ArtifactId, ServiceId};
use polity_society::message::{MessageType, Payload};
use polity_society::name::Name;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::role::{InterfaceSpec, Role};
use polity_society::rules::{self, Answering, Descendant, Draft, HireFacts, HireWish, LastWord, RoleWish};
use serde_json::{Value, json};

pub(super) async fn create_role(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: CreateRole,
) -> Result<Ran, Error> {
    let catalogue = &context.snapshot.catalogue;
    let (wish, service_id) = match read_role_wish(arguments, catalogue) {
        Ok(read) => read,
        Err(problems) => return Ok(Err(Refusal::InvalidArguments(problems))),
    };
    let chosen = catalogue
        .choose(ServiceWish { service_id: service_id.as_ref(), required: &wish.required_capabilities })
        .service
        .id
        .clone();
    let caller = context.caller;
    let existing =
        roles::made_by(&mut tx.connection, &caller.agent, &caller.task, wish.name.as_str()).await?;
    let is_new = existing.is_none();
    let id = mint::role(&mut tx.connection).await?;
    let creator = (caller.agent.clone(), caller.task.clone());
    let (role, changes) = rules::create_role(wish, existing, creator, id, chosen);
    apply::apply(tx, context.snapshot, changes).await?;
    let mut shown = show_role(&role, catalogue);
    if !is_new {
        shown["existing"] = json!(true);
    }
    Ok(Ok(Done::json(shown)))
}

fn read_role_wish(
    arguments: CreateRole,
    catalogue: &Catalogue,
) -> Result<(RoleWish, Option<ServiceId>), Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let name =
        Name::parse(&arguments.name).map_err(|fault| problems.push(FieldProblem::new("name", fault))).ok();
    if arguments.role_prompt.trim().is_empty() {
        problems.push(FieldProblem::new("rolePrompt", Fault::Empty));
    }
    let spec = arguments.interface_spec.as_ref().filter(|spec| !spec.is_null()).map(InterfaceSpec::parse);
    let interface_spec = spec.transpose().unwrap_or_else(|inner| {
        problems.extend(inner.into_iter().map(|problem| problem.inside("interface_spec")));
        None
    });
    let service_id = arguments.service_id.filter(|id| !id.trim().is_empty()).map(ServiceId::new);
    if service_id.as_ref().is_some_and(|id| catalogue.service(id).is_none()) {
        let known = catalogue.services().iter().map(|service| service.id.to_string()).collect();
        problems.push(FieldProblem::new("serviceId", Fault::NotOneOf(known)));
    }
    let Some(name) = name.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let wish = RoleWish {
        name,
        prompt: arguments.role_prompt,
        interface_spec,
        required_capabilities: arguments.required_capabilities,
        tool_groups: arguments.tool_groups,
    };
    Ok((wish, service_id))
}

fn show_role(role: &Role, catalogue: &Catalogue) -> Value {
    let service = service_for(catalogue, Some(&role.service));
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
    let caller = context.caller;
    let role = roles::usable(&mut tx.connection, &caller.agent, &caller.task, &arguments.name).await?;
    let shown = role.map_or(Value::Null, |role| show_role(&role, &context.snapshot.catalogue));
    Ok(Ok(Done::json(shown)))
}

/// An agent that was hired, and what the caller is told of it.
struct Hired {
    id: AgentId,
    shown: Value,
}

async fn hire(
    tx: &mut Tx,
    context: &Context<'_>,
    role: String,
    brief: Option<&Value>,
    name: Option<&str>,
) -> Result<Result<Hired, Refusal>, Error> {
    let caller = context.caller;
    let brief = match TaskBrief::parse(brief) {
        Ok(brief) => brief,
        Err(problems) => return Ok(Err(Refusal::InvalidTaskBrief(problems))),
    };
    let name = match name.filter(|name| !name.trim().is_empty()).map(Name::parse).transpose() {
        Ok(name) => name,
        Err(fault) => {
            return Ok(Err(Refusal::InvalidArguments(vec![FieldProblem::new("name", fault)])));
        }
    };
    let Some(parent) = agents::get(&mut tx.connection, &caller.agent).await? else {
        return Err(Error::Damaged { table: "agents", what: format!("{} is missing", caller.agent) });
    };
    let mentioned = ArtifactId::all_in(&json!(brief).to_string());
    let facts = HireFacts {
        task: caller.task.clone(),
        parent: parent.party(&context.snapshot.catalogue),
        contacts: door::known_parties(&mut tx.connection, &context.snapshot.catalogue, caller).await?,
        role: roles::usable(&mut tx.connection, &caller.agent, &caller.task, &role).await?,
        children: agents::count_children(&mut tx.connection, &caller.agent, &caller.task).await?,
        agents: agents::count_of_task(&mut tx.connection, &caller.task).await?,
        openable: door::openable(&mut tx.connection, caller, &mentioned).await?,
    };
    let wish = HireWish { role, brief, name };
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
    let SpawnAgent { role_id, task_brief, name } = arguments;
    let hired = hire(tx, context, role_id, task_brief.as_ref(), name.as_deref()).await?;
    Ok(hired.map(|hired| Done::json(hired.shown)))
}

/// Both in one step: where the message is refused, nobody is hired.
pub(super) async fn spawn_with_task(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: SpawnAgentWithTask,
) -> Result<Ran, Error> {
    let SpawnAgentWithTask { role_id, task_brief, mut initial_message, name } = arguments;
    // A message that is lent the brief would be blamed for its faults.
    if let Err(problems) = TaskBrief::parse(task_brief.as_ref()) {
        return Ok(Err(Refusal::InvalidTaskBrief(problems)));
    }
    lend_brief(&mut initial_message, task_brief.as_ref());
    let payload = match Payload::parse(&initial_message) {
        Ok((payload, _)) => payload,
        Err(problems) => {
            let problems = problems.into_iter().map(|problem| problem.inside("initialMessage")).collect();
            return Ok(Err(Refusal::InvalidMessage(problems)));
        }
    };
    let savepoint = tx.savepoint("hire").await?;
    let ran = hire_and_write(tx, context, role_id, task_brief, name, payload).await?;
    if ran.is_err() {
        tx.undo(&savepoint).await?;
    }
    tx.release(savepoint).await?;
    Ok(ran)
}

async fn hire_and_write(
    tx: &mut Tx,
    context: &Context<'_>,
    role: String,
    brief: Option<Value>,
    name: Option<String>,
    payload: Payload,
) -> Result<Ran, Error> {
    let hired = match hire(tx, context, role, brief.as_ref(), name.as_deref()).await? {
        Ok(hired) => hired,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let draft = Draft { to: hired.id.to_string(), payload, answering: Answering::Oldest, due_at: None };
    let sent = door::send(tx, context.snapshot, context.caller, draft, LastWord::UnlessWaiting).await?;
    Ok(sent.map(|message| {
        let mut shown = hired.shown;
        shown["messageId"] = json!(message);
        Done::json(shown)
    }))
}

/// A task assignment that is sent along with the hiring need not say the brief twice.
fn lend_brief(message: &mut Value, brief: Option<&Value>) {
    let assigns =
        message.get("message_type").and_then(Value::as_str) == Some(MessageType::TaskAssignment.as_str());
    if let (true, Some(brief), Some(object)) = (assigns, brief, message.as_object_mut()) {
        object.entry("taskBrief").or_insert_with(|| brief.clone());
    }
}

pub(super) async fn terminate(
    tx: &mut Tx,
    context: &Context<'_>,
    arguments: &TerminateAgent,
) -> Result<Ran, Error> {
    let caller = context.caller;
    let below = agents::below(&mut tx.connection, &caller.agent, &caller.task).await?;
    let descendants: Vec<Descendant> = below
        .iter()
        .map(|row| Descendant { id: row.id.clone(), parent: row.parent.clone(), standing: row.standing })
        .collect();
    let meant = arguments.agent_id.trim();
    let mut by_role = below.iter().filter(|row| row.standing == Standing::Active && row.role_name == meant);
    let unique = by_role.next().filter(|_| by_role.next().is_none());
    let is_id = below.iter().any(|row| row.id.as_str() == meant);
    let meant = if is_id { meant } else { unique.map_or(meant, |row| row.id.as_str()) };
    let reason = arguments.reason.as_deref().unwrap_or_default();
    match rules::end_subtree(&caller.agent, meant, reason, &descendants) {
        Ok(changes) => {
            let ended = changes.len();
            apply::apply(tx, context.snapshot, changes).await?;
            Ok(Ok(Done::json(json!({"status": "success", "id": meant, "ended": ended}))))
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// The caller, all below it, and its other contacts. Nothing else exists for it.
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
