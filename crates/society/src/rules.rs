//! Who may do what. Each rule is a plain function that takes what a party wants to do and the facts that the decision
//! needs, and returns changes or a refusal.

mod closing;
mod door;
mod hire;
mod rest;
mod rights;
mod roles;
mod waiting;
mod work;

pub use closing::{
    Address, Closing, ClosingFacts, Earlier, LastWord, Prompting, Subject, Timing, WorkedOn, address, closing,
};
pub use door::{
    Acquaintance, Admitted, Answering, DoorFacts, Draft, PAIR_LIMIT, admit, introduce_person, notice,
};
pub use hire::{Descendant, HireFacts, HireWish, check_hire, end_subtree, hire};
pub use rest::{Cause, Due, Held, Owed, Provisional, Reminded, RestFacts, Unnamed, due};
pub use rights::{Denial, Link, Origin, Rights, RoleOf, Verdict};
pub use roles::{RoleWish, create_role, find_role};
pub use waiting::{Deadlock, Wait, deadlocks};
pub use work::{OpenRequest, Pending, RequestRow, named, subjects, works_on};
