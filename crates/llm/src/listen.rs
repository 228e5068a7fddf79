//! Lets somebody listen to an answer while it arrives.

/// Hears an answer while it arrives, piece by piece.
///
/// The listener runs inside the call, so it must return at once. It cannot refuse a piece. A model may send hundreds of
/// pieces in a second, so the listener must do very little for each piece.
pub trait Listener: Send + Sync {
    /// Hears the next piece.
    fn hear(&self, piece: Piece<'_>);
}

/// A piece of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the answer have arrived. They may be of any kind.
    Bytes,
    /// A piece of the text.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// The model has begun to call the tool of this name.
    Call(&'a str),
    /// A piece of the arguments of a call has arrived. Contains the memory that the piece takes, in bytes.
    Arguments(usize),
}

/// A listener for calls to which nobody listens.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Listener for Nobody {
    fn hear(&self, _piece: Piece<'_>) {}
}
