use super::{Right, access, rules};
use crate::machine::Level;
use landlock::AccessFs;

/// The right to read permits no change, and no right permits making device nodes.
#[test]
fn rights_give_no_more_than_they_say() {
    for directory in [true, false] {
        let read = access(Right::Read, directory);
        assert!(!read.intersects(AccessFs::from_write(super::NEWEST)));
        assert!(!access(Right::Write, directory).intersects(AccessFs::MakeChar | AccessFs::MakeBlock));
        assert!(!access(Right::Device, directory).contains(AccessFs::Execute));
    }
}

#[test]
fn there_are_no_rules_without_a_sandbox() {
    let places = crate::view::Places {
        workspace: "/w".into(),
        access: crate::plan::Access::ReadWrite,
        home: "/h".into(),
        temporary: "/t".into(),
        readable: Vec::new(),
        repository: Vec::new(),
        hidden: Vec::new(),
        pinned: Vec::new(),
        program: "/p".into(),
        names: None,
        proxy: None,
    };
    let host = crate::host::Host::default();
    assert!(rules(&places, &host, Level::None).is_empty());
    let partial = rules(&places, &host, Level::Partial);
    for closed in ["/", "/proc", "/dev", "/tmp", "/dev/pts", "/etc"] {
        assert!(!partial.iter().any(|rule| rule.path == std::path::Path::new(closed)), "{closed}");
    }
}
