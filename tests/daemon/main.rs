//! Tests of the whole daemon from outside: they run the binary as a user does. The agents of the daemon can reach
//! only a scripted server.

#![expect(clippy::expect_used, clippy::panic, reason = "test helpers: a failure here is a failed test")]

mod support;

mod approvals;
mod bad_input;
mod bounds;
mod chaos;
mod circles;
mod cli;
mod clumsy;
mod commands;
mod context;
mod crash;
mod crowds;
mod disk;
mod docs;
mod doctor;
mod exit_codes;
mod fit;
mod floods;
mod foreseen;
mod fork;
mod hands;
mod http_media;
mod http_routing;
mod job;
mod json_output;
mod layers;
mod left_work;
mod live;
mod load;
mod lost_data;
mod machine;
mod maintenance;
mod models;
mod newcomer;
mod notes;
mod now;
mod orders;
mod output;
mod power;
mod protocol;
mod rebinding;
mod rehearsal;
mod release;
mod remedies;
mod runaways;
mod sent;
mod serve;
mod servers;
mod soak;
mod states;
mod tour;
mod why;
