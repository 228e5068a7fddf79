//! The model of all tests in this crate. It follows a script, and checks the history in every request.

use futures::future::BoxFuture;
use polity_llm::{
    Arguments, CallError, ChatModel, Endpoint, FailureKind, Listener, Message, Reply, Request, ToolCall,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// What the model does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// The model ends the turn with this text. If the text is empty, the model ends the turn without a text.
    Text(&'static str),
    /// The model calls one tool.
    Call(&'static str, Value),
    /// The model calls several tools.
    Calls(Vec<(&'static str, Value)>),
    /// The model gives this answer.
    Reply(Reply),
    /// The server refuses the request, and a retry would not help.
    Fail,
    /// The model never answers, and waits until the call is dropped.
    Hang,
    /// The model panics.
    Panic,
}

/// A function that computes what the model does with a request.
type Function = Box<dyn for<'a> Fn(&'a Request) -> BoxFuture<'a, Say> + Send + Sync>;

/// The source of the model's answers.
enum Script {
    /// Each request gets the next answer.
    InOrder(Mutex<VecDeque<Say>>),
    /// Each role has its own list of answers. The last answer of a list is repeated without end.
    ByRole(Mutex<BTreeMap<String, Vec<Say>>>),
    /// A function of the test computes each answer from the request.
    Function(Function),
}

/// A model that follows a script.
pub(crate) struct ScriptedModel {
    script: Script,
    asked: AtomicUsize,
    /// The requests so far. Stays empty if a function computes the answers: the function itself sees every request.
    requests: Mutex<Vec<Request>>,
    hanging: AtomicUsize,
    changed: Notify,
}

impl ScriptedModel {
    /// Creates a model that gives these answers in order, and panics if it is asked once more.
    pub(crate) fn in_order(says: Vec<Say>) -> Arc<Self> {
        Self::new(Script::InOrder(Mutex::new(says.into())))
    }

    /// Creates a model that plays all agents, by role name. Root's role is called `root`.
    pub(crate) fn by_role(roles: &[(&str, &[Say])]) -> Arc<Self> {
        let roles = roles.iter().map(|(role, says)| ((*role).to_owned(), says.to_vec()));
        Self::new(Script::ByRole(Mutex::new(roles.collect())))
    }

    /// Creates a model that gives the same answer to every request.
    pub(crate) fn always(say: Say) -> Arc<Self> {
        Self::function(move |_| Box::pin(std::future::ready(say.clone())))
    }

    /// Creates a model that answers as the function decides.
    pub(crate) fn function<F>(function: F) -> Arc<Self>
    where
        F: for<'a> Fn(&'a Request) -> BoxFuture<'a, Say> + Send + Sync + 'static,
    {
        Self::new(Script::Function(Box::new(function)))
    }

    fn new(script: Script) -> Arc<Self> {
        Arc::new(Self {
            script,
            asked: AtomicUsize::new(0),
            requests: Mutex::default(),
            hanging: AtomicUsize::new(0),
            changed: Notify::new(),
        })
    }

    /// Replaces the answers of a role.
    pub(crate) fn play(&self, role: &str, says: &[Say]) {
        let Script::ByRole(roles) = &self.script else { panic!("this model plays no roles") };
        roles.lock().unwrap().insert(role.to_owned(), says.to_vec());
    }

    /// Returns how often the model was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns how often the model was asked as this role.
    pub(crate) fn asked_as(&self, role: &str) -> usize {
        self.requests().iter().filter(|request| role_of(request) == role).count()
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap()
    }

    /// Returns whether the model has given all answers of [`Self::in_order`].
    pub(crate) fn is_finished(&self) -> bool {
        let Script::InOrder(says) = &self.script else { panic!("this model's answers have no end") };
        says.lock().unwrap().is_empty()
    }

    /// Waits until this many calls hang.
    pub(crate) async fn until_hanging(&self, calls: usize) {
        self.until(|| self.hanging.load(Ordering::SeqCst) == calls).await;
    }

    /// Waits until the condition is true. The condition is checked after each request, and when a call begins to hang
    /// or is dropped.
    pub(crate) async fn until(&self, condition: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if condition() {
                return;
            }
            // Only a defect can reach this time limit, because nothing in these tests takes several seconds.
            tokio::time::timeout(Duration::from_secs(60), changed).await.expect("the state changes");
        }
    }

    /// Waits until the caller drops this future. During the wait, this model counts one more hanging call. A test tool
    /// awaits this function in order to hang.
    pub(crate) async fn hang<T>(&self) -> T {
        self.hanging.fetch_add(1, Ordering::SeqCst);
        let _hanging = Hanging(self);
        self.changed.notify_waiters();
        std::future::pending().await
    }

    async fn next(&self, request: &Request) -> Say {
        match &self.script {
            Script::InOrder(says) => {
                self.keep(request);
                says.lock().unwrap().pop_front().expect("the script has no answer left")
            }
            Script::ByRole(roles) => {
                self.keep(request);
                let role = role_of(request);
                let mut roles = roles.lock().unwrap();
                let says = roles.get_mut(role).unwrap_or_else(|| panic!("{role} has nothing to say"));
                if says.len() > 1 { says.remove(0) } else { says[0].clone() }
            }
            Script::Function(function) => function(request).await,
        }
    }

    fn keep(&self, request: &Request) {
        self.requests().push(request.clone());
        self.changed.notify_waiters();
    }
}

/// A hanging call. When it is dropped, the number of hanging calls is lowered.
struct Hanging<'a>(&'a ScriptedModel);

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.hanging.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

impl ChatModel for ScriptedModel {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        request: &'a Request,
        _: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            check_history(request);
            self.asked.fetch_add(1, Ordering::SeqCst);
            let calls = |calls: Vec<(&str, Value)>| {
                let calls = calls.into_iter().map(|(name, arguments)| tool_call(name, arguments));
                Ok(Reply { tool_calls: calls.collect(), ..Reply::default() })
            };
            match self.next(request).await {
                Say::Text(text) => {
                    let text = Some(text.to_owned()).filter(|text| !text.is_empty());
                    Ok(Reply { text, ..Reply::default() })
                }
                Say::Call(name, arguments) => calls(vec![(name, arguments)]),
                Say::Calls(all) => calls(all),
                Say::Reply(reply) => Ok(reply),
                Say::Fail => Err(CallError {
                    kind: FailureKind::Refused,
                    message: "no".to_owned(),
                    status: Some(400),
                    retry_after: None,
                }),
                Say::Hang => self.hang().await,
                Say::Panic => panic!("a defect"),
            }
        })
    }
}

/// Creates a tool call in an answer of the model. The call has no id.
pub(crate) fn tool_call(name: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("no object: {arguments}") };
    let arguments = Arguments::Object(arguments);
    ToolCall { id: String::new(), name: name.to_owned(), arguments, extra: Map::new() }
}

/// Returns the name of the role for which a request was made. The prompts name root's role in their own language; this
/// function returns `root` instead.
fn role_of(request: &Request) -> &str {
    let Some(Message::System(system)) = request.messages.first() else { panic!("no system message") };
    let role = system.lines().find_map(|line| line.strip_prefix("roleName=")).unwrap();
    if role == "根智能体" { "root" } else { role }
}

/// Checks that the results of tool calls directly follow the calls, before any other message.
fn check_history(request: &Request) {
    let mut pending: BTreeSet<&str> = BTreeSet::new();
    for message in &request.messages {
        match message {
            Message::Tool { call_id, .. } => {
                assert!(pending.remove(call_id.as_str()), "{call_id} answers nothing")
            }
            other => {
                assert!(pending.is_empty(), "{pending:?} are not answered before {other:?}");
                if let Message::Assistant { tool_calls, .. } = other {
                    pending = tool_calls.iter().map(|call| call.id.as_str()).collect();
                }
            }
        }
    }
    assert!(pending.is_empty());
}
