//! Who may do what. Plain functions from a wish and the facts it depends on to changes, or a refusal.

mod closing;
mod door;
mod hire;
mod roles;
mod waiting;

pub use closing::{Beginning, Closing, ClosingFacts, LastWord, Nudge, OpenRequest, closing};
pub use door::{
    Acquaintance, Answering, DoorFacts, Draft, PAIR_LIMIT, Waiting, admit, introduce_person, notice,
};
pub use hire::{Descendant, HireFacts, HireWish, check_hire, end_subtree, hire};
pub use roles::{RoleWish, create_role};
pub use waiting::{Deadlock, Wait, deadlocks};
