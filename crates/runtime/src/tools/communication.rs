//! The tools for communication: `send_message`, `list_contacts`, `find_capable_agents`. Also `compress_context`.

use super::{Context, Done, Ran};
use crate::door;
use polity_decide::arguments::{CompressContext, FindCapableAgents, SendMessage};
use polity_society::agent::{Party, Standing};
use polity_society::contact::{self, KnownParty};
use polity_society::content::Direction;
use polity_society::id::{AgentId, MessageId};
use polity_society::message::Payload;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::rules::{Answering, Draft};
use polity_society::time::Timestamp;
use polity_store::record::{Keeps, Record};
use polity_store::{Conversation, Error, Tx, agents, keep, messages, turns};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum delay of a message, in milliseconds: 30 days. A task with a delayed message stays open.
const MAX_DELAY_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// The number of newest entries of the history that `compress_context` leaves unchanged, unless the model gives another
/// number.
const KEEP_RECENT: u64 = 6;

pub(super) async fn send_message(tx: &mut Tx, context: &Context<'_>, arguments: SendMessage) -> Ran {
    let payload = arguments.payload;
    if arguments.delay_ms.is_some_and(|delay| delay > MAX_DELAY_MS) {
        let rule = Fault::Rule(format!("must be at most {MAX_DELAY_MS} (30 days)"));
        return Err(Refusal::InvalidArguments(vec![FieldProblem::new("delayMs", rule)]).into());
    }
    let mut ignored: Vec<String> = Vec::new();
    let due_at = arguments.delay_ms.map(|delay| tx.now.saturating_add(Duration::from_millis(delay)));
    let contacts =
        door::known_parties(&mut tx.connection, &context.snapshot.catalogue, context.caller).await?;
    let mut receivers = BTreeSet::new();
    let mut sent = Vec::new();
    let mut refused = Vec::new();
    for to in arguments.to.0 {
        // The model may name the same agent once by id and once by role, so receivers are compared by id. If a name
        // belongs to no contact, the name itself is compared.
        let known = contact::find(&contacts, &to).ok().flatten();
        let receiver = known.map_or(to.as_str(), |known| known.party.id.as_str());
        if !receivers.insert(receiver.to_owned()) {
            continue;
        }
        if AgentId::new(receiver).is_user()
            && let Some(earlier) = said_in_this_turn(tx, context, &payload).await?
        {
            sent.push(json!({"to": to, "id": earlier, "alreadySent": true}));
            continue;
        }
        let draft =
            Draft { to: to.clone(), payload: payload.clone(), answering: Answering::AsWritten, due_at };
        let Context { snapshot, caller, last_word, misfit, .. } = *context;
        let requests = messages::requests_of(&mut tx.connection, caller).await?;
        match keep(door::send_fitting(tx, snapshot, caller, draft, last_word, misfit, requests).await)? {
            Ok(accepted) => {
                sent.push(json!({"to": to, "id": accepted.id}));
                ignored.extend(accepted.ignored.iter().map(|id| format!("payload.request_id: {id}")));
            }
            Err(refusal) => refused.push((to, refusal)),
        }
    }
    // If every receiver was refused, the whole call is refused, with the reason for the first receiver.
    if sent.is_empty() && !refused.is_empty() {
        let (_, first) = refused.swap_remove(0);
        return Err(first.into());
    }
    let mut result = json!({"messageIds": sent});
    if !refused.is_empty() {
        let texts = &context.snapshot.prompts.texts;
        let each = refused.iter().map(|(to, refusal)| {
            let mut shown = refusal.to_json(texts);
            shown["to"] = json!(to);
            shown
        });
        result["refused"] = each.collect();
    }
    Ok(Done::json(result).naming(ignored))
}

/// Finds a message with the same payload that the caller has already sent to the person in this turn.
/// The person is not told the same thing twice in a turn.
async fn said_in_this_turn(
    tx: &mut Tx,
    context: &Context<'_>,
    payload: &Payload,
) -> Result<Option<MessageId>, Error> {
    match turns::open(&mut tx.connection, context.caller).await? {
        Some(turn) => messages::sent_to_person(&mut tx.connection, context.caller, turn.id, payload).await,
        None => Ok(None),
    }
}

pub(super) async fn list_contacts(tx: &mut Tx, context: &Context<'_>) -> Ran {
    let contacts =
        door::known_parties(&mut tx.connection, &context.snapshot.catalogue, context.caller).await?;
    let shown: Vec<Value> = contacts.iter().map(show).collect();
    Ok(Done::json(json!({"contacts": shown})))
}

fn show(contact: &KnownParty) -> Value {
    let party = &contact.party;
    let mut shown = json!({
        "id": party.id,
        "roleName": party.role_name,
        "source": contact.source,
    });
    // The time 0 marks a contact that exists from the beginning. It would tell a model nothing, so it is left out.
    if contact.since > Timestamp::default()
        && let Ok(since) = jiff::Timestamp::from_millisecond(contact.since.as_millis())
    {
        shown["since"] = json!(since.to_string());
    }
    if let Some(introducer) = &contact.introduced_by {
        shown["introducedBy"] = json!(introducer);
    }
    if let Some(spec) = &party.interface_spec {
        shown["interface_spec"] = json!(spec);
    }
    if !party.id.is_user() {
        shown["capabilities"] = json!(party.capabilities);
    }
    if party.standing == Standing::Ended {
        shown["ended"] = json!(true);
    }
    shown
}

/// Returns the caller's contacts that have a capability. Other agents, which the caller does not know, may have it too:
/// also returns whether there are such agents, and which contacts know one.
pub(super) async fn find_capable(tx: &mut Tx, context: &Context<'_>, arguments: FindCapableAgents) -> Ran {
    let FindCapableAgents { capability, direction } = arguments;
    let direction = direction.unwrap_or(Direction::Input);
    let catalogue = &context.snapshot.catalogue;
    let caller = context.caller;
    let can = |party: &Party| {
        party.standing == Standing::Active
            && !party.id.is_user()
            && party.id != caller.agent
            && party.capabilities.has(&capability, direction)
    };
    let contacts = door::known_parties(&mut tx.connection, catalogue, caller).await?;
    let capable: Vec<Value> = contacts
        .iter()
        .filter(|contact| can(&contact.party))
        .map(|contact| json!({"id": contact.party.id, "roleName": contact.party.role_name}))
        .collect();

    let root = polity_society::id::AgentId::root();
    let all = agents::below(&mut tx.connection, &root, &caller.task).await?;
    let known = |party: &Party| contacts.iter().any(|contact| contact.party.id == party.id);
    let others_exist = all.iter().map(|row| row.party(catalogue)).any(|party| can(&party) && !known(&party));
    let mut ask = Vec::new();
    if others_exist {
        for contact in contacts.iter().filter(|contact| contact.party.standing == Standing::Active) {
            let owner = Conversation { agent: contact.party.id.clone(), task: caller.task.clone() };
            let theirs = door::known_parties(&mut tx.connection, catalogue, &owner).await?;
            if theirs.iter().any(|theirs| can(&theirs.party) && !known(&theirs.party)) {
                ask.push(contact.party.id.clone());
            }
        }
    }
    let services: Vec<Value> =
        catalogue.services_with(&capability, direction).iter().map(|service| json!(service.id)).collect();
    Ok(Done::json(json!({"agents": capable, "othersExist": others_exist, "ask": ask, "services": services})))
}

/// Builds the record of a summary. The record states how many of the newest entries stay unchanged.
pub(super) fn compress(arguments: CompressContext) -> Done {
    let keep_recent = arguments.keep_recent_count.unwrap_or(KEEP_RECENT);
    let record = Record::Compacted { summary: arguments.summary.0, keep_recent, keeps: Keeps::Turn };
    let mut done = Done::json(json!({"status": "success", "keepRecentCount": keep_recent}));
    done.record = Some(record);
    done
}
