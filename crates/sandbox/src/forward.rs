//! The forwarder: a process inside the sandbox that listens on the loopback of the sandbox's own network, and passes
//! each connection on to the proxy in the daemon.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};

use crate::parts::FORWARD;
use crate::view::PROXY_INSIDE;

/// The port at which the forwarder listens on the sandbox's own loopback.
pub(crate) const PORT: u16 = 3128;

/// Maximum number of threads at the same time. Each connection needs two threads.
const THREADS: usize = 256;

/// Starts the forwarder. Clients can connect as soon as this function returns, even if the forwarder does not handle
/// connections yet.
pub(crate) fn start() -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
        .map_err(|error| format!("failed to listen on 127.0.0.1:{PORT}: {error}"))?;
    let program = std::env::current_exe().map_err(|error| format!("failed to find this program: {error}"))?;
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // This process was started with `inside` as its last argument. The forwarder gets `forward` as its last argument
    // instead.
    arguments.pop();
    Command::new(program)
        .args(arguments)
        .arg(FORWARD)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(|error| format!("failed to start the forwarder: {error}"))
}

/// Runs the forwarder until the sandbox ends.
pub(crate) fn run() -> ExitCode {
    let Ok(listener) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map(TcpListener::from)
    else {
        return ExitCode::FAILURE;
    };
    let counter = std::sync::Arc::new(());
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        if std::sync::Arc::strong_count(&counter) > THREADS {
            continue;
        }
        let held = std::sync::Arc::clone(&counter);
        // If no thread can be made, the connection is closed and the client can try again.
        let _ = std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
            let _ = pass(&client);
            drop(held);
        });
    }
    ExitCode::SUCCESS
}

/// Passes the data of one connection on to the proxy and back.
fn pass(client: &TcpStream) -> std::io::Result<()> {
    let proxy = UnixStream::connect(PROXY_INSIDE)?;
    let (mut from_client, mut to_proxy) = (client.try_clone()?, proxy.try_clone()?);
    std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_proxy);
        let _ = to_proxy.shutdown(std::net::Shutdown::Write);
    })?;
    std::io::copy(&mut &proxy, &mut &*client)?;
    client.shutdown(std::net::Shutdown::Write)
}
