use super::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

fn unfit(error: &io::Error) -> Option<Unfit> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Unfit>()).copied()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A plain `open` of the pipe would block, and a plain read of `/dev/zero` would never end.
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    pipe(&path("pipe"));
    let _listener = UnixListener::bind(path("socket")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    symlink(path("pipe"), path("link to a pipe")).unwrap();
    symlink("/dev/zero", path("endless")).unwrap();
    for name in ["pipe", "socket", "directory", "link to a pipe", "endless"] {
        let error = read_text(&path(name), Links::Followed, 100).unwrap_err();
        assert_eq!(unfit(&error), Some(Unfit::NotRegular), "{name}: {error}");
    }
    for name in ["pipe", "socket", "directory"] {
        let error = open_in(dir.path(), name).unwrap_err();
        assert_eq!(unfit(&error), Some(Unfit::NotRegular), "{name}: {error}");
    }
    for name in ["pipe", "socket"] {
        let error = open_or_create(&path(name), Links::Refused).unwrap_err();
        assert_eq!(unfit(&error), Some(Unfit::NotRegular), "{name}: {error}");
    }
}

#[test]
fn a_link_is_followed_only_where_it_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("inside")).unwrap();
    fs::write(path("inside/file"), "text").unwrap();
    symlink("inside/file", path("link")).unwrap();
    symlink("inside", path("shortcut")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    assert_eq!(read_text(&path("link"), Links::Followed, 10).unwrap(), "text");
    assert_eq!(
        read_text(&path("dangling"), Links::Followed, 10).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    let check = |opened: io::Result<File>| {
        assert_eq!(opened.map_err(|error| unfit(&error)).err(), Some(Some(Unfit::Link)))
    };
    check(open(&path("link"), Links::Refused));
    check(open(&path("dangling"), Links::Refused));
    check(open_or_create(&path("dangling"), Links::Refused));
    check(open_in(dir.path(), "link"));
    check(open_in(&path("shortcut"), "file"));
    assert!(!path("nowhere").exists());
    assert!(open_in(&path("inside"), "file").is_ok());
    assert_eq!(open_in(&path("inside"), "other").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn no_more_is_read_than_the_bound_allows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, Links::Refused, 5).unwrap(), b"12345");
    assert_eq!(unfit(&read(&path, Links::Refused, 4).unwrap_err()), Some(Unfit::TooLong { most: 4 }));
    // A sparse file of one terabyte takes no space on the disk, and is created at once.
    File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(unfit(&read(&path, Links::Refused, 99).unwrap_err()), Some(Unfit::TooLong { most: 99 }));
    fs::write(&path, [0xff]).unwrap();
    assert_eq!(unfit(&read_text(&path, Links::Refused, 5).unwrap_err()), Some(Unfit::NotText));
}

#[test]
fn a_file_is_replaced_as_a_whole_and_belongs_to_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("token"), dir.path().join("other"));
    fs::write(&other, "theirs").unwrap();
    fs::write(dir.path().join("token.unfinished"), "left by a crash").unwrap();
    symlink(&other, &path).unwrap();
    write_private(&path, "mine").unwrap();
    assert_eq!(
        (fs::read_to_string(&path).unwrap().as_str(), fs::read_to_string(&other).unwrap().as_str()),
        ("mine", "theirs")
    );
    assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
