//! The MCP servers of `app.json`: starts and stops them as the configuration declares, and offers their tools.

pub(crate) mod sandboxed;

use futures::future::{BoxFuture, FutureExt};
use polity_hands::server_state::{ServerState, Standing};
use polity_hands::table::Toolbox;
use polity_hands::tool::Tool;
use polity_registry::{Registry, ServerLaunch, ServerSandbox, ServerSettings};
use polity_servers::{Bounds, Config, Http, Launch, Launcher, Process, Sandbox, Secret, Servers};
use polity_society::tool_group::ServerName;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::broadcast::error::RecvError;
use url::Url;

/// The MCP servers that the configuration in a registry declares. Before a method returns tools or states of servers,
/// it applies the current configuration.
pub(crate) struct ConfiguredServers {
    registry: Arc<Registry>,
    servers: Servers,
    applied: Mutex<Applied>,
}

/// The configuration that was applied last.
#[derive(Default)]
struct Applied {
    settings: Option<BTreeMap<ServerName, ServerSettings>>,
    /// The servers that are not started, because their configuration cannot be used.
    unusable: Vec<ServerState>,
}

impl ConfiguredServers {
    /// Starts the servers. Follows changes of the configuration until the returned value is dropped or shut down.
    pub(crate) fn start(registry: Arc<Registry>, launcher: Arc<dyn Launcher>) -> Arc<Self> {
        let mut reports = registry.reports();
        let servers = Servers::new(launcher, Bounds::default());
        let configured = Arc::new(Self { registry, servers, applied: Mutex::default() });
        configured.apply();
        let followed: Weak<Self> = Arc::downgrade(&configured);
        tokio::spawn(async move {
            loop {
                // A missed report does not matter, because `apply` reads the current configuration from the registry.
                if let Err(RecvError::Closed) = reports.recv().await {
                    return;
                }
                let Some(configured) = followed.upgrade() else { return };
                configured.apply();
            }
        });
        configured
    }

    /// Starts, replaces and stops servers until they match the current configuration.
    fn apply(&self) {
        let snapshot = self.registry.current();
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        if applied.settings.as_ref() == Some(&snapshot.settings.servers) {
            return;
        }
        let mut configs = BTreeMap::new();
        let mut unusable = Vec::new();
        for (name, settings) in &snapshot.settings.servers {
            match config(settings, self.registry.config_dir(), |name| std::env::var(name).ok()) {
                Ok(config) => {
                    configs.insert(name.clone(), config);
                }
                Err(why) => {
                    unusable.push(ServerState { name: name.clone(), standing: Standing::Unusable { why } });
                }
            }
        }
        self.servers.set(configs);
        *applied = Applied { settings: Some(snapshot.settings.servers.clone()), unusable };
    }
}

impl Toolbox for ConfiguredServers {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.apply();
        self.servers.tools()
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        self.apply();
        self.servers.settled().boxed()
    }

    fn servers(&self) -> Vec<ServerState> {
        self.apply();
        let mut states = self.servers.state();
        states.extend(self.applied.lock().unwrap_or_else(PoisonError::into_inner).unusable.clone());
        states.sort_by(|one, other| one.name.cmp(&other.name));
        states
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        self.servers.shut_down().boxed()
    }
}

/// Returns the configuration with which a server is started or connected. The error contains no values of the
/// configuration, because a value may be a secret.
fn config(
    settings: &ServerSettings,
    config_dir: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Config, String> {
    let launch = match settings.resolve(variable).map_err(|unset| unset.to_string())? {
        ServerLaunch::Process { command, args, env, cwd, sandbox } => Launch::Process(Process {
            command: text(&command),
            args: args.iter().map(text).collect(),
            env: secrets(env),
            cwd: directory(cwd, sandbox, config_dir),
            sandbox: match sandbox {
                ServerSandbox::Off => Sandbox::Off,
                ServerSandbox::On => Sandbox::On,
            },
        }),
        ServerLaunch::Http { url, headers } => {
            let url =
                Url::parse(url.expose_secret()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            let url = url.ok_or("url is not an http or https URL once its variables are replaced")?;
            Launch::Http(Http { url, headers: secrets(headers) })
        }
    };
    Ok(Config { launch, timeout: settings.timeout })
}

/// Returns the working directory of a server's process: `cwd` if it is set, else the configuration directory. A
/// process in a sandbox must not see the configuration directory, so it gets a directory of its own (`None`).
fn directory(cwd: Option<SecretString>, sandbox: ServerSandbox, config_dir: &Path) -> Option<PathBuf> {
    match (cwd, sandbox) {
        (Some(cwd), _) => Some(config_dir.join(text(&cwd))),
        (None, ServerSandbox::Off) => Some(config_dir.to_owned()),
        (None, ServerSandbox::On) => None,
    }
}

fn text(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}

fn secrets(values: BTreeMap<String, SecretString>) -> BTreeMap<String, Secret> {
    values.into_iter().map(|(name, value)| (name, Secret::new(value.expose_secret()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_registry::SecretText;
    use std::collections::BTreeSet;
    use std::time::Duration;

    const TIMEOUT: Duration = Duration::from_millis(7);

    /// Returns the configuration of a server whose file is in `/configuration`. Only the variable `TOKEN` is set.
    fn configured(launch: ServerLaunch<SecretText>) -> Result<Config, String> {
        let settings = ServerSettings { launch, timeout: TIMEOUT, groups: BTreeSet::new() };
        let variable = |name: &str| (name == "TOKEN").then(|| "a-secret".to_owned());
        config(&settings, Path::new("/configuration"), variable)
    }

    fn started(cwd: Option<&str>, sandbox: ServerSandbox) -> Config {
        let launch = ServerLaunch::Process {
            command: SecretText::new("uvx"),
            args: vec![SecretText::new("--token"), SecretText::new("${TOKEN}")],
            env: BTreeMap::from([("KEY".to_owned(), SecretText::new("x ${TOKEN}"))]),
            cwd: cwd.map(SecretText::new),
            sandbox,
        };
        configured(launch).unwrap()
    }

    fn reached(url: &str) -> Result<Config, String> {
        let headers = BTreeMap::from([("Authorization".to_owned(), SecretText::new("Bearer ${TOKEN}"))]);
        configured(ServerLaunch::Http { url: SecretText::new(url), headers })
    }

    #[test]
    fn a_process_starts_with_everything_that_the_file_says() {
        let check = |cwd: Option<&str>, sandbox: ServerSandbox, directory: Option<&str>, expect: Sandbox| {
            let process = Process {
                command: "uvx".to_owned(),
                args: vec!["--token".to_owned(), "a-secret".to_owned()],
                env: BTreeMap::from([("KEY".to_owned(), Secret::new("x a-secret"))]),
                cwd: directory.map(PathBuf::from),
                sandbox: expect,
            };
            let expect = Config { launch: Launch::Process(process), timeout: TIMEOUT };
            assert_eq!(started(cwd, sandbox), expect);
        };
        check(None, ServerSandbox::Off, Some("/configuration"), Sandbox::Off);
        check(Some("tools"), ServerSandbox::Off, Some("/configuration/tools"), Sandbox::Off);
        check(Some("/srv"), ServerSandbox::Off, Some("/srv"), Sandbox::Off);
        check(Some("/srv"), ServerSandbox::On, Some("/srv"), Sandbox::On);
        check(None, ServerSandbox::On, None, Sandbox::On);
    }

    #[test]
    fn a_server_with_a_url_is_reached_with_its_headers() {
        let http = Http {
            url: Url::parse("https://a.example/mcp?key=a-secret").unwrap(),
            headers: BTreeMap::from([("Authorization".to_owned(), Secret::new("Bearer a-secret"))]),
        };
        let expect = Config { launch: Launch::Http(http), timeout: TIMEOUT };
        assert_eq!(reached("https://a.example/mcp?key=${TOKEN}"), Ok(expect));
    }

    #[test]
    fn a_server_that_cannot_be_used_has_a_reason_without_secrets() {
        for url in ["${TOKEN}", "ftp://a.example/${TOKEN}"] {
            let reason = "url is not an http or https URL once its variables are replaced";
            assert_eq!(reached(url), Err(reason.to_owned()), "{url}");
        }
        let reason = "the environment variable LOST is not set";
        assert_eq!(reached("https://${LOST}/${TOKEN}"), Err(reason.to_owned()));
    }
}
