//! The operations as they are drawn. An operation names agents, artifacts and requests by numbers. When the operation
//! is performed, each number picks one of the agents, artifacts or requests that exist at that time. So a sequence
//! can still be performed after some of its operations were removed.

use polity_society::message::MessageType;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The party that performs an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Actor {
    /// A party whose turn is open.
    InTurn(u8),
    /// A party that has not ended, in one of its tasks. The number picks the person only for operations that the
    /// person can perform.
    Anybody(u8),
    /// The person.
    Person(u8),
}

/// The party that an operation is about, and how the actor names this party.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whom {
    /// A contact of the actor, by its id.
    Contact(u8),
    /// A contact of the actor, by its role.
    RoleOfContact(u8),
    /// A party with an open request to the actor.
    Asker(u8),
    /// A descendant of the actor.
    Descendant(u8),
    /// Any party of any task. The party may have ended, and need not be a contact of the actor.
    Anybody(u8),
    /// Any party, by its role.
    RoleOfAnybody(u8),
    /// The actor itself.
    Itself,
    /// An id that does not exist.
    Nobody,
}

/// The artifact that an operation is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    /// An artifact that the actor may open.
    Openable(u8),
    /// Any artifact.
    Any(u8),
    /// An artifact that does not exist.
    Missing,
}

/// What is wrong with a message, a brief or a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The message, brief or role is valid.
    None,
    /// A required field is missing, or the message type is unknown.
    Incomplete,
    /// The text is longer than a message may be.
    Long,
}

/// The payload of a message.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    pub(super) kind: MessageType,
    pub(super) flaw: Flaw,
    pub(super) attachments: Vec<Which>,
    pub(super) mentions: Option<Which>,
    /// The agent that an introduction introduces.
    pub(super) target: Option<Whom>,
    /// The requests that the message names in `request_id`.
    pub(super) requests: Vec<Named>,
    /// A number that makes texts differ.
    pub(super) words: u8,
}

/// A request that a message names in `request_id`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// A request that the sender has read and not answered.
    Open(u8),
    /// A request A that another agent passed on to the sender, as a new request B. The sender has not answered B yet.
    PassedOn(u8),
    /// Any message.
    Any(u8),
    /// An id that does not exist.
    Missing,
}

/// The closing text of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClosingText {
    /// No text.
    Silence,
    /// A text, perhaps with the reference of an artifact.
    Words(u8, Option<Which>),
    /// The same text as in the agent's newest message.
    Again,
}

/// The task brief of a new agent.
#[derive(Clone, Debug)]
pub(super) struct Brief {
    pub(super) flaw: Flaw,
    pub(super) collaborators: Vec<Whom>,
    pub(super) mentions: Option<Which>,
}

/// How an operation names a role.
#[derive(Clone, Copy, Debug)]
pub(super) enum RoleMeant {
    /// Any role, by its id.
    Id(u8),
    /// A name from [`ROLE_NAMES`], whether such a role exists or not.
    Name(u8),
    /// The name of a role that the actor may hire into, if there is one.
    Usable(u8),
}

/// The agent to hire.
#[derive(Clone, Debug)]
pub(super) struct Hire {
    pub(super) role: RoleMeant,
    pub(super) brief: Brief,
    pub(super) name: Option<&'static str>,
}

/// One operation of a sequence.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    CreateRole {
        by: Actor,
        name: u8,
        flaw: Flaw,
    },
    FindRole {
        by: Actor,
        role: RoleMeant,
    },
    Spawn {
        by: Actor,
        hire: Hire,
    },
    SpawnWithTask {
        by: Actor,
        hire: Hire,
        message: Payload,
    },
    Send {
        by: Actor,
        to: Vec<Whom>,
        payload: Payload,
        delay: Option<u64>,
    },
    Terminate {
        by: Actor,
        whom: Whom,
    },
    PutArtifact {
        by: Actor,
    },
    PutReference {
        by: Actor,
        which: Which,
    },
    GetArtifact {
        by: Actor,
        which: Which,
    },
    ListArtifacts {
        by: Actor,
    },
    ListContacts {
        by: Actor,
    },
    BeginTurn {
        mailbox: u8,
    },
    /// An agent answers a request in the middle of its turn. The asker holds a text or has sent the person an interim
    /// message. The asker reads the answer at once, and ends its turn without a text.
    Overtake {
        request: u8,
    },
    TakeMail {
        turn: u8,
    },
    EndTurn {
        turn: u8,
        text: ClosingText,
    },
    FailTurn {
        turn: u8,
    },
    /// Shows the person the oldest message that the person has not seen yet.
    Show,
    Wait {
        milliseconds: i64,
    },
    /// Root is nudged, because the person has heard nothing final.
    Nudge {
        task: u8,
    },
    Restart,
}

/// Names for roles. The last name is invalid.
pub(super) const ROLE_NAMES: [&str; 5] = ["读者", "写手", "critic", "组长", "【x】"];
/// Names for agents. The last name is invalid.
const AGENT_NAMES: [&str; 6] = ["小明", "小红", "critic", "reader", "写手", "a<b"];

fn index() -> impl Strategy<Value = u8> {
    0u8..24
}

fn actor() -> impl Strategy<Value = Actor> {
    prop_oneof![1 => index().prop_map(Actor::Anybody), 1 => index().prop_map(Actor::InTurn)]
}

/// In most cases draws an agent whose turn is open, because such agents send messages and store artifacts.
fn speaker() -> impl Strategy<Value = Actor> {
    prop_oneof![1 => index().prop_map(Actor::Anybody), 3 => index().prop_map(Actor::InTurn)]
}

fn whom() -> impl Strategy<Value = Whom> {
    prop_oneof![
        10 => index().prop_map(Whom::Contact),
        2 => index().prop_map(Whom::RoleOfContact),
        8 => index().prop_map(Whom::Asker),
        4 => index().prop_map(Whom::Anybody),
        1 => index().prop_map(Whom::RoleOfAnybody),
        1 => Just(Whom::Itself),
        1 => Just(Whom::Nobody),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        6 => index().prop_map(Which::Openable),
        3 => index().prop_map(Which::Any),
        1 => Just(Which::Missing),
    ]
}

fn flaw() -> impl Strategy<Value = Flaw> {
    prop_oneof![38 => Just(Flaw::None), 2 => Just(Flaw::Incomplete), 1 => Just(Flaw::Long)]
}

fn named() -> impl Strategy<Value = Named> {
    prop_oneof![
        6 => index().prop_map(Named::Open),
        3 => index().prop_map(Named::PassedOn),
        2 => index().prop_map(Named::Any),
        1 => Just(Named::Missing),
    ]
}

fn said() -> impl Strategy<Value = ClosingText> {
    let words = (any::<u8>(), proptest::option::weighted(0.2, which()));
    prop_oneof![
        5 => Just(ClosingText::Silence),
        6 => words.prop_map(|(words, mentions)| ClosingText::Words(words, mentions)),
        2 => Just(ClosingText::Again),
    ]
}

fn payload() -> impl Strategy<Value = Payload> {
    let kinds = [MessageType::ALL, &[MessageType::General, MessageType::General]].concat();
    let kinds = prop_oneof![3 => select(kinds), 1 => Just(MessageType::IntroductionResponse)];
    let attachments = prop_oneof![
        6 => Just(Vec::new()),
        2 => proptest::collection::vec(which(), 1..3),
    ];
    let mentions = proptest::option::weighted(0.2, which());
    let target = proptest::option::weighted(0.9, whom());
    let requests = prop_oneof![
        5 => Just(Vec::new()),
        2 => named().prop_map(|one| vec![one]),
        1 => proptest::collection::vec(named(), 2..4),
    ];
    (kinds, flaw(), attachments, mentions, target, requests, any::<u8>()).prop_map(
        |(kind, flaw, attachments, mentions, target, requests, words)| Payload {
            kind,
            flaw,
            attachments,
            mentions,
            target,
            requests,
            words,
        },
    )
}

fn hire() -> impl Strategy<Value = Hire> {
    let collaborators = prop_oneof![
        1 => Just(Vec::new()),
        1 => proptest::collection::vec(
            prop_oneof![6 => index().prop_map(Whom::Contact), 1 => whom()], 1..3),
    ];
    let mentions = proptest::option::weighted(0.2, which());
    let brief = (flaw(), collaborators, mentions).prop_map(|(flaw, collaborators, mentions)| Brief {
        flaw,
        collaborators,
        mentions,
    });
    let name = proptest::option::weighted(0.3, select(AGENT_NAMES.to_vec()));
    (role(), brief, name).prop_map(|(role, brief, name)| Hire { role, brief, name })
}

fn role() -> impl Strategy<Value = RoleMeant> {
    prop_oneof![
        1 => index().prop_map(RoleMeant::Id),
        1 => index().prop_map(RoleMeant::Name),
        8 => index().prop_map(RoleMeant::Usable),
    ]
}

/// Whether many or few operations start new work. If many do so, most agents always have mail and never come to rest.
/// So in some sequences, few do so.
#[derive(Clone, Copy, Debug)]
enum Pace {
    Busy,
    Calm,
}

fn operation(pace: Pace) -> BoxedStrategy<Operation> {
    let weight = |busy: u32, calm: u32| match pace {
        Pace::Busy => busy,
        Pace::Calm => calm,
    };
    let partners = prop_oneof![
        4 => index().prop_map(Whom::Asker),
        3 => index().prop_map(Whom::Descendant),
        1 => index().prop_map(Whom::Contact),
    ];
    let whom = prop_oneof![weight(1, 0) => whom(), weight(0, 1) => partners].boxed();
    let receivers = prop_oneof![
        5 => whom.clone().prop_map(|one| vec![one]),
        1 => proptest::collection::vec(whom.clone(), 0..4),
    ];
    let writer = prop_oneof![4 => speaker(), 1 => index().prop_map(Actor::Person)];
    let delay = proptest::option::weighted(0.15, select(vec![0, 1_000, 60_000]));
    let ends = prop_oneof![3 => index().prop_map(Whom::Descendant), 2 => whom];
    prop_oneof![
        weight(14, 8) => (actor(), index(), flaw()).prop_map(|(by, name, flaw)| Operation::CreateRole { by, name, flaw }),
        3 => (actor(), role()).prop_map(|(by, role)| Operation::FindRole { by, role }),
        weight(30, 16) => (actor(), hire()).prop_map(|(by, hire)| Operation::Spawn { by, hire }),
        weight(14, 10) => (actor(), hire(), payload())
            .prop_map(|(by, hire, message)| Operation::SpawnWithTask { by, hire, message }),
        weight(120, 50) => (writer, receivers, payload(), delay)
            .prop_map(|(by, to, payload, delay)| Operation::Send { by, to, payload, delay }),
        weight(8, 2) => (actor(), ends).prop_map(|(by, whom)| Operation::Terminate { by, whom }),
        14 => speaker().prop_map(|by| Operation::PutArtifact { by }),
        4 => (actor(), which()).prop_map(|(by, which)| Operation::PutReference { by, which }),
        14 => (actor(), which()).prop_map(|(by, which)| Operation::GetArtifact { by, which }),
        3 => actor().prop_map(|by| Operation::ListArtifacts { by }),
        3 => actor().prop_map(|by| Operation::ListContacts { by }),
        weight(56, 80) => index().prop_map(|mailbox| Operation::BeginTurn { mailbox }),
        weight(6, 40) => index().prop_map(|request| Operation::Overtake { request }),
        weight(20, 4) => index().prop_map(|turn| Operation::TakeMail { turn }),
        weight(44, 80) => (index(), said()).prop_map(|(turn, text)| Operation::EndTurn { turn, text }),
        weight(6, 1) => index().prop_map(|turn| Operation::FailTurn { turn }),
        8 => Just(Operation::Show),
        10 => (1i64..70_000).prop_map(|milliseconds| Operation::Wait { milliseconds }),
        3 => (0u8..2).prop_map(|task| Operation::Nudge { task }),
        2 => Just(Operation::Restart),
    ]
    .boxed()
}

/// The strategy that draws sequences with a fixed number of operations. Shrinking a failing sequence first removes
/// halves of the sequence, then quarters, and finally single operations. Then it simplifies each remaining operation.
#[derive(Debug)]
pub(super) struct Sequences {
    /// One strategy for each [`Pace`].
    operations: [BoxedStrategy<Operation>; 2],
    length: usize,
}

impl Sequences {
    pub(super) fn of(length: usize) -> Self {
        Self { operations: [operation(Pace::Busy), operation(Pace::Calm)], length }
    }
}

impl Strategy for Sequences {
    type Tree = Sequence;
    type Value = Vec<Operation>;

    fn new_tree(&self, runner: &mut TestRunner) -> Result<Sequence, proptest::test_runner::Reason> {
        let pace = runner.rng().random_range(0..self.operations.len());
        let operation = &self.operations[pace];
        let trees = (0..self.length).map(|_| operation.new_tree(runner));
        Ok(Sequence {
            operations: trees.collect::<Result<_, _>>()?,
            length: self.length,
            shrink: Shrink::LeaveOut { at: self.length, size: self.length },
            undo: None,
        })
    }
}

/// A sequence that can be shrunk.
pub(super) struct Sequence {
    operations: Vec<Box<dyn ValueTree<Value = Operation>>>,
    /// How many operations the sequence had when the current pass over it began.
    length: usize,
    shrink: Shrink,
    undo: Option<Undo>,
}

/// The next step of shrinking. Each pass goes from the end to the beginning.
#[derive(Clone, Copy)]
enum Shrink {
    /// Leave out the `size` operations just before the place `at`.
    LeaveOut { at: usize, size: usize },
    /// Simplify the operation before this place.
    Simplify(usize),
}

/// How to undo the last step.
enum Undo {
    PutBack(usize, Vec<Box<dyn ValueTree<Value = Operation>>>),
    Complicate(usize),
}

impl ValueTree for Sequence {
    type Value = Vec<Operation>;

    fn current(&self) -> Vec<Operation> {
        self.operations.iter().map(|operation| operation.current()).collect()
    }

    fn simplify(&mut self) -> bool {
        loop {
            match self.shrink {
                Shrink::LeaveOut { at: 0, size: 1 } => {
                    let length = self.operations.len();
                    // If this pass has removed an operation, start another pass, because other operations may have
                    // become unnecessary.
                    self.shrink = if length < self.length {
                        Shrink::LeaveOut { at: length, size: 1 }
                    } else {
                        Shrink::Simplify(length)
                    };
                    self.length = length;
                }
                Shrink::LeaveOut { at: 0, size } => {
                    self.shrink = Shrink::LeaveOut { at: self.operations.len(), size: size / 2 };
                }
                Shrink::LeaveOut { at, size } => {
                    let at = at.min(self.operations.len());
                    let from = at.saturating_sub(size);
                    let left_out = self.operations.drain(from..at).collect();
                    self.undo = Some(Undo::PutBack(from, left_out));
                    self.shrink = Shrink::LeaveOut { at: from, size };
                    return true;
                }
                Shrink::Simplify(0) => return false,
                Shrink::Simplify(at) => {
                    if self.operations[at - 1].simplify() {
                        self.undo = Some(Undo::Complicate(at - 1));
                        return true;
                    }
                    self.shrink = Shrink::Simplify(at - 1);
                }
            }
        }
    }

    fn complicate(&mut self) -> bool {
        match self.undo.take() {
            None => false,
            Some(Undo::PutBack(from, left_out)) => {
                self.operations.splice(from..from, left_out);
                true
            }
            Some(Undo::Complicate(at)) => {
                let more = self.operations[at].complicate();
                self.undo = more.then_some(Undo::Complicate(at));
                more
            }
        }
    }
}
