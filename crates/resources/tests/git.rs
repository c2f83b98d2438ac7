//! The kind `git`, with repositories on this machine.

use std::process::Command;

use setpoint_value::Value;

use crate::harness::{Bench, Subject, refused, text, texts, yes};

/// Runs git in a directory of the bench.
fn git(bench: &Bench, directory: &str, arguments: &[&str]) -> String {
    let settings = [
        "-c",
        "user.name=Test",
        "-c",
        "user.email=test@example.com",
        "-c",
        "init.defaultBranch=main",
    ];
    let settings = settings.iter().chain(&["-c", "protocol.file.allow=always"]);
    let ran = Command::new("git")
        .args(settings)
        .args(arguments)
        .current_dir(bench.path(directory))
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

fn commit(bench: &Bench, directory: &str, file: &str, content: &str) -> String {
    bench.write(&format!("{directory}/{file}"), content);
    git(bench, directory, &["add", "-A"]);
    git(bench, directory, &["commit", "-q", "-m", content]);
    git(bench, directory, &["rev-parse", "HEAD"])
}

/// A repository with one commit, and its address.
fn origin(bench: &Bench) -> (String, String) {
    bench.make_directory("origin");
    git(bench, "origin", &["init", "-q"]);
    git(
        bench,
        "origin",
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    let first = commit(bench, "origin", "file", "one");
    (format!("file://{}", bench.path("origin")), first)
}

fn checkout(bench: &Bench, url: &str, further: &[(&str, Value)]) -> Subject {
    let mut parameters = vec![("url", text(url))];
    parameters.extend(further.iter().cloned());
    bench.resource("git", &format!("{}/", bench.path("tree")), &parameters)
}

#[test]
fn a_branch_is_cloned_and_followed() {
    let bench = Bench::new();
    let (url, first) = origin(&bench);
    let mut tree = checkout(&bench, &url, &[("branch", text("main"))]);
    assert_eq!(tree.check().fields(), ["state"]);
    assert!(!bench.exists("tree"), "a look changes nothing");
    let run = tree.apply();
    run.drifted(&["state"]);
    assert_eq!(run.sent("version"), Some(text(&first)));
    assert_eq!(bench.read("tree/file"), "one");
    assert_eq!(git(&bench, "tree", &["symbolic-ref", "--short", "HEAD"]), "main");
    tree.apply().is_ok();
    let second = commit(&bench, "origin", "file", "two");
    tree.apply().is_ok();
    tree.refresh = true;
    let run = tree.apply();
    run.drifted(&["commit"]);
    assert_eq!(run.sent("version"), Some(text(&second)));
    assert_eq!(bench.read("tree/file"), "two");
    tree.apply().is_ok();
    // A branch can be rewritten.
    git(&bench, "origin", &["commit", "-q", "--amend", "-m", "other"]);
    tree.apply().drifted(&["commit"]);
    git(&bench, "tree", &["checkout", "-q", "--detach"]);
    tree.apply().drifted(&["branch"]);
}

#[test]
fn changes_by_hand_are_refused_discarded_or_kept() {
    let bench = Bench::new();
    let (url, _) = origin(&bench);
    checkout(&bench, &url, &[("branch", text("main"))]).apply();
    bench.write("tree/file", "changed");
    bench.write("tree/new", "");
    let branch = ("branch", text("main"));
    let failure = checkout(&bench, &url, std::slice::from_ref(&branch))
        .apply()
        .failure();
    assert!(failure.contains("files are changed: file;"), "{failure}");
    checkout(&bench, &url, &[branch.clone(), ("local_changes", text("keep"))])
        .apply()
        .is_ok();
    let mut discarded = checkout(
        &bench,
        &url,
        &[
            branch.clone(),
            ("local_changes", text("discard")),
            ("untracked", text("remove")),
        ],
    );
    discarded.apply().drifted(&["changes", "untracked"]);
    assert_eq!(bench.read("tree/file"), "one");
    assert!(!bench.exists("tree/new"));
    discarded.apply().is_ok();
    commit(&bench, "tree", "mine", "mine");
    let failure = checkout(&bench, &url, std::slice::from_ref(&branch))
        .apply()
        .failure();
    assert!(
        failure.contains("commits that the server does not have"),
        "{failure}"
    );
    let failure = checkout(&bench, &url, &[("state", text("absent"))])
        .apply()
        .failure();
    assert!(
        failure.contains("commits that the server does not have"),
        "{failure}"
    );
    checkout(&bench, &url, &[branch, ("local_commits", text("discard"))])
        .apply()
        .drifted(&["commit"]);
    checkout(&bench, &url, &[("state", text("absent"))])
        .apply()
        .drifted(&["state"]);
    assert!(!bench.exists("tree"));
}

#[test]
fn a_tag_that_moves_is_refused_or_followed() {
    let bench = Bench::new();
    let (url, first) = origin(&bench);
    git(&bench, "origin", &["tag", "-a", "v1", "-m", "one"]);
    let mut tree = checkout(&bench, &url, &[("tag", text("v1"))]);
    let run = tree.apply();
    run.drifted(&["state"]);
    assert_eq!(
        run.sent("version"),
        Some(text(&first)),
        "the commit, and not the tag"
    );
    let second = commit(&bench, "origin", "file", "two");
    git(&bench, "origin", &["tag", "-f", "-a", "v1", "-m", "two"]);
    tree.refresh = true;
    let failure = tree.apply().failure();
    let told = format!("the tag `v1` was {} and is {} now", &first[..12], &second[..12]);
    assert!(failure.contains(&told), "{failure}");
    let mut followed = checkout(
        &bench,
        &url,
        &[("tag", text("v1")), ("moved_tag", text("follow"))],
    );
    followed.apply().drifted(&["commit"]);
    assert_eq!(bench.read("tree/file"), "two");
    followed.apply().is_ok();
    let failure = checkout(&bench, &url, &[("tag", text("v2"))]).apply().failure();
    assert!(failure.contains("it has no tag `v2`"), "{failure}");
}

#[test]
fn a_commit_needs_no_server_once_it_is_there() {
    let bench = Bench::new();
    let (url, first) = origin(&bench);
    let second = commit(&bench, "origin", "file", "two");
    checkout(&bench, &url, &[("commit", text(&first))])
        .apply()
        .drifted(&["state"]);
    assert_eq!(bench.read("tree/file"), "one");
    checkout(&bench, &url, &[("commit", text(&second))])
        .apply()
        .drifted(&["commit"]);
    assert_eq!(bench.read("tree/file"), "two");
    std::fs::remove_dir_all(bench.path("origin")).unwrap();
    checkout(&bench, &url, &[("commit", text(&second))])
        .apply()
        .is_ok();
    let failure = checkout(&bench, &url, &[("branch", text("main"))])
        .apply()
        .failure();
    assert!(
        failure.contains("does not appear to be a git repository") || failure.contains("does not exist"),
        "{failure}"
    );
}

#[test]
fn a_checkout_that_was_interrupted_is_finished() {
    let bench = Bench::new();
    let (url, _) = origin(&bench);
    let branch = [("branch", text("main"))];
    checkout(&bench, &url, &branch).apply();
    commit(&bench, "origin", "file", "two");
    let mut tree = checkout(&bench, &url, &branch);
    // As a kill in the midst of it leaves it: noted, the index locked, files half written.
    let own = bench.own("var/checkout");
    let stored = std::fs::read(bench.path(&own)).unwrap();
    let stored = String::from_utf8_lossy(&stored).replace("\"is_under_way\":false", "\"is_under_way\":true");
    std::fs::write(bench.path(&own), stored).unwrap();
    bench.write("tree/.git/index.lock", "");
    bench.write("tree/file", "hal");
    let run = tree.apply();
    assert!(run.result.is_ok(), "{}", run.failure());
    assert_eq!(bench.read("tree/file"), "two");
    tree.apply().is_ok();
    // The rest of an interrupted clone is no obstacle.
    std::fs::remove_dir_all(bench.path("tree")).unwrap();
    bench.write(".tree.setpoint-new/half", "");
    checkout(&bench, &url, &branch).apply().drifted(&["state"]);
    assert!(!bench.exists(".tree.setpoint-new"));
}

#[test]
fn a_directory_with_other_things_is_left_alone() {
    let bench = Bench::new();
    let (url, _) = origin(&bench);
    bench.write("tree/mine", "text");
    let failure = checkout(&bench, &url, &[("branch", text("main"))])
        .apply()
        .failure();
    assert!(failure.contains("it holds mine, and is no checkout"), "{failure}");
    assert_eq!(bench.tree("tree"), ["mine=text"]);
}

#[test]
fn bare_sparse_and_whole_histories() {
    let bench = Bench::new();
    let (url, _) = origin(&bench);
    commit(&bench, "origin", "a/x", "x");
    commit(&bench, "origin", "b/y", "y");
    let branch = ("branch", text("main"));
    let mut sparse = checkout(&bench, &url, &[branch.clone(), ("sparse", texts(&["a"]))]);
    sparse.apply().drifted(&["state"]);
    assert!(bench.exists("tree/a/x") && !bench.exists("tree/b"));
    assert_eq!(git(&bench, "tree", &["rev-list", "--count", "HEAD"]), "1");
    std::fs::remove_dir_all(bench.path("tree")).unwrap();
    let mut whole = checkout(&bench, &url, &[branch.clone(), ("depth", Value::Int(0))]);
    whole.apply().drifted(&["state"]);
    assert_eq!(git(&bench, "tree", &["rev-list", "--count", "HEAD"]), "3");
    std::fs::remove_dir_all(bench.path("tree")).unwrap();
    let mut bare = checkout(&bench, &url, &[branch, ("bare", yes())]);
    bare.apply().drifted(&["state"]);
    assert_eq!(git(&bench, "tree", &["show", "main:a/x"]), "x");
    bare.apply().is_ok();
    commit(&bench, "origin", "a/x", "z");
    bare.refresh = true;
    bare.apply().drifted(&["commit"]);
    assert_eq!(git(&bench, "tree", &["show", "main:a/x"]), "z");
}

#[test]
fn hooks_of_a_hostile_repository_do_not_run() {
    let bench = Bench::new();
    let (url, _) = origin(&bench);
    checkout(&bench, &url, &[("branch", text("main"))]).apply();
    let ran = bench.path("ran");
    bench.write(
        "tree/.git/hooks/post-checkout",
        format!("#!/bin/sh\ntouch {ran}\n"),
    );
    bench.set_mode("tree/.git/hooks/post-checkout", 0o755);
    git(
        &bench,
        "tree",
        &["config", "core.fsmonitor", &format!("touch {ran}")],
    );
    commit(&bench, "origin", "file", "two");
    let run = checkout(&bench, &url, &[("branch", text("main"))]).apply();
    run.drifted(&["commit"]);
    assert!(!bench.exists("ran"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |parameters: &[(&str, Value)]| refused("git", "/srv/tree/", parameters);
    let url = ("url", text("https://example.org/a.git"));
    assert_eq!(
        refused(std::slice::from_ref(&url)),
        ["branch: set one of `branch`, `tag` and `commit`"]
    );
    let both = [url.clone(), ("branch", text("main")), ("tag", text("v1"))];
    assert_eq!(
        refused(&both),
        ["tag: `branch` is set, too; set one of `branch`, `tag` and `commit`"]
    );
    let short = [url.clone(), ("commit", text("abc123"))];
    assert_eq!(
        refused(&short),
        ["commit: must be a whole hash, of 40 or 64 hexadecimal digits"]
    );
    let login = [
        ("url", text("https://u:p@example.org/a.git")),
        ("branch", text("main")),
    ];
    assert_eq!(
        refused(&login),
        ["url: it holds a user, which would be shown in messages; set `username` and `token`"]
    );
    let scheme = [("url", text("ext::sh -c id")), ("branch", text("main"))];
    assert_eq!(refused(&scheme), ["url: `ext::sh -c id` is not an address"]);
    let option = [url, ("branch", text("--upload-pack=x"))];
    assert_eq!(
        refused(&option),
        ["branch: `--upload-pack=x` is not a name that git takes"]
    );
}

#[test]
fn a_tree_belongs_to_its_user() {
    let bench = Bench::new();
    let (url, _) = origin(&bench);
    if !crate::harness::is_root() {
        eprintln!("left out: only root gives files away");
        return;
    }
    // The user must get there.
    for directory in ["", "origin"] {
        bench.set_mode(directory, 0o755);
    }
    let owner =
        |path: &str| std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(bench.path(path)).unwrap());
    checkout(&bench, &url, &[("branch", text("main"))]).apply();
    assert_eq!(owner("tree/file"), 0);
    // Git serves no repository of another user.
    let given = Command::new("chown")
        .args(["-R", "games", &bench.path("origin")])
        .status();
    assert!(given.unwrap().success());
    let games = [("branch", text("main")), ("user", text("games"))];
    let mut given = checkout(&bench, &url, &games);
    given.apply().drifted(&["owner"]);
    assert_eq!(owner("tree/file"), owner("tree"));
    assert_ne!(owner("tree/file"), 0);
    given.apply().is_ok();
}

/// A server of SSH on loopback, with a key of its own and one that may log in.
struct Sshd {
    process: std::process::Child,
    port: u16,
}

impl Sshd {
    /// None where there is no server, or we are not root.
    #[expect(clippy::print_stderr, reason = "it says why a test is left out")]
    fn start(bench: &Bench) -> Option<Sshd> {
        let has_server = std::path::Path::new("/usr/sbin/sshd").exists();
        if !has_server || !crate::harness::is_root() {
            eprintln!("left out: no sshd, or no rights to start it");
            return None;
        }
        let _ = std::fs::create_dir_all("/run/sshd");
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &bench.path(key)])
                .status();
            assert!(made.unwrap().success());
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let process = Command::new("/usr/sbin/sshd")
            .args([
                "-f",
                "/dev/null",
                "-D",
                "-e",
                "-p",
                &port.to_string(),
                "-h",
                &bench.path("host"),
            ])
            .args([
                "-o",
                "ListenAddress=127.0.0.1",
                "-o",
                "StrictModes=no",
                "-o",
                "PidFile=none",
            ])
            .args(["-o", &format!("AuthorizedKeysFile={}", bench.path("user.pub"))])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Some(Sshd { process, port })
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_repository_behind_ssh_needs_the_keys_of_both_sides() {
    let bench = Bench::new();
    origin(&bench);
    let Some(sshd) = Sshd::start(&bench) else { return };
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let url = format!("ssh://{user}@127.0.0.1:{}{}", sshd.port, bench.path("origin"));
    let host_key = bench.read("host.pub");
    let host_key: Vec<&str> = host_key.split(' ').take(2).collect();
    let line = |port: u16| format!("[127.0.0.1]:{port} {}", host_key.join(" "));
    let parameters = |key: &str, line: &str| {
        let other = format!("other.example.org {}", host_key.join(" "));
        [
            ("branch", text("main")),
            ("key", text(bench.path(key))),
            ("host_key", texts(&[&other, line])),
        ]
    };
    let unknown = checkout(&bench, &url, &parameters("user", &line(1)))
        .apply()
        .failure();
    assert!(
        unknown.contains("the key of the host is not known; set `host_key`"),
        "{unknown}"
    );
    let foreign = checkout(&bench, &url, &parameters("host", &line(sshd.port)))
        .apply()
        .failure();
    assert!(
        foreign.contains("the server does not accept the key; set `key`"),
        "{foreign}"
    );
    checkout(&bench, &url, &parameters("user", &line(sshd.port)))
        .apply()
        .drifted(&["state"]);
    assert_eq!(bench.read("tree/file"), "one");
}
