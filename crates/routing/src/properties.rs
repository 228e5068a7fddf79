//! Tests with generated inputs. They test the correctness properties that two design documents (the seeds) state. Each
//! test has the name of its property. The seeds are `docs/seeds/capability-routing.design.md` and
//! `docs/seeds/artifact-content-routing.design.md`. Properties 1, 6 and 7 of the capability seed concern the
//! configuration, so the crate `registry` tests them.

mod artifact_seed;
mod capability_seed;
mod inputs;
