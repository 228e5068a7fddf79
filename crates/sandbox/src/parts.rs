//! The names of the parts that the program which contains this crate can run.

/// First argument of the supervisor.
pub(crate) const SUPERVISE: &str = "supervise";

/// First argument of the process inside.
pub(crate) const INSIDE: &str = "inside";

/// First argument of the forwarder.
pub(crate) const FORWARD: &str = "forward";

/// First argument of the probe.
pub(crate) const PROBE: &str = "probe";
