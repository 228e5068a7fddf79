//! Finds the process that listens on a port of this machine. It reads `/proc`, so it works only on Linux.

use std::fs;
use std::path::Path;

/// Maximum number of processes to inspect.
const MAX_PROCESSES: usize = 20_000;

/// Describes the process that listens on a TCP port, for example as `python3 (process 12)`. Returns nothing if the
/// process belongs to another user, or if the system is not Linux.
pub(super) fn of_port(port: u16) -> Option<String> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let socket = tables.iter().find_map(|table| listening(table, port))?;
    let processes = fs::read_dir("/proc").ok()?.flatten().take(MAX_PROCESSES);
    for process in processes {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if has(&process.path().join("fd"), &socket) {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid})", command.trim()));
        }
    }
    None
}

/// Finds the socket that listens on a port, in a kernel table such as `/proc/net/tcp`. Returns the name of the socket,
/// such as `socket:[22]`. The links in `/proc/PID/fd` contain the same name.
fn listening(table: &str, port: u16) -> Option<String> {
    const LISTENS: &str = "0A";
    let address = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&address) && *fields.get(3)? == LISTENS;
        is_it.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]"))).flatten()
    })
}

fn has(descriptors: &Path, socket: &str) -> bool {
    let Ok(all) = fs::read_dir(descriptors) else { return false };
    let mut targets = all.flatten().filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    targets.any(|target| target.as_os_str() == socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_that_listens() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E25 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 20 4 30 10 -1
   1: 0100007F:1E25 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22 1 0 100 0 0 10 0
   2: nonsense
";
        assert_eq!(listening(table, 7_717), Some("socket:[22]".to_owned()));
        assert_eq!(listening(table, 40_000), None);
        assert_eq!(listening("", 7_717), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = of_port(listener.local_addr().unwrap().port()).unwrap();
        assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
    }
}
