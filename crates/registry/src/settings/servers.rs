//! The MCP servers of `app.json`.

use crate::fields::{self, Fields};
use crate::problem::Severity;
use crate::secret::SecretText;
use polity_llm::UnsetVariable;
use polity_society::tool_group::ServerName;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use url::Url;

/// How polity starts or reaches one MCP server, and which agents may use it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// How the server is started or reached.
    pub launch: ServerLaunch<SecretText>,
    /// The longest time that a call of a tool may take.
    pub timeout: Duration,
    /// Further names for the group that contains this server's tools. A role may use the tools if it has `mcp:NAME`,
    /// where NAME is one of these names. Several servers may have the same further name.
    pub groups: BTreeSet<ServerName>,
}

/// How an MCP server is started or reached. `T` is the type of the texts. One type is for texts as they are in the
/// file. Another type is for texts after all variables have been replaced.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerLaunch<T> {
    /// A program that exchanges messages over its standard input and output.
    Process {
        /// The program to start.
        command: T,
        /// The arguments of the program.
        args: Vec<T>,
        /// Environment variables that the program gets in addition to the usual variables.
        env: BTreeMap<String, T>,
        /// The directory in which the program starts, relative to the configuration directory.
        cwd: Option<T>,
        /// Whether the program runs in a sandbox.
        sandbox: ServerSandbox,
    },
    /// A server that speaks streamable HTTP.
    Http {
        /// The URL of the server's MCP endpoint.
        url: T,
        /// Headers that polity sends with each request, such as `Authorization`.
        headers: BTreeMap<String, T>,
    },
}

/// Whether the process of an MCP server runs in a sandbox, as commands do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerSandbox {
    /// The server has the same rights as polity itself. Desktop clients start their servers in the same way.
    #[default]
    Off,
    /// The server runs in a sandbox.
    On,
}

impl From<bool> for ServerSandbox {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// The time that a call of an MCP tool may take by default.
const TIMEOUT: Duration = Duration::from_secs(60);

impl ServerSettings {
    /// Returns how to start or reach the server. Each `${NAME}` is replaced by the value that `variable` returns for
    /// the name.
    ///
    /// # Errors
    ///
    /// Fails with the name of the first variable that is not set.
    pub fn resolve(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ServerLaunch<SecretString>, UnsetVariable> {
        let one = |text: &SecretText| text.resolve(&variable);
        let named = |texts: &BTreeMap<String, SecretText>| {
            texts.iter().map(|(name, text)| Ok((name.clone(), one(text)?))).collect::<Result<_, _>>()
        };
        Ok(match &self.launch {
            ServerLaunch::Process { command, args, env, cwd, sandbox } => ServerLaunch::Process {
                command: one(command)?,
                args: args.iter().map(one).collect::<Result<_, _>>()?,
                env: named(env)?,
                cwd: cwd.as_ref().map(one).transpose()?,
                sandbox: *sandbox,
            },
            ServerLaunch::Http { url, headers } => {
                ServerLaunch::Http { url: one(url)?, headers: named(headers)? }
            }
        })
    }

    /// Returns each text that may contain `${NAME}`, with the JSON pointer of its field inside the object of the
    /// server.
    pub(crate) fn texts(&self) -> Vec<(String, &SecretText)> {
        let mut texts = Vec::new();
        let named = |field: &str, name: &String| format!("{field}/{}", fields::escaped(name));
        match &self.launch {
            ServerLaunch::Process { command, args, env, cwd, .. } => {
                texts.push(("command".to_owned(), command));
                texts.extend(args.iter().enumerate().map(|(index, arg)| (format!("args/{index}"), arg)));
                texts.extend(env.iter().map(|(name, text)| (named("env", name), text)));
                texts.extend(cwd.iter().map(|cwd| ("cwd".to_owned(), cwd)));
            }
            ServerLaunch::Http { url, headers } => {
                texts.push(("url".to_owned(), url));
                texts.extend(headers.iter().map(|(name, text)| (named("headers", name), text)));
            }
        }
        texts
    }
}

/// Reads `mcpServers`. Leaves out a server if polity could not start or reach it because of a mistake in its settings.
pub(super) fn read(fields: &mut Fields<'_>) -> BTreeMap<ServerName, ServerSettings> {
    let mut servers = BTreeMap::new();
    let Some(mut object) = fields.open("mcpServers", "there are no MCP servers") else {
        return servers;
    };
    for written in object.names() {
        let left_out = format!("the MCP server {written:?} is left out");
        let Some(name) = ServerName::new(&written) else {
            object.take(&written);
            let what = "is not a valid name (use at most 32 letters, digits, - and single _)";
            object.report(Severity::Error, &written, what, &left_out);
            continue;
        };
        let Some(mut server) = object.open(&written, &left_out) else { continue };
        let read = read_server(&mut server, &left_out);
        // Unknown fields are reported only if the server is used.
        if let Some(read) = read {
            server.finish("it has no effect");
            servers.insert(name, read);
        }
    }
    drop_groups_that_are_servers(&mut object, &mut servers);
    servers
}

fn read_server(server: &mut Fields<'_>, left_out: &str) -> Option<ServerSettings> {
    // In the configurations of some desktop clients, `type` names the transport. polity chooses the transport by the
    // other fields. So only the unsupported transport `sse` matters here.
    let transport = server.read("type", left_out, fields::name);
    if transport.is_some_and(|transport| transport == "sse") {
        let what = "the transport sse is not spoken (remove the field if the server speaks streamable HTTP)";
        server.report(Severity::Error, "type", what, left_out);
        return None;
    }
    let launch = read_launch(server, left_out)?;
    let timeout = server.read_or("timeoutMs", TIMEOUT, fields::milliseconds);
    let groups = read_groups(server);
    Some(ServerSettings { launch, timeout, groups })
}

fn read_launch(server: &mut Fields<'_>, left_out: &str) -> Option<ServerLaunch<SecretText>> {
    match (server.take("command"), server.take("url")) {
        (Some(_), Some(_)) => {
            server.report(Severity::Error, "url", "stands beside command (keep one of them)", left_out);
            None
        }
        (None, None) => {
            let what = "missing (write the program of the server, or its address as url)";
            server.report(Severity::Error, "command", what, left_out);
            None
        }
        (Some(command), None) => {
            let command = checked(server, "command", left_out, command, not_empty)?;
            let args = match server.take("args") {
                Some(args) => checked(server, "args", left_out, args, list)?,
                None => Vec::new(),
            };
            let env = named(server, "env", left_out, variable)?;
            let cwd = match server.take("cwd") {
                Some(cwd) => Some(checked(server, "cwd", left_out, cwd, not_empty)?),
                None => None,
            };
            let sandbox = server.read_or("sandbox", ServerSandbox::default(), fields::switch);
            Some(ServerLaunch::Process { command, args, env, cwd, sandbox })
        }
        (None, Some(address)) => {
            let url = checked(server, "url", left_out, address, url)?;
            let headers = named(server, "headers", left_out, header)?;
            Some(ServerLaunch::Http { url, headers })
        }
    }
}

fn checked<T>(
    fields: &mut Fields<'_>,
    field: &str,
    left_out: &str,
    value: Value,
    read: impl FnOnce(Value) -> Result<T, &'static str>,
) -> Option<T> {
    read(value).map_err(|what| fields.report(Severity::Error, field, what, left_out)).ok()
}

/// Reads an object whose values are texts. If one value is invalid, the whole server is left out. Otherwise the server
/// would start with half of its environment.
fn named(
    server: &mut Fields<'_>,
    field: &str,
    left_out: &str,
    check: impl Fn(&str, &SecretText) -> Result<(), &'static str>,
) -> Option<BTreeMap<String, SecretText>> {
    let object = match server.take(field) {
        Some(value) => checked(server, field, left_out, value, fields::object)?,
        None => return Some(BTreeMap::new()),
    };
    let mut texts = BTreeMap::new();
    for (name, value) in object {
        let read = SecretText::read(value).and_then(|text| check(&name, &text).map(|()| text));
        match read {
            Ok(text) => {
                texts.insert(name, text);
            }
            Err(what) => {
                server.report_inside(Severity::Error, (field, &name), what, left_out);
                return None;
            }
        }
    }
    Some(texts)
}

fn not_empty(value: Value) -> Result<SecretText, &'static str> {
    let text = SecretText::read(value)?;
    if text.written().is_empty() { Err("must not be empty") } else { Ok(text) }
}

fn list(value: Value) -> Result<Vec<SecretText>, &'static str> {
    let Value::Array(items) = value else { return Err("must be a list of strings") };
    items.into_iter().map(SecretText::read).collect()
}

fn url(value: Value) -> Result<SecretText, &'static str> {
    const WRONG: &str = "must be an http or https URL";
    let text = not_empty(value)?;
    // If the address contains variables, it is checked later, before polity connects to the server.
    if !text.written().contains("${") {
        let url = Url::parse(text.written()).map_err(|_| WRONG)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WRONG);
        }
    }
    Ok(text)
}

fn variable(name: &str, _: &SecretText) -> Result<(), &'static str> {
    if fields::is_variable_name(name) { Ok(()) } else { Err("is not the name of an environment variable") }
}

fn header(name: &str, value: &SecretText) -> Result<(), &'static str> {
    if !fields::is_header_name(name) {
        return Err("is not a valid header name");
    }
    if value.written().is_ascii() { Ok(()) } else { Err("must be printable ASCII on one line") }
}

fn read_groups(server: &mut Fields<'_>) -> BTreeSet<ServerName> {
    let names = server.read("groups", "the server has its own group only", fields::texts).unwrap_or_default();
    let mut groups = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        match ServerName::new(name) {
            Some(name) => {
                groups.insert(name);
            }
            None => {
                let what =
                    "is not a valid name (use at most 32 letters, digits, - and single _, without mcp:)";
                server.report_item(Severity::Error, ("groups", index), what, "it is left out");
            }
        }
    }
    groups
}

/// Removes and reports each group that has the name of another server. Without this, server A could have a group with
/// the name of server B. Then a role that may use B could also use A.
fn drop_groups_that_are_servers(object: &mut Fields<'_>, servers: &mut BTreeMap<ServerName, ServerSettings>) {
    let names: BTreeSet<ServerName> = servers.keys().cloned().collect();
    for (name, server) in servers {
        if server.groups.iter().any(|group| group != name && names.contains(group)) {
            let what = "names a group that is the name of another server";
            object.report_inside(Severity::Error, (name.as_str(), "groups"), what, "it is left out");
        }
        server.groups.retain(|group| !names.contains(group));
    }
}
