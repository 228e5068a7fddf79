use super::*;
use polity_society::time::Timestamp;
use std::os::unix::fs::PermissionsExt as _;

fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_under(&path)) } else { files.push(path) }
    }
    files
}

async fn store() -> (tempfile::TempDir, BlobStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = BlobStore::open(directory.path().join("data/blobs")).await.unwrap();
    (directory, store)
}

fn file_of(store: &BlobStore, hash: &BlobHash) -> PathBuf {
    path_of(&store.root, hash).unwrap()
}

#[tokio::test]
async fn a_file_that_was_found_sound_is_read_again_only_where_it_has_changed() {
    let (_directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"notes")).await.unwrap();
    let path = file_of(&store, &blob.hash);
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let change = |bytes: &[u8], time| {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    assert_eq!(store.file(&blob.hash).await.unwrap().size, 5);
    // The changed file has the size and the time of the first file, so the store does not notice the change.
    change(b"wrong", time);
    assert_eq!(store.file(&blob.hash).await.unwrap().size, 5);
    let later = time + std::time::Duration::from_secs(1);
    change(b"wrong", later);
    assert!(matches!(store.file(&blob.hash).await, Err(BlobError::Damaged { .. })));
    change(b"wrong!", time);
    assert!(matches!(store.file(&blob.hash).await, Err(BlobError::Damaged { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(store.file(&blob.hash).await, Err(BlobError::Missing { .. })));
}

#[tokio::test]
async fn bytes_come_back_as_they_went_in() {
    let (_directory, store) = store().await;
    for bytes in [&b""[..], b"text", &[0, 255, 128, 10], &vec![7; 3_000_000]] {
        let bytes = Bytes::copy_from_slice(bytes);
        let blob = store.put(bytes.clone()).await.unwrap();
        assert_eq!(blob, Blob { hash: BlobHash::of(&bytes), size: bytes.len() as u64 });
        assert_eq!(store.read(&blob.hash).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn equal_bytes_share_one_file_that_is_written_once() {
    let (directory, store) = store().await;
    let first = store.put(Bytes::from_static(b"same")).await.unwrap();
    let written = std::fs::metadata(file_of(&store, &first.hash)).unwrap();
    let puts = (0..20).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.put(Bytes::from_static(b"same")).await.unwrap() })
    });
    for put in puts.collect::<Vec<_>>() {
        assert_eq!(put.await.unwrap(), first);
    }
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(std::fs::metadata(file_of(&store, &first.hash)).unwrap().ino(), written.ino());
    assert_eq!(files_under(directory.path()), [file_of(&store, &first.hash)]);
}

#[tokio::test]
async fn many_writers_of_new_bytes_leave_one_whole_file() {
    let (directory, store) = store().await;
    let bytes = Bytes::from(vec![9; 200_000]);
    let puts: Vec<_> = (0..16)
        .map(|_| {
            let (store, bytes) = (store.clone(), bytes.clone());
            tokio::spawn(async move { store.put(bytes).await.unwrap() })
        })
        .collect();
    for put in puts {
        let blob = put.await.unwrap();
        assert_eq!(store.read(&blob.hash).await.unwrap(), bytes);
    }
    assert_eq!(files_under(directory.path()).len(), 1);
}

#[tokio::test]
async fn damage_is_told_from_absence() {
    let (_directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"precious")).await.unwrap();
    std::fs::write(file_of(&store, &blob.hash), b"Precious").unwrap();
    let error = store.read(&blob.hash).await.unwrap_err();
    let found = BlobHash::of(b"Precious");
    assert!(
        matches!(&error, BlobError::Damaged { hash, found: other } if *hash == blob.hash && *other == found)
    );
    assert!(error.to_string().contains(blob.hash.as_str()));

    // The file is too short. Storing the same bytes again repairs it.
    std::fs::write(file_of(&store, &blob.hash), b"prec").unwrap();
    assert!(matches!(store.read(&blob.hash).await, Err(BlobError::Damaged { .. })));
    store.put(Bytes::from_static(b"precious")).await.unwrap();
    assert_eq!(store.read(&blob.hash).await.unwrap(), "precious");

    std::fs::remove_file(file_of(&store, &blob.hash)).unwrap();
    assert!(matches!(store.read(&blob.hash).await, Err(BlobError::Missing { hash }) if hash == blob.hash));

    std::fs::create_dir(file_of(&store, &blob.hash)).unwrap();
    assert!(matches!(store.read(&blob.hash).await, Err(BlobError::Read { hash, .. }) if hash == blob.hash));
    let error = store.put(Bytes::from_static(b"precious")).await.unwrap_err();
    assert!(matches!(error, BlobError::Put { hash, .. } if hash == blob.hash));
    assert_eq!(files_under(&store.root), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_is_no_hash_names_nothing() {
    let (_directory, store) = store().await;
    let outside = store.root.join("secret");
    std::fs::write(&outside, "secret").unwrap();
    let check = async |text: &str| {
        assert!(matches!(store.read(&BlobHash::new(text)).await, Err(BlobError::Missing { .. })), "{text}");
    };
    check("").await;
    check("secret").await;
    check("../../etc/passwd").await;
    check(outside.to_str().unwrap()).await;
    check(&"A".repeat(64)).await;
    check(&"é".repeat(32)).await;
    check(&"0".repeat(64)).await;
}

#[tokio::test]
async fn opening_clears_what_a_crash_left_and_keeps_the_rest() {
    let (_directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"kept")).await.unwrap();
    let leftover = store.root.join(TEMPORARY).join(format!("{}-0", std::process::id()));
    std::fs::write(&leftover, "half a fi").unwrap();
    let again = BlobStore::open(&*store.root).await.unwrap();
    assert!(!leftover.exists());
    assert_eq!(again.read(&blob.hash).await.unwrap(), "kept");
}

#[tokio::test]
async fn all_blobs_are_listed_and_nothing_else_and_what_is_removed_is_gone() {
    let (directory, store) = store().await;
    let mut stored = Vec::new();
    for bytes in [&b"one"[..], b"", b"three"] {
        stored.push(store.put(Bytes::copy_from_slice(bytes)).await.unwrap());
    }
    stored.sort_by(|a, b| a.hash.cmp(&b.hash));
    std::fs::write(store.root.join(TEMPORARY).join("1-0"), "half").unwrap();
    std::fs::write(file_of(&store, &stored[0].hash).with_file_name("notes.txt"), "not a blob").unwrap();
    std::fs::write(store.root.join("notes.txt"), "not a blob").unwrap();
    let looking = BlobStore::as_it_is(&*store.root);
    assert_eq!(looking.list().await.unwrap(), stored);
    assert!(store.root.join(TEMPORARY).join("1-0").exists(), "a store opened for reading removes nothing");
    let (gone, now) = (vec![stored[0].clone()], Timestamp::from_millis(1));
    looking.discard(gone.clone(), now).await.unwrap();
    looking.discard(gone, now).await.unwrap();
    let outside = Blob { hash: BlobHash::new("../../x"), size: 0 };
    looking.discard(vec![outside], now).await.unwrap();
    assert_eq!(looking.list().await.unwrap(), stored[1..]);
    let nowhere = directory.path().join("nowhere");
    assert_eq!(BlobStore::as_it_is(&nowhere).list().await.unwrap(), []);
    assert!(!nowhere.exists());
}

#[tokio::test]
async fn a_file_is_opened_only_if_its_bytes_are_those_that_were_stored() {
    let (_directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"whole")).await.unwrap();
    let mut opened = store.file(&blob.hash).await.unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut opened.file, &mut text).unwrap();
    assert_eq!((text.as_str(), opened.size), ("whole", 5));
    std::fs::write(file_of(&store, &blob.hash), "halve").unwrap();
    assert!(matches!(store.file(&blob.hash).await, Err(BlobError::Damaged { .. })));
    for missing in [BlobHash::of(b"other"), BlobHash::new("../../etc/passwd")] {
        assert!(matches!(store.file(&missing).await, Err(BlobError::Missing { .. })));
    }
}

#[tokio::test]
async fn no_link_and_no_pipe_stands_for_a_blob() {
    use std::os::unix::fs::symlink;
    let (directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"mine")).await.unwrap();
    let (path, elsewhere) = (file_of(&store, &blob.hash), directory.path().join("elsewhere"));
    std::fs::rename(&path, &elsewhere).unwrap();
    let is_unreadable = async || {
        let (read, opened) = (store.read(&blob.hash).await, store.file(&blob.hash).await);
        matches!((read, opened), (Err(BlobError::Read { .. }), Err(BlobError::Read { .. })))
    };
    symlink(&elsewhere, &path).unwrap();
    assert!(is_unreadable().await, "a link to the same bytes");
    // The stored bytes replace the link. The file to which the link leads stays as it is.
    store.put(Bytes::from_static(b"mine")).await.unwrap();
    assert!(!path.is_symlink() && store.read(&blob.hash).await.is_ok());
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(is_unreadable().await, "a pipe");
    std::fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    assert!(is_unreadable().await, "a device");
}

#[tokio::test]
async fn a_large_file_in_the_place_of_a_blob_does_not_fill_the_memory() {
    let (_directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"small")).await.unwrap();
    let file = OpenOptions::new().write(true).open(file_of(&store, &blob.hash)).unwrap();
    file.set_len(LARGE + 1).unwrap();
    assert!(matches!(store.read(&blob.hash).await, Err(BlobError::Damaged { .. })));
}

#[tokio::test]
async fn nothing_is_written_or_removed_behind_a_link() {
    use std::os::unix::fs::symlink;
    for inner in [TEMPORARY, "5f"] {
        let directory = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (directory.path().join("blobs"), directory.path().join("elsewhere"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("precious"), "mine").unwrap();
        symlink(&elsewhere, root.join(inner)).unwrap();
        let refused = BlobStore::open(&root).await;
        assert!(matches!(refused, Err(BlobError::Open { path, .. }) if path == root.join(inner)));
        assert!(elsewhere.join("precious").exists());
    }
    // After the store was opened, somebody creates a link where the store would create a directory.
    let (directory, store) = store().await;
    let bytes = Bytes::from_static(b"not there");
    let shard = store.root.join(&BlobHash::of(&bytes).as_str()[..2]);
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &shard).unwrap();
    assert!(matches!(store.put(bytes).await, Err(BlobError::Put { .. })));
    assert!(shard.is_symlink() && files_under(&elsewhere).is_empty());
    // The root directory may be a link, for example to another disk.
    let directory = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (directory.path().join("blobs"), directory.path().join("elsewhere"));
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &root).unwrap();
    let store = BlobStore::open(&root).await.unwrap();
    let blob = store.put(Bytes::from_static(b"far away")).await.unwrap();
    assert_eq!(store.read(&blob.hash).await.unwrap(), "far away");
}

#[tokio::test]
async fn only_the_owner_may_look() {
    let (_directory, store) = store().await;
    let blob = store.put(Bytes::from_static(b"private")).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = file_of(&store, &blob.hash);
    assert_eq!(mode(&file) & 0o177, 0);
    assert_eq!(mode(file.parent().unwrap()) & 0o077, 0);
    assert_eq!(mode(&store.root) & 0o077, 0);
}

#[tokio::test]
async fn a_place_that_cannot_be_a_directory_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = BlobStore::open(file.path()).await.unwrap_err();
    assert!(matches!(error, BlobError::Open { path, .. } if path == file.path()));
}

#[tokio::test]
async fn a_directory_is_made_for_the_first_blob_in_it() {
    let (_directory, store) = store().await;
    let directories = || std::fs::read_dir(&*store.root).unwrap().count();
    assert_eq!(directories(), 1, "only the directory of unfinished files");
    let blob = store.put(Bytes::from_static(b"first")).await.unwrap();
    assert_eq!(directories(), 2);
    let again = BlobStore::open(&*store.root).await.unwrap();
    assert_eq!(again.put(Bytes::from_static(b"first")).await.unwrap(), blob);
    assert_eq!(directories(), 2);
}
