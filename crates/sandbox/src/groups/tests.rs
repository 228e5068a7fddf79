use super::*;

#[test]
fn controllers_are_found_by_their_whole_names() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cgroup.controllers");
    assert!(!lists_controllers(&file), "without the file");
    for (text, expected) in
        [("cpu memory pids\n", true), ("memory\n", false), ("hugetlb memory.x pids\n", false)]
    {
        std::fs::write(&file, text).unwrap();
        assert_eq!(lists_controllers(&file), expected, "{text}");
    }
}
