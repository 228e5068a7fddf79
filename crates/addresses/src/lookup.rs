//! Looks up names for agents, and bounds the number of lookups at the same time.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use tokio::sync::Semaphore;

/// Maximum number of lookups at the same time. A lookup occupies a thread for blocking work, and takes many seconds if
/// the name server does not answer. An answer of a model can ask for hundreds of names. Files need threads of this kind,
/// too, so lookups must not take all of them.
const AT_ONCE: usize = 16;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// Returns all addresses of a name, as the operating system resolves it. Waits while [`AT_ONCE`] other lookups run.
pub async fn lookup(name: &str) -> io::Result<Vec<IpAddr>> {
    let name = name.to_owned();
    in_turn(move || {
        let found = (name.as_str(), 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    })
    .await
}

/// Runs a lookup on a thread for blocking work. The place of the lookup becomes free when the lookup has ended, even if
/// nobody waits for its result any more, because the thread is occupied until then.
async fn in_turn<T: Send + 'static>(
    lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = PLACES.acquire().await.map_err(io::Error::other)?;
    let work = move || {
        let found = lookup();
        drop(place);
        found
    };
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Condvar, Mutex};

    /// How many lookups have started, and whether they may end.
    #[derive(Default)]
    struct Gate {
        state: Mutex<(usize, bool)>,
        changed: Condvar,
    }

    #[tokio::test]
    async fn lookups_that_hang_leave_threads_to_others() {
        let gate = Arc::new(Gate::default());
        let lookups: Vec<_> = (0..AT_ONCE * 3)
            .map(|_| {
                let gate = Arc::clone(&gate);
                tokio::spawn(in_turn(move || {
                    let mut state = gate.state.lock().unwrap();
                    state.0 += 1;
                    drop(gate.changed.wait_while(state, |(_, is_open)| !*is_open).unwrap());
                    Ok(())
                }))
            })
            .collect();
        let started = loop {
            tokio::task::yield_now().await;
            let started = gate.state.lock().unwrap().0;
            // Without the bound, no place would ever be taken, and all lookups would start.
            if started > AT_ONCE || started == AT_ONCE && PLACES.available_permits() == 0 {
                break started;
            }
        };
        // A caller that no longer waits does not free the place of its lookup.
        lookups[0].abort();
        tokio::task::yield_now().await;
        let free = PLACES.available_permits();
        gate.state.lock().unwrap().1 = true;
        gate.changed.notify_all();
        for lookup in lookups.into_iter().skip(1) {
            lookup.await.unwrap().unwrap();
        }
        assert_eq!((started, free), (AT_ONCE, 0));
    }

    #[tokio::test]
    async fn the_name_of_this_machine_is_found() {
        let found = lookup("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        assert!(lookup("no name").await.is_err());
    }
}
