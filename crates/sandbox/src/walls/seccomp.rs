//! Seccomp, the part of the kernel that restricts which system calls a process can make.
//!
//! A command can be a compiler, a test runner or any program that an agent installs. So the filters allow all known
//! calls except those that are named here. If a system call is newer than this list, the kernel tells the command that
//! the call does not exist.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::{Separation, Sockets, Wall};

/// The first number that no known system call has. The numbers of the x32 interface of x86-64 are greater, because
/// they have an additional bit.
const FIRST_UNKNOWN: u32 = 470;

/// The requests of `ioctl` that can make the terminal run a command outside the sandbox: `TIOCSTI` puts characters into
/// the input of the terminal, and `TIOCLINUX` can paste into the console.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// The bits of a file's mode that make a program run with the rights of the file's owner or group (set-id).
const SET_ID: u64 = 0o6000;

/// The flags of `clone` and `unshare` that make a new namespace.
const NAMESPACES: [u64; 8] = [
    0x0000_0080, // time
    0x0002_0000, // mount
    0x0200_0000, // cgroup
    0x0400_0000, // uts
    0x0800_0000, // ipc
    0x1000_0000, // user
    0x2000_0000, // pid
    0x4000_0000, // network
];

/// Returns the filters of a wall, in the order in which they must be installed.
pub(crate) fn filters(wall: Wall) -> Result<Vec<BpfProgram>, BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = |rules, errno: i32| -> Result<BpfProgram, BackendError> {
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
    };
    let mut unknown = filter(missing(), libc::ENOSYS)?;
    unknown.splice(0..0, beyond(FIRST_UNKNOWN));
    Ok(vec![unknown, filter(refused(wall)?, libc::EPERM)?])
}

/// Installs the filters for this thread and all processes that it starts.
pub(crate) fn apply(filters: &[BpfProgram]) -> Result<(), seccompiler::Error> {
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter))
}

/// Returns the instructions that answer `ENOSYS` to each system call with the number `first` or a higher number. For
/// lower numbers, the filter continues after these instructions.
///
/// The instructions refuse unknown calls, and also the x32 interface of x86-64, which has other numbers for all
/// calls.
fn beyond(first: u32) -> [sock_filter; 3] {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    [
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: first },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs() },
    ]
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Returns the calls that get the answer `ENOSYS`, as if the kernel did not have them. Programs then use older calls,
/// whose arguments a filter can examine.
fn missing() -> Rules {
    // A filter cannot examine the flags of `clone3` and `openat2`, because they are in memory. The io_uring calls
    // would run other calls without the filter.
    [
        libc::SYS_clone3,
        libc::SYS_openat2,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ]
    .map(|call| (call, Vec::new()))
    .into()
}

fn refused(wall: Wall) -> Result<Rules, BackendError> {
    let mut rules: Rules = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    let mut add = |call: c_long, conditions: Vec<SeccompCondition>| -> Result<(), BackendError> {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok(())
    };
    for flag in NAMESPACES {
        add(libc::SYS_clone, vec![has(0, flag, flag)?])?;
        add(libc::SYS_unshare, vec![has(0, flag, flag)?])?;
    }
    for request in TERMINAL_INPUT {
        // The kernel uses only the lower 32 bits of the request. If the filter compared all 64 bits, a command could
        // evade the filter by setting one of the upper bits.
        add(libc::SYS_ioctl, vec![is(1, request)?])?;
    }
    files(&mut add)?;
    sockets(wall.sockets, &mut add)?;
    others(&mut add)?;
    match wall.separation {
        Separation::Namespaces => {}
        Separation::LandlockWithScopes => shared_host(&mut add)?,
        Separation::Landlock => {
            shared_host(&mut add)?;
            signals(&mut add)?;
        }
    }
    if wall.separation != Separation::Namespaces {
        rules.extend(SHARED_HOST.iter().map(|call| (*call, Vec::new())));
    }
    Ok(rules)
}

type Add<'a> = dyn FnMut(c_long, Vec<SeccompCondition>) -> Result<(), BackendError> + 'a;

/// Refuses calls that make a device node. Also refuses calls that make a set-id file. Such a program runs with the
/// rights of its owner or its group.
fn files(add: &mut Add<'_>) -> Result<(), BackendError> {
    const CREATE: u64 = 0o100;
    const TEMPORARY: u64 = 0o20_000_000;
    let calls = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    let old = [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    for bit in [0o4000, 0o2000] {
        for (call, argument) in calls.into_iter().chain(old) {
            add(call, vec![has(argument, bit & SET_ID, bit)?])?;
        }
        for flag in [CREATE, TEMPORARY] {
            add(libc::SYS_openat, vec![has(2, flag, flag)?, has(3, bit, bit)?])?;
            #[cfg(target_arch = "x86_64")]
            add(libc::SYS_open, vec![has(1, flag, flag)?, has(2, bit, bit)?])?;
        }
    }
    for kind in [libc::S_IFCHR, libc::S_IFBLK] {
        add(libc::SYS_mknodat, vec![has(2, u64::from(libc::S_IFMT), u64::from(kind))?])?;
        #[cfg(target_arch = "x86_64")]
        add(libc::SYS_mknod, vec![has(1, u64::from(libc::S_IFMT), u64::from(kind))?])?;
    }
    Ok(())
}

fn sockets(sockets: Sockets, add: &mut Add<'_>) -> Result<(), BackendError> {
    const UNIX: u64 = 1;
    const INTERNET: u64 = 2;
    const INTERNET6: u64 = 10;
    const NETLINK: u64 = 16;
    let allowed: &[u64] = match sockets {
        Sockets::None => &[],
        Sockets::Internet => &[INTERNET, INTERNET6, NETLINK],
        Sockets::InternetAndUnix => &[UNIX, INTERNET, INTERNET6, NETLINK],
    };
    if allowed.is_empty() {
        // This condition is true for every value, so every call of `socket` is refused.
        add(libc::SYS_socket, vec![has(0, 0, 0)?])?;
    } else {
        let other =
            allowed.iter().map(|family| compare(0, SeccompCmpOp::Ne, *family)).collect::<Result<_, _>>()?;
        add(libc::SYS_socket, other)?;
        // Of the netlink sockets, only those of the routing family are allowed: the C library uses them to read the
        // addresses of the machine.
        add(libc::SYS_socket, vec![is(0, NETLINK)?, compare(2, SeccompCmpOp::Ne, 0)?])?;
    }
    add(libc::SYS_socketpair, vec![compare(0, SeccompCmpOp::Ne, UNIX)?])
}

/// Refuses calls that change the limits or priority of another process. A process may change its own limits and
/// priority, with the process number 0.
fn others(add: &mut Add<'_>) -> Result<(), BackendError> {
    let calls = [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_sched_setattr, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_setpriority, 1),
        (libc::SYS_ioprio_set, 1),
        (libc::SYS_move_pages, 0),
        (libc::SYS_migrate_pages, 0),
    ];
    for (call, argument) in calls {
        // A program that passes its own process number instead of 0 is also refused. Few programs do so; `nice` and
        // `ulimit` pass 0.
        add(call, vec![compare(argument, SeccompCmpOp::Ne, 0)?])?;
    }
    Ok(())
}

/// Refuses further calls. This is for a command that shares files and users with the host, so that only Landlock
/// protects the files.
///
/// Landlock does not examine calls that change the mode or owner of a path. So if a call names a file by its path, it
/// can set only the mode 0700. This is the mode that `chmod +x` and linkers set under the umask of the sandbox level
/// `partial`. It does no harm to a file of the person: other users still cannot read the file, and the person still
/// can. If a call names an open file by its descriptor, it can set every mode, because Landlock has already allowed the
/// command to open the file.
fn shared_host(add: &mut Add<'_>) -> Result<(), BackendError> {
    let calls = [(libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2)];
    #[cfg(target_arch = "x86_64")]
    let old = [(libc::SYS_chmod, 1)];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    for (call, argument) in calls.into_iter().chain(old) {
        for bit in (0..12).map(|shift| 1 << shift) {
            let wrong = if 0o700 & bit == 0 { bit } else { 0 };
            add(call, vec![has(argument, bit, wrong)?])?;
        }
    }
    // A process may choose the processors only for itself (process number 0).
    add(libc::SYS_sched_setaffinity, vec![compare(0, SeccompCmpOp::Ne, 0)?])
}

/// Refuses signals. This is necessary if neither namespaces nor Landlock stops the command from sending signals to
/// processes outside the sandbox. A process may still send any signal to its own process group (process number 0). To a
/// single thread, it may send only a signal that does nothing by default, such as `SIGCHLD`.
fn signals(add: &mut Add<'_>) -> Result<(), BackendError> {
    add(libc::SYS_kill, vec![compare(0, SeccompCmpOp::Ne, 0)?])?;
    let harmless = [libc::SIGURG, libc::SIGCHLD, libc::SIGWINCH, libc::SIGCONT];
    for (call, argument) in [(libc::SYS_tkill, 1), (libc::SYS_tgkill, 2)] {
        let other = harmless
            .iter()
            .map(|signal| compare(argument, SeccompCmpOp::Ne, u64::from(signal.unsigned_abs())))
            .collect::<Result<_, _>>()?;
        add(call, other)?;
    }
    for call in [libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo, libc::SYS_pidfd_send_signal] {
        add(call, vec![has(0, 0, 0)?])?;
    }
    Ok(())
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    compare(argument, SeccompCmpOp::Eq, value)
}

fn has(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    compare(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn compare(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    // For all arguments that the filters examine, the kernel uses only the lower 32 bits.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// The number of `fchmodat2`, which the libc crate does not name on all platforms.
const SYS_FCHMODAT2: c_long = 452;

/// Calls that no command can make.
const ALWAYS: &[c_long] = &[
    // Calls that read or control other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    440, // process_madvise
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Calls that change namespaces and mounts.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    467, // open_tree_attr
    // Calls for the kernel's keys, for tracing, and for programs inside the kernel.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_syslog,
    // Calls that affect the whole machine.
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "aarch64")]
    294, // kexec_file_load
    libc::SYS_reboot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    443, // quotactl_fd
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    // Calls that open files without their paths, and old calls that hardly any program needs.
    libc::SYS_open_by_handle_at,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Further calls that are refused if the command has no namespaces of its own, and so shares memory segments, message
/// queues and users with the host.
const SHARED_HOST: &[c_long] = &[
    // Calls that reach the shared memory, semaphores and queues of all programs of the same user.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Calls that change owners and attributes by path. Landlock does not examine these calls.
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    463, // setxattrat
    466, // removexattrat
    469, // file_setattr
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
];

#[cfg(test)]
mod tests;
