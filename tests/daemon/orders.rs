//! Texts from outside that give orders to an agent: a file of instructions, a file name, a commit message, a line that a
//! search finds, a file that a command prints, a web page, a tool of an MCP server, a colleague who quotes one of these.
//!
//! The scripted model obeys every order that it reads. So only the rights of the agent and the rules of the user can
//! prevent the ordered call.

mod mcp;
mod places;
mod quoted;
mod rights;
mod site;
mod stage;
