use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Directories, environment, proxy};

fn of(daemon: &[(&str, &str)]) -> BTreeMap<String, String> {
    let daemon = daemon.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let visible = [PathBuf::from("/usr"), PathBuf::from("/bin"), PathBuf::from("/home/p/.rustup")];
    let directories =
        Directories { home: Path::new("/task/home"), temporary: Path::new("/tmp"), visible: &visible };
    environment(&daemon, &directories)
}

#[test]
fn invisible_places_are_not_named() {
    let result = of(&[
        ("PATH", "/home/p/bin:/usr/bin:relative:/usr/../home/p:/bin"),
        ("RUSTUP_HOME", "/home/p/.rustup"),
        ("JAVA_HOME", "/home/p/java"),
        ("LC_ALL", "C.UTF-8"),
    ]);
    assert_eq!(result["PATH"], "/usr/bin:/bin");
    assert_eq!(result["RUSTUP_HOME"], "/home/p/.rustup");
    assert_eq!(result["LC_ALL"], "C.UTF-8");
    assert!(!result.contains_key("JAVA_HOME"));
}

/// Programs read the address of the proxy from variables with different names. A server on the own loopback is reached
/// without the proxy.
#[test]
fn all_usual_variables_name_the_proxy() {
    let variables = proxy(3128);
    let leading = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    for name in leading {
        assert_eq!(variables[name], "http://127.0.0.1:3128", "{name}");
    }
    for name in ["no_proxy", "NO_PROXY"] {
        assert_eq!(variables[name], "localhost,127.0.0.1,::1", "{name}");
    }
    assert_eq!(variables["NODE_USE_ENV_PROXY"], "1");
    assert_eq!(variables.len(), leading.len() + 3);
}

proptest! {
    /// If the name of a variable is not in the list, neither the name nor the value reaches the command.
    #[test]
    fn nothing_else_is_passed_on(
        name in "[A-Z][A-Z_]{2,20}",
        secret in "sk-[a-z0-9]{20}",
    ) {
        let known = of(&[]);
        let result = of(&[(&name, &secret)]);
        let allowed = super::PASSED.contains(&name.as_str()) || super::is_locale(&name);
        prop_assume!(!allowed);
        prop_assert_eq!(result, known);
    }

    /// The HOME of a command comes from its task, whatever the HOME of the daemon is. The PATH of a command contains
    /// only directories of the system here, whatever the PATH of the daemon is.
    #[test]
    fn the_home_is_that_of_the_task(home in "/[a-z/]{1,20}", path in "(/[a-z]{1,8}:?){0,5}") {
        let result = of(&[("HOME", &home), ("PATH", &path), ("LD_PRELOAD", "/evil.so")]);
        prop_assert_eq!(&result["HOME"], "/task/home");
        prop_assert!(!result.contains_key("LD_PRELOAD"));
        for part in result["PATH"].split(':') {
            prop_assert!(["/usr", "/bin", "/sbin"].iter().any(|root| Path::new(part).starts_with(root)), "{}", part);
        }
    }
}
