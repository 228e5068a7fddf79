//! Makes media fit for a model.
