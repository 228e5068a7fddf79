//! Configures the memory allocator of the process.
//!
//! The allocator of glibc takes memory from arenas. By default, there are up to eight arenas for each processor, and an
//! arena keeps the memory that was freed in it. The daemon has dozens of threads, and any of them may do a large piece
//! of work. So with the default, one arena after another grew to the size of the largest piece, and the memory of a
//! busy daemon grew for an hour. With few arenas, the memory stays the same. The command `just soak` checks this: it
//! puts a daemon under load for an hour.
//!
//! glibc also keeps freed memory that lies before memory in use. The daemon gives it back twice a minute.
//!
//! This crate must not know anything about the society. It holds the only unsafe code outside tests.

/// Number of arenas that the threads share. Threads seldom wait for each other, because each thread has a cache that
/// serves most of its small allocations. The allocator `mimalloc` is no alternative, because an idle daemon took 10 MiB
/// more with it.
pub const ARENAS: i32 = 2;

/// Gives the memory that was freed back to the system. glibc keeps freed memory if memory behind it is still in use. So
/// after a burst of work, the process would keep most of what the burst has needed. With an allocator other than glibc's,
/// this function does nothing. It takes some milliseconds for each 100 MiB.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

/// Limits the number of arenas to [`ARENAS`]. Call this before the process starts threads, because existing arenas are
/// never removed. With an allocator other than glibc's, this function does nothing.
pub fn limit_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    limit(ARENAS);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc has no other way to set this option in a running process")]
fn limit(arenas: i32) {
    // SAFETY: `mallopt` takes two integers, and any thread may call it at any time. It returns 0 if it does not accept
    // a value. Then glibc keeps its default, which costs memory but is no error.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc has no other way to give back memory")]
fn trim() {
    // SAFETY: `malloc_trim` takes an integer, and any thread may call it at any time. It frees only pages that nobody uses.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Every arena except the first begins at a multiple of this address.
    const ALIGNED: u64 = 64 << 20;

    /// Counts the arenas of this process except the first. Each of these arenas begins at a multiple of [`ALIGNED`] and
    /// is followed by a range that the process cannot access: the unused rest of the arena.
    fn arenas() -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ranges: Vec<(u64, u64, bool)> = maps
            .lines()
            .map(|line| {
                let (range, rest) = line.split_once(' ').unwrap();
                let (begin, end) = range.split_once('-').unwrap();
                let number = |text| u64::from_str_radix(text, 16).unwrap();
                (number(begin), number(end), rest.starts_with("rw-p"))
            })
            .collect();
        let is_arena = |pair: &&[(u64, u64, bool)]| {
            let [(begin, end, writable), (next, last, next_writable)] = pair else { return false };
            begin % ALIGNED == 0 && *writable && end == next && !next_writable && last - begin == ALIGNED
        };
        ranges.windows(2).filter(is_arena).count()
    }

    /// Returns the resident memory of this process, in bytes.
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
    }

    #[test]
    fn memory_between_blocks_in_use_is_given_back() {
        const LARGE: usize = 64 << 10;
        const SMALL: usize = 4 << 10;
        const PAIRS: usize = 1_000;
        // The small blocks stay in use, so glibc keeps the memory of the large blocks between them. They are too large for
        // the cache of the thread, which could hold free blocks elsewhere.
        let (large, small): (Vec<_>, Vec<_>) =
            (0..PAIRS).map(|_| (vec![1_u8; LARGE], vec![1_u8; SMALL])).unzip();
        drop(std::hint::black_box(large));
        let before = resident();
        give_back();
        let after = resident();
        assert!(before >= after + LARGE * PAIRS / 2, "{before} bytes, then {after}");
        drop(std::hint::black_box(small));
    }

    #[test]
    fn many_threads_share_few_arenas() {
        let before = arenas();
        limit_arenas();
        let together = Barrier::new(16);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    // The block is too large for the cache of a thread, so the thread needs an arena.
                    let block = std::hint::black_box(vec![1_u8; 50_000]);
                    together.wait();
                    drop(block);
                });
            }
        });
        // At most `ARENAS` arenas can be new, because the limit counts all arenas of the process, old and new.
        assert!(arenas() <= before + ARENAS as usize, "{before} arenas, then {}", arenas());
    }
}
