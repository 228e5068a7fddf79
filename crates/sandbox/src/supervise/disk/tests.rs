use std::time::Instant;

use super::{Added, Free, Meter, gone, is_suspicious};
use crate::limits::Limits;

fn limits() -> Limits {
    Limits { disk_bytes: 1000, files: 100, ..Limits::default() }
}

#[test]
fn a_look_is_taken_when_a_part_of_the_limit_is_gone() {
    let check =
        |bytes, files, expected| assert_eq!(is_suspicious(&limits(), Added { bytes, files }), expected);
    check(250, 25, false);
    check(251, 0, true);
    check(0, 26, true);
    let before = Free { bytes: 10, files: 10 };
    // The free space grows if other programs free more than the command uses.
    assert_eq!(gone(before, Free { bytes: 20, files: 20 }), Added::default());
    assert_eq!(gone(before, Free { bytes: 4, files: 3 }), Added { bytes: 6, files: 7 });
}

/// Makes a meter that counts the files at its first measurement. For this, the meter is told that very much space was
/// free when the command began. So much space seems to be gone.
fn suspicious(places: &[std::path::PathBuf]) -> Meter {
    let mut meter = Meter::new(places);
    for (_, before) in &mut meter.places {
        *before = Some(Free { bytes: u64::MAX, files: u64::MAX });
    }
    meter.next = Instant::now();
    meter
}

#[test]
fn only_what_is_new_counts_and_counts_once() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().to_owned();
    std::fs::write(path.join("old"), vec![1; 100_000]).unwrap();
    let mut meter = suspicious(std::slice::from_ref(&path));
    meter.began += 3600;
    assert_eq!(meter.measure(&limits(), || 0), Added::default());

    let mut meter = suspicious(&[path.clone(), path.clone()]);
    meter.began -= 3600;
    std::fs::hard_link(path.join("old"), path.join("other")).unwrap();
    std::os::unix::fs::symlink("/usr", path.join("link")).unwrap();
    std::fs::create_dir(path.join("directory")).unwrap();
    let added = meter.measure(&limits(), || 5);
    assert_eq!(added.files, 3);
    assert!((100_005..150_000).contains(&added.bytes), "{added:?}");
}

/// If a walk cannot open a directory, all free space that the file system has lost counts as used by the command.
#[test]
fn a_path_that_is_too_long_hides_nothing() {
    let place = tempfile::TempDir::new().unwrap();
    let name = "d".repeat(250);
    let mut handle: std::os::fd::OwnedFd = std::fs::File::open(place.path()).unwrap().into();
    for _ in 0..20 {
        rustix::fs::mkdirat(&handle, name.as_str(), rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        handle = rustix::fs::openat(&handle, name.as_str(), flags, rustix::fs::Mode::empty()).unwrap();
    }
    let mut meter = suspicious(&[place.path().to_owned()]);
    let added = meter.measure(&limits(), || 0);
    assert!(added.bytes > 1 << 60, "{added:?}");
}
