use proptest::prelude::*;
use seccompiler::sock_filter;

use super::{ALWAYS, FIRST_UNKNOWN, SHARED_HOST, filters};
use crate::walls::{Separation, Sockets, Wall};

const ALL: [Wall; 5] = [
    Wall { sockets: Sockets::InternetAndUnix, separation: Separation::Namespaces },
    Wall { sockets: Sockets::Internet, separation: Separation::Namespaces },
    Wall { sockets: Sockets::None, separation: Separation::LandlockWithScopes },
    Wall { sockets: Sockets::Internet, separation: Separation::LandlockWithScopes },
    Wall { sockets: Sockets::None, separation: Separation::Landlock },
];

const NAMESPACES: Wall = ALL[0];

const LANDLOCK: Wall = ALL[2];

const OLD_LANDLOCK: Wall = ALL[4];

/// What the kernel does with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Refused(i32),
    Killed,
}

use Verdict::{Allowed, Killed, Refused};

/// Runs all filters on a call, as the kernel does, and returns the strictest answer.
fn verdict(wall: Wall, call: i64, arguments: [u64; 6]) -> Verdict {
    verdict_for(native(), wall, call, arguments)
}

fn verdict_for(arch: u32, wall: Wall, call: i64, arguments: [u64; 6]) -> Verdict {
    let mut data = Vec::new();
    data.extend(u32::try_from(call).unwrap().to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0_u64.to_le_bytes());
    data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
    let mut strictest = Allowed;
    // The kernel runs the filters in reverse order, beginning with the filter that was installed last. If several
    // filters refuse a call, the answer of the filter that ran first counts.
    for filter in filters(wall).unwrap().iter().rev() {
        let result = execute(filter, &data);
        let verdict = match result & 0xffff_0000 {
            0x7fff_0000 => Allowed,
            0x0005_0000 => Refused(i32::try_from(result & 0xffff).unwrap()),
            _ => Killed,
        };
        match (strictest, verdict) {
            (_, Killed) => strictest = Killed,
            (Allowed, other) => strictest = other,
            (Refused(_) | Killed, Allowed | Refused(_)) => {}
        }
    }
    strictest
}

fn native() -> u32 {
    match std::env::consts::ARCH {
        "x86_64" => 0xc000_003e,
        "aarch64" => 0xc000_00b7,
        "riscv64" => 0xc000_00f3,
        other => panic!("{other}"),
    }
}

/// Executes a filter. Knows only the few instructions of classic BPF that the filters use.
fn execute(program: &[sock_filter], data: &[u8]) -> u32 {
    let mut accumulator = 0_u32;
    let mut counter = 0;
    loop {
        let sock_filter { code, jt, jf, k } = program[counter];
        counter += 1;
        let mut jump = |fits: bool| counter += usize::from(if fits { jt } else { jf });
        match code {
            0x20 => {
                let offset = k as usize;
                accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
            }
            0x54 => accumulator &= k,
            0x05 => counter += k as usize,
            0x15 => jump(accumulator == k),
            0x25 => jump(accumulator > k),
            0x35 => jump(accumulator >= k),
            0x06 => return k,
            other => panic!("an unknown instruction {other:#x}"),
        }
    }
}

#[track_caller]
fn check(wall: Wall, call: i64, arguments: &[u64], expected: Verdict) {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    assert_eq!(verdict(wall, call, all), expected, "call {call} with {arguments:x?} behind {wall:?}");
}

const DENIED: Verdict = Refused(libc::EPERM);

const MISSING: Verdict = Refused(libc::ENOSYS);

#[test]
fn ordinary_calls_are_allowed() {
    for wall in ALL {
        for call in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_execve,
            libc::SYS_mmap,
            libc::SYS_futex,
            libc::SYS_wait4,
        ] {
            check(wall, call, &[0, 0, 0], Allowed);
        }
        check(wall, libc::SYS_clone, &[0x0120_0011], Allowed);
        check(wall, libc::SYS_unshare, &[0x400], Allowed);
        check(wall, libc::SYS_openat, &[0, 0, 0o101, 0o755], Allowed);
        check(wall, libc::SYS_ioctl, &[0, 0x5401], Allowed);
        check(wall, libc::SYS_socketpair, &[1, 1, 0], Allowed);
        check(wall, libc::SYS_prlimit64, &[0, 7], Allowed);
    }
}

#[test]
fn sockets_are_those_of_the_wall() {
    let socket =
        |wall, family, protocol, expected| check(wall, libc::SYS_socket, &[family, 1, protocol], expected);
    for family in [1, 2, 10] {
        socket(NAMESPACES, family, 0, Allowed);
        socket(LANDLOCK, family, 0, DENIED);
    }
    socket(ALL[1], 1, 0, DENIED);
    socket(ALL[1], 2, 0, Allowed);
    socket(NAMESPACES, 16, 0, Allowed);
    socket(NAMESPACES, 16, 9, DENIED);
    check(NAMESPACES, libc::SYS_socketpair, &[2, 1, 0], DENIED);
}

#[test]
fn modes_that_run_as_the_owner_are_refused() {
    for wall in ALL {
        for mode in [0o4755, 0o2755, 0o6711] {
            check(wall, libc::SYS_fchmod, &[3, mode], DENIED);
            check(wall, libc::SYS_fchmodat, &[3, 0, mode], DENIED);
            check(wall, libc::SYS_openat, &[3, 0, 0o101, mode], DENIED);
            check(wall, libc::SYS_openat, &[3, 0, 0o20_000_002, mode], DENIED);
        }
        // If `openat` creates no file, the kernel ignores the mode, and the argument may contain any bits.
        check(wall, libc::SYS_openat, &[3, 0, 0, 0o4755], Allowed);
    }
}

#[test]
fn beside_landlock_only_one_mode_can_be_set_by_path() {
    check(LANDLOCK, libc::SYS_fchmodat, &[3, 0, 0o700], Allowed);
    for mode in [0o777, 0o000, 0o600, 0o755, 0o701, 0o1700, 0o644] {
        check(LANDLOCK, libc::SYS_fchmodat, &[3, 0, mode], DENIED);
        check(NAMESPACES, libc::SYS_fchmodat, &[3, 0, mode], Allowed);
        check(LANDLOCK, libc::SYS_fchmod, &[3, mode], Allowed);
    }
}

#[test]
fn without_scopes_no_signal_gets_out() {
    check(OLD_LANDLOCK, libc::SYS_kill, &[1234, 9], DENIED);
    check(OLD_LANDLOCK, libc::SYS_kill, &[u64::MAX, 9], DENIED);
    check(OLD_LANDLOCK, libc::SYS_kill, &[0, 15], Allowed);
    check(OLD_LANDLOCK, libc::SYS_tgkill, &[5, 5, 9], DENIED);
    check(OLD_LANDLOCK, libc::SYS_tgkill, &[5, 5, 23], Allowed);
    check(LANDLOCK, libc::SYS_kill, &[1234, 9], Allowed);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn foreign_interfaces_are_closed() {
    for wall in ALL {
        // The first call uses the x32 interface. The second call uses the interface of 32-bit programs.
        check(wall, 0x4000_0000 + 521, &[], MISSING);
        assert_eq!(verdict_for(0x4000_0003, wall, 26, [0; 6]), Killed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A call in `ALWAYS` is refused by every wall and with every argument.
    #[test]
    fn what_is_always_refused_is_always_refused(
        wall in prop::sample::select(ALL.to_vec()),
        call in prop::sample::select(ALWAYS.to_vec()),
        arguments in any::<[u64; 6]>(),
    ) {
        prop_assert_eq!(verdict(wall, call, arguments), DENIED);
    }

    /// Without namespaces, a command cannot reach shared memory and queues of the host.
    #[test]
    fn what_is_shared_is_refused_without_namespaces(
        wall in prop::sample::select(ALL[2..].to_vec()),
        call in prop::sample::select(SHARED_HOST.to_vec()),
        arguments in any::<[u64; 6]>(),
    ) {
        prop_assert_eq!(verdict(wall, call, arguments), DENIED);
    }

    /// If this crate does not know the number of a call, the call fails as if the kernel did not have it.
    #[test]
    fn unknown_calls_do_not_exist(
        wall in prop::sample::select(ALL.to_vec()),
        call in FIRST_UNKNOWN..=u32::MAX,
        arguments in any::<[u64; 6]>(),
    ) {
        prop_assert_eq!(verdict(wall, i64::from(call), arguments), MISSING);
    }

    /// The filters refuse a flag that makes a namespace, whatever other flags the call has, and whatever the upper
    /// half of the register contains.
    #[test]
    fn no_namespace_is_made(
        wall in prop::sample::select(ALL.to_vec()),
        flag in prop::sample::select(super::NAMESPACES.to_vec()),
        others in any::<u64>(),
    ) {
        prop_assert_eq!(verdict(wall, libc::SYS_unshare, [others | flag, 0, 0, 0, 0, 0]), DENIED);
        prop_assert_eq!(verdict(wall, libc::SYS_clone, [others | flag, 0, 0, 0, 0, 0]), DENIED);
        prop_assert_eq!(verdict(wall, libc::SYS_clone3, [others | flag, 0, 0, 0, 0, 0]), MISSING);
    }

    /// The kernel uses only the lower 32 bits of the request of `ioctl`. So the filter refuses the request with any
    /// upper bits.
    #[test]
    fn nothing_is_typed_into_a_terminal(wall in prop::sample::select(ALL.to_vec()), upper in any::<u32>()) {
        for request in super::TERMINAL_INPUT {
            let request = request | (u64::from(upper) << 32);
            prop_assert_eq!(verdict(wall, libc::SYS_ioctl, [0, request, 0, 0, 0, 0]), DENIED);
        }
    }

    /// A command can open only sockets of four families: Unix, IPv4, IPv6, and netlink with the protocol for routing.
    #[test]
    fn other_families_are_closed(wall in prop::sample::select(ALL.to_vec()), family in 0_u64..64, protocol in 0_u64..32) {
        prop_assume!(![1, 2, 10].contains(&family) && (family, protocol) != (16, 0));
        prop_assert_eq!(verdict(wall, libc::SYS_socket, [family, 1, protocol, 0, 0, 0]), DENIED);
    }
}
