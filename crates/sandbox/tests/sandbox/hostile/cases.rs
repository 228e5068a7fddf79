//! The hostile commands, each with a condition that must be true afterwards.

use polity_sandbox::How;

/// The condition that must be true after a command, in addition to what [`check`] always examines.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// The output contains this text. Most commands end with `echo end`, so that a command that never ran is noticed.
    Says(&'static str),
    /// The output does not contain this text, but contains `end`.
    Never(&'static str),
    /// The command ends in this way.
    Ends(How),
    /// No further condition: the command may end in any way.
    Nothing,
}

use Holds::{Ends, Never, Nothing, Says};

#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) command: &'static str,
    pub(super) full: Holds,
    pub(super) partial: Holds,
}

const fn case(name: &'static str, command: &'static str, holds: Holds) -> Case {
    Case { name, command, full: holds, partial: holds }
}

const fn differs(name: &'static str, command: &'static str, full: Holds, partial: Holds) -> Case {
    Case { name, command, full, partial }
}

/// Commands that try to read secrets.
pub(super) const READING: &[Case] = &[
    case("the token", "cat @DATA/token; echo end", Says("end")),
    case("the database", "cp @DATA/polity.db . ; cat polity.db; echo end", Says("end")),
    case("the configuration", "cat @CONFIG/app.json; grep -r canary @CONFIG; echo end", Says("end")),
    case(
        "the home of the person",
        "cat @PERSON/.ssh/id_ed25519 @PERSON/notes; ls -la @PERSON/.ssh; echo end",
        Never("id_ed25519\n"),
    ),
    case(
        "another workspace",
        "cat @DATA/workspaces/other/secret ../data/workspaces/other/secret; echo end",
        Says("end"),
    ),
    case(
        "all files",
        "grep -rs canary-7f3a / --include=token --include=secret --include=app.json 2>/dev/null | head -c 1000; echo end",
        Says("end"),
    ),
    case(
        "the real home",
        "cat /root/.ssh/* /home/*/.ssh/* /root/.bashrc; ls /home/*; echo end",
        Never("alias"),
    ),
    case(
        "the credentials of Cargo",
        "cat /root/.cargo/credentials* /home/*/.cargo/credentials* && echo READ; echo end",
        Never("READ"),
    ),
    case("the shadow file", "cat /etc/shadow && echo READ; echo end", Never("READ")),
    case(
        "private keys of the system",
        "cat /etc/ssl/private/* /etc/ssh/*key && echo READ; echo end",
        Never("READ"),
    ),
    case("the environment", "env; set; cat /proc/self/environ | tr '\\0' '\\n'; echo end", Never("API_KEY")),
    case("environments of others", "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; echo end", Says("end")),
    case("the environment of the daemon", "cat /proc/@PID/environ && echo READ; echo end", Never("READ")),
    case("memory of the daemon", "cat /proc/@PID/maps /proc/@PID/mem && echo READ; echo end", Never("READ")),
    differs(
        "the list of processes",
        "ls /proc && echo READ; ls /proc/1 && echo READ; echo end",
        Says("end"),
        Never("READ"),
    ),
    case(
        "the root of process 1",
        "cat /proc/1/root@DATA/token /proc/1/cwd/token; ls /proc/1/root@PERSON && echo READ; echo end",
        Never("READ"),
    ),
    case(
        "the root of the daemon",
        "cat /proc/@PID/root@DATA/token; ls /proc/@PID/root/ && echo READ; echo end",
        Never("READ"),
    ),
    case("the working directory of the daemon", "ls /proc/@PID/cwd/ && echo READ; echo end", Never("READ")),
    case(
        "descriptors of the daemon",
        "ls -l /proc/@PID/fd && echo READ; cat /proc/@PID/fd/* ; echo end",
        Never("READ"),
    ),
    case(
        "descriptors that were left open",
        "for f in 3 4 5 6 7 8 9 10 11 12; do cat <&$f; done 2>/dev/null; ls /proc/self/fd; echo end",
        Says("end"),
    ),
    case(
        "its own descriptors upwards",
        "cat /proc/self/fd/*/../../token /dev/fd/../../..@DATA/token; ls /proc/self/fd/0/..; echo end",
        Says("end"),
    ),
    case(
        "descriptors of bubblewrap",
        "for p in 1 2 3; do cat /proc/$p/fd/0 </dev/null; ls /proc/$p/cwd@DATA; done; echo end",
        Says("end"),
    ),
    case(
        "a symbolic link outwards",
        "ln -s @DATA/token t; ln -s / root; cat t root@DATA/token root@PERSON/notes; echo end",
        Says("end"),
    ),
    case("a hard link outwards", "ln @DATA/token t; ln @PERSON/notes n; cat t n; echo end", Says("end")),
    case(
        "dots upwards",
        "cat ../../../../../../../../@DATA/token ../data/token ../config/app.json; echo end",
        Says("end"),
    ),
    case("other temporary files", "grep -rs canary /tmp /var/tmp /dev/shm; echo end", Says("end")),
    case(
        "sockets of the system",
        "ls /run/docker.sock /run/user /run/dbus /var/run/docker.sock && echo SEEN; echo end",
        Never("SEEN"),
    ),
    case(
        "kernel memory",
        "head -c 1 /dev/mem && echo READ; head -c 1 /dev/kmem && echo READ; head -c 1 /proc/kcore && echo READ; echo end",
        Never("READ"),
    ),
    case(
        "the log of the kernel",
        "head -c 1 /dev/kmsg && echo READ; dmesg && echo READ; echo end",
        Never("READ"),
    ),
    case(
        "disks",
        "head -c 1 /dev/vda && echo READ; head -c 1 /dev/sda && echo READ; ls /dev/disk && echo READ; echo end",
        Never("READ"),
    ),
    case(
        "a library that is loaded first",
        "echo x > evil.so; LD_PRELOAD=$PWD/evil.so cat @DATA/token; echo end",
        Says("end"),
    ),
];

/// Commands that try to change files outside the workspace, and guarded files.
pub(super) const CHANGING: &[Case] = &[
    case(
        "the token",
        "echo x > @DATA/token; echo x >> @DATA/token; truncate -s 0 @DATA/token; rm -rf @DATA; mv @DATA x; echo end",
        Says("end"),
    ),
    case(
        "the home of the person",
        "echo x > @PERSON/.ssh/id_ed25519; rm -rf @PERSON; truncate -s 0 @PERSON/notes; echo x > @PERSON/new; echo end",
        Says("end"),
    ),
    case(
        "modes of files outside",
        "chmod 777 @PERSON/notes @DATA/token; chmod -R 000 @PERSON; chown 12345 @PERSON/notes; setfattr -n user.x -v y @PERSON/notes; echo end",
        Says("end"),
    ),
    case(
        "through a symbolic link",
        "ln -s @PERSON/notes n; echo x > n; rm -rf n/; ln -s @PERSON p; rm -rf p/* p/.ssh; echo end",
        Says("end"),
    ),
    case(
        "through a race of links",
        "mkdir a; (for i in 1 2 3 4 5 6 7 8 9; do ln -sfn @PERSON b; ln -sfn a b; done) & for i in 1 2 3 4 5 6 7 8 9; do echo x > b/notes; done 2>/dev/null; wait; echo end",
        Says("end"),
    ),
    case(
        "system files",
        "echo x > /etc/passwd; echo x >> /etc/ld.so.preload; touch /usr/bin/x /usr/local/bin/x /etc/x /opt/x /x && echo WROTE; rm -f /usr/bin/env; ls /usr/bin/env; echo end",
        Never("WROTE"),
    ),
    case(
        "settings of the kernel",
        "for f in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sys/kernel/hostname /proc/sysrq-trigger; do (echo x > $f) 2>/dev/null && echo WROTE; done; echo end",
        Never("WROTE"),
    ),
    case(
        "the program of the next core dump",
        "perl -e 'open(F,\">\",\"/proc/sys/kernel/core_pattern\") and print \"WROTE\\n\"'; ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls core* && echo WROTE; echo end",
        Never("WROTE"),
    ),
    case(
        "the settings of git",
        "echo '[core]' >> .git/config; printf '[core]\\nhooksPath=/tmp\\n' > .git/config; rm -f .git/config; mv .git/config x; echo end",
        Says("end"),
    ),
    case(
        "the hooks of git",
        "echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/post-checkout; chmod +x .git/hooks/*; rm -rf .git/hooks; mkdir -p .git/hooks; echo evil > .git/hooks/post-merge; echo end",
        Says("end"),
    ),
    case(
        "another .git in its place",
        "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; echo '[core] fsmonitor=evil' > .git/config; mv .git/hooks h2; ln -s /tmp .git/hooks; echo end",
        Says("end"),
    ),
    case(
        "a link in place of .git",
        "rm -rf .git; ln -s @PERSON .git; ln -s /tmp .vscode; echo end",
        Says("end"),
    ),
    case(
        "a further way to settings of git",
        "echo ../evil > .git/commondir; mkdir evil; echo '[core]' > .git/config.worktree; git config --worktree core.fsmonitor evil; echo end",
        Says("end"),
    ),
    case(
        "core.hooksPath",
        "git config core.hooksPath evil; git config --local core.fsmonitor ./evil; git config core.editor evil; echo end",
        Says("end"),
    ),
    case(
        "the settings of editors",
        "echo '{\"evil\":1}' > .vscode/settings.json; echo x > .vscode/tasks.json; mkdir .idea; echo x > .idea/workspace.xml; echo x > .mcp.json; echo end",
        Says("end"),
    ),
    case(
        "editors' settings as links",
        "rm -rf .vscode; ln -s @PERSON .vscode; ln -s /etc .idea; echo end",
        Says("end"),
    ),
    case(
        "a deep directory in place of hooks",
        "cd .git; mv hooks h; mkdir hooks; cd hooks; for i in $(seq 1 300); do mkdir d && cd d; done; echo end",
        Says("end"),
    ),
    case(
        "hard links to guarded files",
        "ln .git/config c; echo evil >> c; ln .vscode/settings.json s; echo evil >> s; echo end",
        Says("end"),
    ),
    case(
        "a mapped guarded file",
        "perl -e 'open(F,\"+<\",\".git/config\") and print F \"evil\"'; echo end",
        Says("end"),
    ),
    case(
        "the hooks of a nested repository",
        "echo evil > sub/.git/hooks/pre-commit; echo evil > sub/.git/hooks/post-checkout; chmod +x sub/.git/hooks/*; rm -rf sub/.git/hooks; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/post-merge; echo end",
        Says("end"),
    ),
    case(
        "the settings of a nested repository",
        "printf '[core]\\nhooksPath=/tmp\\n' > sub/.git/config; git -C sub config core.fsmonitor ./evil; mkdir sub/evil; echo ../evil > sub/.git/commondir; echo end",
        Says("end"),
    ),
    case(
        "another nested repository in its place",
        "mv sub old; cp -r old sub; echo evil > sub/.git/hooks/post-checkout; mv sub/.git x; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/post-merge; echo end",
        Says("end"),
    ),
    case("a link in place of a nested repository", "rm -rf sub; ln -s @PERSON sub; echo end", Says("end")),
    case(
        "a new repository in a directory",
        "mkdir -p packages/.git/hooks evil; printf '[core]\\nfsmonitor=evil\\n' > packages/.git/config; echo evil > packages/.git/hooks/post-merge; echo 'gitdir: ../../evil' > packages/a/.git; echo end",
        Says("end"),
    ),
    case(
        "the settings of an editor in a package",
        "echo '{\"evil\":1}' > packages/a/.vscode/settings.json; echo x > packages/a/.vscode/tasks.json; ln -s /tmp packages/a/.idea; mv packages/a packages/b; ln -s packages/b packages/a; echo end",
        Says("end"),
    ),
    case(
        "direnv",
        "echo evil > .envrc; echo evil > sub/.envrc; mkdir packages/a/.envrc; ln -s ../hello.txt packages/a/.envrc; echo end",
        Says("end"),
    ),
    case(
        "the settings of other tools",
        "mkdir .husky .claude .gemini .hg; echo evil > .husky/pre-commit; echo evil > .claude/settings.json; echo evil > .gemini/settings.json; echo evil > .hg/hgrc; echo evil > .gvimrc; echo evil > .dir-locals.el; echo end",
        Says("end"),
    ),
    case(
        "settings that nobody may read at first",
        "mkdir packages/.git; echo evil > packages/.git/config; echo evil > packages/a/.envrc; chmod 000 packages/.git packages/a packages; echo end",
        Says("end"),
    ),
    case(
        "polity's own program",
        "for p in /run/polity/enter /proc/1/exe; do (echo x > $p) 2>/dev/null && echo WROTE; done; echo end",
        Never("WROTE"),
    ),
    case(
        "polity's own program as a way out",
        "/run/polity/enter supervise </dev/null; /run/polity/enter inside </dev/null; echo '{}' | /run/polity/enter supervise; cat @DATA/token; echo end",
        Says("end"),
    ),
];

/// Commands that try system calls which could break the sandbox.
#[cfg(target_arch = "x86_64")]
pub(super) const CALLING: &[Case] = &[
    // perl's `syscall` returns -1 on failure.
    case(
        "ptrace",
        "perl -e 'print syscall(101,16,@PID,0,0)==-1 ? \"refused\":\"OPEN\"'; echo; perl -e 'print syscall(101,0,0,0,0)==-1 ? \"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "process_vm_readv",
        "perl -e 'print syscall(310,@PID,0,0,0,0,0)==-1 && $!==1 ? \"refused\":\"OPEN $!\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "process_vm_writev",
        "perl -e 'print syscall(311,@PID,0,0,0,0,0)==-1 && $!==1 ? \"refused\":\"OPEN $!\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "io_uring",
        "perl -e 'my $p=\"\\0\"x120; print syscall(425,8,$p)==-1 ? \"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "mount",
        "mount -t tmpfs x /mnt && echo OPEN; mount --bind / /tmp && echo OPEN; perl -e 'print syscall(165,my $v0=\"x\",my $v1=\"/tmp\",my $v2=\"tmpfs\",0,0)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "the new mount calls",
        "perl -e 'for my $c (428,429,430,431,432,433,442,467){print syscall($c,-100,my $v3=\"/\",0,0,0)==-1 && ($!==1||$!==38)?\"refused \":\"OPEN$c \"}'; echo end",
        Never("OPEN"),
    ),
    case("umount", "umount /proc && echo OPEN; umount -l /tmp && echo OPEN; echo end", Never("OPEN")),
    case(
        "unshare",
        "unshare -Ur true && echo OPEN; unshare -n true && echo OPEN; unshare -m true && echo OPEN; perl -e 'print syscall(272,0x10000000)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "clone of a user namespace",
        "perl -e 'my $r=syscall(56,0x10000011,0,0,0,0); print $r==-1?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "clone3",
        "perl -e 'my $a=pack(\"Q11\",0x10000000,0,0,0,17,0,0,0,0,0,0); my $r=syscall(435,$a,88); print $r==-1 && $!==38?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "setns",
        "nsenter -t 1 -m true && echo OPEN; nsenter -t @PID -m true && echo OPEN; echo end",
        Never("OPEN"),
    ),
    case(
        "chroot",
        "mkdir r; chroot r / && echo OPEN; perl -e 'print chroot(\"/tmp\")?\"OPEN\":\"refused\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "pivot_root",
        "perl -e 'print syscall(155,my $v4=\"/tmp\",my $v5=\"/tmp\")==-1?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "keys",
        "keyctl show && echo OPEN; perl -e 'print syscall(250,0,-3,0)==-1?\"refused\":\"OPEN\"; print syscall(248,my $v6=\"user\",my $v7=\"x\",my $v8=\"y\",1,-3)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "bpf",
        "perl -e 'print syscall(321,0,my $v9=\"\\0\"x72,72)==-1 && $!==1?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "perf",
        "perl -e 'print syscall(298,pack(my $v10=\"LL\",1,112).(my $v11=\"\\0\"x104),0,-1,-1,0)==-1 && $!==1?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "userfaultfd",
        "perl -e 'print syscall(323,1)==-1 && $!==1?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "kernel modules",
        "perl -e 'print syscall(175,0,0,my $v12=\"\")==-1?\"refused\":\"OPEN\"; print syscall(246,0,0,0,0)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "the clock",
        "date -s 2001-01-01 >/dev/null && echo OPEN; perl -e 'print syscall(227,0,pack(my $v13=\"QQ\",1,0))==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "the name of the machine",
        "hostname evil && echo OPEN; perl -e 'print syscall(170,my $v14=\"evil\",4)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "restart",
        "reboot -f && echo OPEN; perl -e 'print syscall(169,0xfee1dead,672274793,0x1234567,0)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "typing into a terminal",
        "perl -e 'my $c=\"x\"; open(T,\"+<\",\"/dev/tty\"); print ioctl(T,0x5412,$c)?\"OPEN\":\"refused\"; print ioctl(STDOUT,0x5412,$c)?\"OPEN\":\"refused\"; print syscall(16,1,0x100005412,$c)==-1 && $!==1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "device nodes",
        "mknod d c 1 3 && echo OPEN; mknod b b 7 0 && echo OPEN; perl -e 'print syscall(133,my $v15=\"x\",0020666,259)==-1?\"refused\":\"OPEN\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "files that run as their owner",
        "cp /bin/sh s; chmod 4755 s && echo OPEN; chmod u+s s; perl -e 'chmod(04711,\"s\") and print \"OPEN\"; sysopen(F,\"t\",0101,04755) and print \"OPEN\"; syscall(85,my $v16=\"v\",04755)==-1 or print \"OPEN\"'; find . -perm /6000 | grep . && echo OPEN; echo end",
        Never("OPEN"),
    ),
    case(
        "programs that run as root",
        "sudo -n id && echo OPEN; su -c id </dev/null && echo OPEN; pkexec id && echo OPEN; echo end",
        Never("OPEN"),
    ),
    case(
        "capabilities",
        "perl -e 'my $h=pack(\"LL\",0x20080522,0); my $c=\"\\1\"x24; print syscall(125,$h,$c)==0 && $c eq \"\\0\"x24?\"none\":\"OPEN\"; print syscall(105,$<+1)==0?\"OPEN\":\"refused\"'; echo; echo end",
        Never("OPEN"),
    ),
    // The call is `prctl` with `PR_GET_NO_NEW_PRIVS`.
    case(
        "new privileges",
        "perl -e 'print syscall(157,39,0,0,0,0)==1?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "the x32 interface",
        "perl -e 'print syscall(0x40000000+521,0,0,0,0)==-1 && $!==38?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "unknown calls",
        "perl -e 'print syscall(470)==-1 && $!==38?\"refused\":\"OPEN\"; print syscall(600)==-1 && $!==38?\"refused\":\"OPEN\"'; echo; echo end",
        Never("OPEN"),
    ),
    case(
        "limits of the daemon",
        "prlimit --pid @PID --nofile=1 && echo OPEN; renice 19 -p @PID && echo OPEN; ulimit -v unlimited; echo end",
        Never("OPEN"),
    ),
    case(
        "sockets of other families",
        "perl -e 'for my $f (17,40,38,31,44,3,4,5,21,30){print syscall(41,$f,3,0)==-1?\"refused \":\"OPEN$f \"}'; echo end",
        Never("OPEN"),
    ),
    case(
        "netlink beyond routes",
        "perl -e 'for my $p (4,9,12,15){print syscall(41,16,3,$p)==-1?\"refused \":\"OPEN$p \"}'; echo end",
        Never("OPEN"),
    ),
    differs(
        "shared memory of the host",
        "perl -e 'print syscall(29,0x1234,4096,01666)==-1?\"refused\":\"OWN\"'; ipcs -m; echo end",
        Says("OWN"),
        Never("OWN"),
    ),
];

#[cfg(not(target_arch = "x86_64"))]
pub(super) const CALLING: &[Case] = &[];

/// Commands that try to reach the network and other processes.
pub(super) const REACHING: &[Case] = &[
    differs(
        "an internet connection",
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) or (print(\"NOSOCKET\\n\"),exit); for my $h (\"127.0.0.1\",\"1.1.1.1\",\"169.254.169.254\"){socket(S,PF_INET,SOCK_STREAM,0); print connect(S,sockaddr_in(@PORT,inet_aton($h)))?\"OPEN\\n\":\"refused\\n\"}'; echo end",
        Never("OPEN"),
        Says("NOSOCKET"),
    ),
    differs(
        "its own loopback",
        "perl -MSocket -e 'socket(L,PF_INET,SOCK_STREAM,0) or (print(\"NOSOCKET\\n\"),exit); bind(L,sockaddr_in(8123,INADDR_LOOPBACK)) or die $!; listen(L,1) or die $!; socket(S,PF_INET,SOCK_STREAM,0); print connect(S,sockaddr_in(8123,INADDR_LOOPBACK))?\"LOOP\\n\":\"refused\\n\"'; echo end",
        Says("LOOP"),
        Says("NOSOCKET"),
    ),
    case(
        "datagrams",
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_DGRAM,0) or (print(\"refused\\n\"),exit); print send(S,\"x\",0,sockaddr_in(53,inet_aton(\"1.1.1.1\")))?\"OPEN\\n\":\"refused\\n\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "raw sockets",
        "perl -MSocket -e 'print socket(S,PF_INET,SOCK_RAW,1)?\"OPEN\\n\":\"refused\\n\"; print socket(S,17,3,0)?\"OPEN\\n\":\"refused\\n\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "an abstract socket of the host",
        "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) or (print(\"refused\\n\"),exit); print connect(S,pack(\"Sa*\",1,\"\\0polity-test-@PID\"))?\"OPEN\\n\":\"refused\\n\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "a socket of the host by its path",
        "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) or (print(\"refused\\n\"),exit); print connect(S,sockaddr_un(\"@PERSON/socket\"))?\"OPEN\\n\":\"refused\\n\"'; echo end",
        Never("OPEN"),
    ),
    case(
        "killing the daemon",
        "kill -9 @PID && echo KILLED; kill -STOP @PID && echo KILLED; perl -e 'print kill(15,@PID)?\"KILLED\":\"refused\"'; echo end",
        Never("KILLED"),
    ),
    case(
        "killing its own parents",
        "sh -c 'kill -9 $PPID' & wait; (kill -9 1; kill -9 0 & true) ; echo end",
        Nothing,
    ),
    case("killing everybody", "trap '' TERM; kill -9 -1; kill -15 -1; echo end", Nothing),
    case(
        "stopping its supervisor",
        "for p in $PPID 1; do [ $p = 0 ] || kill -STOP $p; done; echo end",
        Says("end"),
    ),
    // At the sandbox level `partial`, a command cannot read `/proc`, so this case finds nothing there.
    case(
        "rights that it has already",
        "grep '^Cap[IPEA]' /proc/self/status | grep -v '0000000000000000$' && echo OPEN; grep '^NoNewPrivs:' /proc/self/status | grep -v '1$' && echo OPEN; echo end",
        Never("OPEN"),
    ),
    case("a child of one's own", "sleep 1000 & kill $! && wait $!; echo $?", Says("143")),
    case("zombies", "perl -e 'for(1..200){fork or exit} sleep 1; print \"end\\n\"'", Says("end")),
    case(
        "a process that ignores signals",
        "trap '' INT TERM HUP QUIT TSTP; (trap '' TERM; exec sleep @MARK) >/dev/null 2>&1 & echo end",
        Says("end"),
    ),
    case(
        "a daemon of its own",
        "perl -e 'fork and exit; use POSIX; POSIX::setsid(); fork and exit; close STDIN; close STDOUT; close STDERR; sleep @MARK'; echo end",
        Says("end"),
    ),
    case(
        "a process that is stopped",
        "sh -c 'kill -STOP $$; sleep @MARK' >/dev/null 2>&1 & echo end",
        Says("end"),
    ),
    case(
        "huge arguments",
        "A=$(head -c 120000 /dev/zero | tr '\\0' a); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do export V$i=$A; done; /bin/true $A $A $A; echo end",
        Says("end"),
    ),
    case("a closed output", "exec >&- 2>&-; sleep 0.1; exit 5", Ends(How::Exited(5))),
    case("control characters", "printf '\\033]0;evil\\007\\033[2J\\0\\377\\376'; echo end", Says("end")),
    case("its own shell dies", "kill -9 $$; sleep 100", Ends(How::Exited(137))),
];
