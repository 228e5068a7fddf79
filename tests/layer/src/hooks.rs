//! The functions that replace functions of the C library. Each replacement calls the real function, with two
//! exceptions. If a test has ordered the call to fail, the replacement fails at once. A sync of a file below the root
//! is only recorded, and the replacement reports success.
//!
//! The last argument of `open` and its variants is optional: callers pass it only if the call may create a file. The
//! replacements declare it always. This is safe, because on all machines with glibc the argument is in a register,
//! which can be read even if the caller did not pass the argument.

use crate::control::{Word, get, refusal};
use crate::journal::{Kind, absolute, hold, path_of};
use crate::real::real;
use libc::{c_char, c_int, c_void, iovec, mode_t, off64_t, size_t, ssize_t, time_t, timespec, timeval};
use std::slice::from_raw_parts;

const NANOSECONDS: i64 = 1_000_000_000;

fn fail(error: c_int) -> c_int {
    // SAFETY: each thread has its own `errno`.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Returns the bytes that a caller wants to write.
unsafe fn bytes<'c>(data: *const c_void, length: size_t) -> &'c [u8] {
    // SAFETY: the caller guarantees that the data is readable. If the length is 0, nothing reads the pointer.
    if length == 0 { &[] } else { unsafe { from_raw_parts(data.cast(), length) } }
}

/// Does the work of `open` and its variants; `call` makes the real call.
unsafe fn opened(directory: c_int, path: *const c_char, flags: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if let Some(error) = refusal(Word::Descriptor) {
        return fail(error);
    }
    let changes = flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) != 0;
    if !changes {
        return call();
    }
    let journal = hold();
    // SAFETY: the caller guarantees that the path is valid.
    let absolute = unsafe { absolute(directory, path) };
    if !journal.covers(&absolute) {
        drop(journal);
        return call();
    }
    if let Some(error) = refusal(Word::Change) {
        return fail(error);
    }
    // SAFETY: the caller guarantees that the path is valid.
    let was_there = unsafe { libc::faccessat(directory, path, libc::F_OK, 0) } == 0;
    let file = call();
    if file >= 0 && !was_there {
        journal.add(Kind::Create, 0, &absolute, b"");
    } else if file >= 0 && flags & libc::O_TRUNC != 0 {
        journal.add(Kind::Truncate, 0, &absolute, b"");
    }
    file
}

macro_rules! open {
    ($name:ident, $literal:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            let real = real!($literal as unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int);
            // SAFETY: the arguments come unchanged from the caller.
            unsafe { opened(libc::AT_FDCWD, path, flags, || real(path, flags, mode)) }
        }
    };
}

open!(open, c"open");
open!(open64, c"open64");

macro_rules! openat {
    ($name:ident, $literal:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            let real = real!($literal as unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int);
            // SAFETY: the arguments come unchanged from the caller.
            unsafe { opened(at, path, flags, || real(at, path, flags, mode)) }
        }
    };
}

openat!(openat, c"openat");
openat!(openat64, c"openat64");

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let real = real!(c"socket" as unsafe extern "C" fn(c_int, c_int, c_int) -> c_int);
    if let Some(error) = refusal(Word::Descriptor) {
        return fail(error);
    }
    // SAFETY: the arguments come unchanged from the caller.
    unsafe { real(domain, kind, protocol) }
}

/// Returns whether a descriptor is an open directory.
fn is_directory(descriptor: c_int) -> bool {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is valid for one `stat`. If the call succeeds, it has written the whole value.
    unsafe {
        libc::fstat(descriptor, found.as_mut_ptr()) == 0
            && found.assume_init().st_mode & libc::S_IFMT == libc::S_IFDIR
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn flock(descriptor: c_int, operation: c_int) -> c_int {
    let real = real!(c"flock" as unsafe extern "C" fn(c_int, c_int) -> c_int);
    if is_directory(descriptor)
        && let Some(error) = refusal(Word::Lock)
    {
        return fail(error);
    }
    // SAFETY: the arguments come unchanged from the caller.
    unsafe { real(descriptor, operation) }
}

/// Does the work of the functions that write to a file or to a socket; `call` makes the real call.
///
/// `place` is the byte offset in the file; `None` stands for the current position of the descriptor.
unsafe fn written(
    descriptor: c_int,
    place: Option<off64_t>,
    data: &[&[u8]],
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let path = path_of(descriptor);
    let journal = hold();
    let (is_covered, is_said) = (journal.covers(&path), descriptor == 1 || path.starts_with(b"socket:"));
    if is_covered && let Some(error) = refusal(Word::Write) {
        drop(journal);
        return fail(error) as ssize_t;
    }
    if !journal.is_kept() || !(is_covered || is_said) {
        // Release the journal before the call. Otherwise, two threads could block each other: the call may wait for
        // another thread, and this thread may need the journal.
        drop(journal);
        return call();
    }
    if is_said {
        // Record the data before the call, because the receiver may react to it before the call returns.
        let name = if descriptor == 1 { b"1".to_vec() } else { path };
        journal.add(Kind::Said, 0, &name, &data.concat());
        drop(journal);
        return call();
    }
    // SAFETY: this only asks for the current position.
    let here = place.unwrap_or_else(|| unsafe { libc::lseek64(descriptor, 0, libc::SEEK_CUR) });
    let done = call();
    if let Ok(length) = usize::try_from(done) {
        let data = data.concat();
        journal.add(Kind::Write, here, &path, data.get(..length).unwrap_or(&data));
    }
    done
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(descriptor: c_int, data: *const c_void, length: size_t) -> ssize_t {
    let real = real!(c"write" as unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t);
    // SAFETY: the arguments come unchanged from the caller.
    unsafe { written(descriptor, None, &[bytes(data, length)], || real(descriptor, data, length)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    descriptor: c_int,
    data: *const c_void,
    length: size_t,
    place: off64_t,
) -> ssize_t {
    let real = real!(c"pwrite64" as unsafe extern "C" fn(c_int, *const c_void, size_t, off64_t) -> ssize_t);
    // SAFETY: the arguments come unchanged from the caller.
    unsafe {
        written(descriptor, Some(place), &[bytes(data, length)], || real(descriptor, data, length, place))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(descriptor: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let real = real!(c"writev" as unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t);
    // SAFETY: the arguments come unchanged from the caller.
    unsafe {
        let all = from_raw_parts(parts, usize::try_from(count).unwrap_or_default());
        let data: Vec<&[u8]> = all.iter().map(|part| bytes(part.iov_base, part.iov_len)).collect();
        written(descriptor, None, &data, || real(descriptor, parts, count))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn send(descriptor: c_int, data: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    let real = real!(c"send" as unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t);
    // SAFETY: the arguments come unchanged from the caller.
    unsafe { written(descriptor, None, &[bytes(data, length)], || real(descriptor, data, length, flags)) }
}

macro_rules! truncate {
    ($name:ident, $literal:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int, length: off64_t) -> c_int {
            let real = real!($literal as unsafe extern "C" fn(c_int, off64_t) -> c_int);
            let path = path_of(descriptor);
            let journal = hold();
            if journal.covers(&path) {
                if let Some(error) = refusal(Word::Write) {
                    return fail(error);
                }
                journal.add(Kind::Truncate, length, &path, b"");
            }
            // SAFETY: the arguments come unchanged from the caller.
            unsafe { real(descriptor, length) }
        }
    };
}

truncate!(ftruncate, c"ftruncate");
truncate!(ftruncate64, c"ftruncate64");

macro_rules! sync {
    ($name:ident, $literal:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int) -> c_int {
            let real = real!($literal as unsafe extern "C" fn(c_int) -> c_int);
            let path = path_of(descriptor);
            let journal = hold();
            if journal.covers(&path) {
                if let Some(error) = refusal(Word::Sync) {
                    journal.add(Kind::SyncFailed, 0, &path, b"");
                    return fail(error);
                }
                journal.add(Kind::Sync, 0, &path, b"");
                // Do not call the real function, because it takes time. The tests do not need it: they simulate a power
                // cut from the journal alone.
                return 0;
            }
            // SAFETY: the argument comes unchanged from the caller.
            unsafe { real(descriptor) }
        }
    };
}

sync!(fsync, c"fsync");
sync!(fdatasync, c"fdatasync");

/// Does the work of the functions that change the names in a directory; `call` makes the real call.
unsafe fn renamed(kind: Kind, path: *const c_char, to: &[u8], call: impl FnOnce() -> c_int) -> c_int {
    let journal = hold();
    // SAFETY: the caller guarantees that the path is valid.
    let path = unsafe { absolute(libc::AT_FDCWD, path) };
    if !journal.covers(&path) {
        drop(journal);
        return call();
    }
    if let Some(error) = refusal(Word::Change) {
        return fail(error);
    }
    let done = call();
    if done == 0 {
        journal.add(kind, 0, &path, to);
    }
    done
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let real = real!(c"rename" as unsafe extern "C" fn(*const c_char, *const c_char) -> c_int);
    // SAFETY: the arguments come unchanged from the caller.
    unsafe {
        let name = absolute(libc::AT_FDCWD, to);
        renamed(Kind::Rename, from, &name, || real(from, to))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    let real = real!(c"unlink" as unsafe extern "C" fn(*const c_char) -> c_int);
    // SAFETY: the argument comes unchanged from the caller.
    unsafe { renamed(Kind::Unlink, path, b"", || real(path)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    let real = real!(c"mkdir" as unsafe extern "C" fn(*const c_char, mode_t) -> c_int);
    // SAFETY: the arguments come unchanged from the caller.
    unsafe { renamed(Kind::Directory, path, b"", || real(path, mode)) }
}

/// Returns by how many nanoseconds a clock must be wrong, as the test has ordered.
fn error_of(clock: libc::clockid_t) -> i64 {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => get(Word::Wall),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_BOOTTIME => get(Word::Count),
        _ => 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut timespec) -> c_int {
    let real = real!(c"clock_gettime" as unsafe extern "C" fn(libc::clockid_t, *mut timespec) -> c_int);
    // SAFETY: the arguments come unchanged from the caller.
    let told = unsafe { real(clock, time) };
    let error = error_of(clock);
    if told == 0 && error != 0 {
        // SAFETY: the real call succeeded, so the pointer is valid.
        let time = unsafe { &mut *time };
        let shown = time.tv_sec * NANOSECONDS + time.tv_nsec + error;
        (time.tv_sec, time.tv_nsec) = (shown.div_euclid(NANOSECONDS), shown.rem_euclid(NANOSECONDS));
    }
    told
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    let real = real!(c"gettimeofday" as unsafe extern "C" fn(*mut timeval, *mut c_void) -> c_int);
    // SAFETY: the arguments come unchanged from the caller.
    let told = unsafe { real(time, zone) };
    if told == 0 && !time.is_null() {
        // SAFETY: the real call succeeded, so the pointer is valid.
        unsafe { (*time).tv_sec += get(Word::Wall) / NANOSECONDS };
    }
    told
}

#[unsafe(no_mangle)]
unsafe extern "C" fn time(place: *mut time_t) -> time_t {
    let real = real!(c"time" as unsafe extern "C" fn(*mut time_t) -> time_t);
    // SAFETY: with a null pointer the function writes nothing.
    let shown = unsafe { real(std::ptr::null_mut()) } + get(Word::Wall) / NANOSECONDS;
    if !place.is_null() {
        // SAFETY: the pointer is the caller's own and is not null.
        unsafe { *place = shown };
    }
    shown
}
