//! The names of the parts of a sandbox that [`enter`](crate::enter) can run. The program gets the name of the part as
//! an argument.

/// The argument that makes the program run as the supervisor.
pub(crate) const SUPERVISE: &str = "supervise";

/// The argument that makes the program run as the process inside the sandbox.
pub(crate) const INSIDE: &str = "inside";

/// The argument that makes the program run as the forwarder.
pub(crate) const FORWARD: &str = "forward";

/// The argument that makes the program run as the process of the probe.
pub(crate) const PROBE: &str = "probe";
