//! Asks the person through the client (elicitation).
//!
//! This works in two ways. Up to version 2025-11-25 of the protocol, the server sends a request to the client, and the
//! client's call of a tool waits for the answer. From version 2026-07-28 on, the server ends the call with a result
//! that contains the questions, and the client repeats the call with the answers.

use crate::approval::{self, Action, Reply};
use crate::tools::{Inquiry, Person, Questions, Told};
use polity_society::id::ApprovalId;
use polity_view::ApprovalView;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RequestHandle};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Maximum number of rounds in one call. In each round, the server returns questions, and the client repeats the call
/// with the replies. Clients give up a call after ten rounds. Further questions wait for the next call.
const MOST_ROUNDS: u32 = 8;

/// Data that the client gets with the questions, and sends back when it repeats the call. The data are not secret. If
/// a client changes the data, this affects only the questions to its own user.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    /// Number of times that the server has returned questions instead of the result of this call.
    rounds: u32,
    put_off: BTreeSet<ApprovalId>,
}

/// Returns two things: how the client of a call can ask the person, and a queue. The queue holds the questions that the
/// client must show during the call.
pub(super) fn of(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> (Person, mpsc::Receiver<Inquiry>) {
    // The client shows one question at a time.
    let (inquiries, receiver) = mpsc::channel(1);
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // A client that names no mode can show forms: in the first versions of the protocol, forms were the only mode.
    let can_ask = elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
    if !can_ask {
        return (Person::Absent, receiver);
    }
    let asks_between =
        context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let person = match (asks_between, state(request)) {
        (false, _) => Person::During(inquiries),
        (true, state) if state.rounds >= MOST_ROUNDS => Person::Absent,
        (true, state) => {
            let responses = request.input_responses.iter().flatten();
            let replies = responses.map(|(id, response)| {
                let response = serde_json::from_value::<ElicitResult>(response.clone());
                (ApprovalId::new(id.as_str()), response.map_or(Reply::PutOff, |response| reply(&response)))
            });
            Person::Between(Told { replies: replies.collect(), put_off: state.put_off })
        }
    };
    (person, receiver)
}

/// Returns how often the server has already returned questions instead of the result of this call.
pub(super) fn rounds(request: &CallToolRequestParams) -> u32 {
    state(request).rounds
}

fn state(request: &CallToolRequestParams) -> State {
    let state = request.request_state.as_deref();
    state.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default()
}

/// Returns the result that makes the client ask the person, and then repeat the call.
pub(super) fn required(questions: Questions, rounds: u32) -> InputRequiredResult {
    let Questions { new, put_off } = questions;
    let requests: InputRequests = new
        .iter()
        .filter_map(|approval| {
            let request = InputRequest::Elicitation(ElicitRequest::new(params(approval)?));
            Some((approval.id.to_string(), request))
        })
        .collect();
    let state = State { rounds: rounds.saturating_add(1), put_off };
    InputRequiredResult::new(Some(requests), serde_json::to_string(&state).ok())
}

/// Asks the client to show a question, and passes the person's reply to the tool. If the tool stops waiting before the
/// person replies, tells the client to remove the question.
pub(super) async fn ask(peer: &Peer<RoleServer>, inquiry: Inquiry) {
    let Inquiry { approval, reply: mut wanted } = inquiry;
    let Some(params) = params(&approval) else { return };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let mut shown = match sent {
        Ok(handle) => Shown(Some(handle)),
        Err(error) => {
            tracing::debug!(%error, approval = %approval.id, "the MCP client could not be asked");
            return;
        }
    };
    let replied = tokio::select! {
        replied = shown.reply() => replied,
        () = wanted.closed() => return,
    };
    // Sending fails only if the tool no longer waits for the reply. Nobody needs the reply then.
    let _ = wanted.send(replied);
}

/// A question that the client shows. When this value is dropped, the client is told to remove the question.
struct Shown(Option<RequestHandle<RoleServer>>);

impl Shown {
    async fn reply(&mut self) -> Reply {
        let Some(handle) = &mut self.0 else { return Reply::PutOff };
        let response = (&mut handle.rx).await;
        self.0 = None;
        match response {
            Ok(Ok(ClientResult::ElicitResult(result))) => reply(&result),
            // The client could not ask the person, sent another kind of result, or has disconnected.
            Ok(_) | Err(_) => Reply::PutOff,
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        // If no async runtime is running, the connection is already closed. The client needs no message then.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Fails only if the client has disconnected.
                let _ = handle.cancel(Some("the question has ended".to_owned())).await;
            });
        }
    }
}

fn params(approval: &ApprovalView) -> Option<ElicitRequestParams> {
    // `form` always returns a valid schema; a test checks it.
    let requested_schema = ElicitationSchema::from_json_schema(approval::form()).ok()?;
    let message = approval::question(approval);
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

fn reply(result: &ElicitResult) -> Reply {
    let action = match result.action {
        ElicitationAction::Accept => Action::Accept,
        ElicitationAction::Decline => Action::Decline,
        _ => Action::Cancel,
    };
    approval::reply(action, result.content.as_ref() as Option<&Value>)
}
