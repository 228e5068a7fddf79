//! Why a job in a transaction stopped: its request was refused, or the database failed.
//!
//! Functions within a transaction return both refusals and failures as errors, with `?`. The outermost function calls
//! [`keep`], which separates refusals from failures: a refusal becomes a value, such as a tool result, a notice, or
//! an error for a caller outside the society.

use crate::Error;
use polity_society::refusal::Refusal;

/// Why a job in a transaction stopped before its end.
#[derive(Debug)]
pub enum Stopped<R = Refusal> {
    /// The request was refused. The writer keeps what the job has written, such as the notices that the rules send when
    /// two agents have exchanged too many messages. A caller who does not want this calls
    /// [`Store::write_or_undo`](crate::Store::write_or_undo).
    Refused(R),
    /// The database failed. The writer undoes the whole job.
    Broken(Error),
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<R> From<Error> for Stopped<R> {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl<R> From<polity_sql::Error> for Stopped<R> {
    fn from(error: polity_sql::Error) -> Self {
        Self::Broken(error.into())
    }
}

/// Turns a refusal into a value. If a job returned the refusal as an error, the writer would undo the job.
pub fn keep<T, R>(result: Result<T, Stopped<R>>) -> Result<Result<T, R>, Error> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(Stopped::Refused(refused)) => Ok(Err(refused)),
        Err(Stopped::Broken(error)) => Err(error),
    }
}
