//! The correctness properties that the two seeds state, one test each, over everything that could come in. The tests are
//! called after the properties; the seeds are `docs/seeds/capability-routing.design.md` and
//! `docs/seeds/artifact-content-routing.design.md`. Properties 1, 6 and 7 of the former are about the configuration, and
//! are tested where it is read.

mod artifact_seed;
mod capability_seed;
mod inputs;
