//! Order and conflicts of resources, as far as they follow from the program alone.

use std::collections::BTreeSet;

use setpoint_testing::Hermetic;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// The messages of the errors that `check` finds.
fn errors(program: &str) -> Vec<String> {
    let place = Hermetic::new();
    place.write("p.mcl", program);
    let ran = place.run(BINARY, &["check", "--skip-fmt", "--skip-lint", "--json", "p.mcl"]);
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let rows = object["diagnostics"].as_array().expect("they are a list").iter();
    let text = |row: &serde_json::Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    rows.filter(|row| text(row, "severity") == "error")
        .map(|row| text(row, "message"))
        .collect()
}

/// Programs of two resources, each with the expected error; the empty text where there is none.
const PAIRS: &[(&str, &str)] = &[
    (
        r#"sysctl "a.b" { value => "1", path => "/etc/sysctl.d/x.conf", } sysctl "a/b" { value => "2", path => "/etc/sysctl.d/x.conf", }"#,
        "`sysctl[a/b]` is not valid: `sysctl[a.b]` wants something else of the kernel parameter `a/b` in /etc/sysctl.d/x.conf",
    ),
    (
        r#"sysctl "a.b" { value => "1", persist => false, } sysctl "a/b" { value => "2", persist => false, }"#,
        "wants something else of the kernel parameter `a/b`",
    ),
    (
        r#"sysctl "a.b" { value => "1", path => "/x.conf", } sysctl "c.d" { value => "2", path => "/x.conf", }"#,
        "",
    ),
    (
        r#"sysctl "a.b" { value => "01", } sysctl "a/b" { value => "0x1", }"#,
        "",
    ),
    (
        r#"line "a" { file => "/f", state => "exists", content => "x\ny", } line "b" { file => "/./f", state => "absent", content => "y", }"#,
        "`line[b]` is not valid: `line[a]` wants something else of the line `y` in /f",
    ),
    (
        r#"line "a" { file => "/f", state => "exists", content => "x", } line "b" { file => "/f", state => "absent", content => "x\ny", }"#,
        "",
    ),
    (
        r#"line "a" { file => "~ada/f", state => "exists", content => "x", } line "b" { file => "~ada/f", state => "absent", content => " x", trim => true, }"#,
        "wants something else of the line `x` in ~ada/f",
    ),
    (
        r#"file "/f" { content => "x", } line "a" { file => "/f", state => "exists", content => "x", }"#,
        "`line[a]` is not valid: it edits /f, and `file[/f]` writes all of it",
    ),
    (
        r#"file "/f" { state => "absent", } block "a" { file => "/f", state => "exists", content => "x", }"#,
        "`block[a]` is not valid: it edits /f, and `file[/f]` writes all of it",
    ),
    (
        r#"file "/f" { state => "exists", mode => "0600", } block "a" { file => "/f", state => "exists", content => "x", }"#,
        "",
    ),
    (
        r#"json:edit "/f" { edits => [".a.b = 1",], } json:edit "g" { store => "file:///f", edits => [".a = {}",], }"#,
        "wants something else of the entry `.a` in /f",
    ),
    (
        r#"json:edit "/f" { edits => [".a.b = 1",], } json:edit "g" { store => "/f", edits => [".a.c = 2", ".a.b = 1.0",], }"#,
        "the entry `.a.b` in /f",
    ),
    (
        r#"json:edit "/f" { edits => [".a.b = 1",], } json:edit "g" { store => "/f", edits => [".a.c = 2",], }"#,
        "",
    ),
    (
        r#"json:edit "a" { store => "etcd:///k", edits => [".a = 1",], } json:edit "b" { store => "etcd:///k", edits => ["del(.a)",], }"#,
        "wants something else of the entry `.a` in k",
    ),
    (
        r#"augeas "a" { file => "/f", lens => "Hosts.lns", sets => [struct{path => "x", value => "1"},], } augeas "b" { file => "/f", lens => "Hosts.lns", sets => [struct{path => "x", value => "2"},], }"#,
        "wants something else of the entry `x` in /f",
    ),
    (
        r#"mount "/m" { state => "exists", device => "tmpfs", type => "tmpfs", } file "/etc/fstab" { content => "", }"#,
        "`mount[/m]` is not valid: it edits /etc/fstab, and `file[/etc/fstab]` writes all of it",
    ),
    (
        r#"hostname "a" {} hostname "b" {}"#,
        "`hostname[b]` is not valid: `hostname[a]` wants something else of",
    ),
    (
        r#"hostname "a" { pretty_hostname => "", } hostname "b" { pretty_hostname => "B", hostname => "a", }"#,
        "",
    ),
    (
        r#"firewalld "a" { services => ["http",], } firewalld "b" { services => ["http",], state => "absent", }"#,
        "wants something else of the opening `http` in the default zone",
    ),
    (
        r#"gsettings "org.a b" { type => "int", value => 1, } gsettings "other" { schema => "org.a", key => "b", type => "int", value => 2, }"#,
        "wants something else of the setting `org.a b` in our own settings",
    ),
    (
        r#"ssh:authorized_key "a" { state => "exists", file => "/k", content => "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f a", } ssh:authorized_key "b" { state => "absent", file => "/k", content => "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f b", }"#,
        "`ssh:authorized_key[b]` is not valid: `ssh:authorized_key[a]` wants something else of the key",
    ),
    (
        r#"file "a" { path => "/x", content => "a", } file "b" { path => "/x", content => "b", }"#,
        "`file[b]` is not valid: `file[a]` wants something else of the content of /x",
    ),
    (
        r#"file "a" { path => "/x", content => "a", } file "b" { path => "/x", content => "a", mode => "0600", }"#,
        "",
    ),
    (
        r#"file "a" { path => "/x", mode => "0644", } file "b" { path => "/x", mode => "0600", }"#,
        "the mode of /x",
    ),
    (
        r#"file "a" { path => "/x", mode => "u=rw", } file "b" { path => "/x", mode => "g=r", }"#,
        "",
    ),
    (
        r#"file "a" { path => "/x", content => "a", } file "b" { path => "/x", state => "absent", }"#,
        "the state of /x",
    ),
    (
        r#"file "a" { path => "/x/", state => "exists", } file "b" { path => "/x", content => "", }"#,
        "the state of /x",
    ),
    (
        r#"file "a" { path => "/x", owner => "root", } file "b" { path => "/x", owner => "nobody", }"#,
        "the owner of /x",
    ),
    (
        r#"file "a" { path => "/x", owner => "root", } file "b" { path => "/x", owner => "0", group => "0", }"#,
        "",
    ),
    (
        r#"file "a" { path => "/x", source => "/a", symlink => true, } file "b" { path => "/x", source => "/b", symlink => true, }"#,
        "the source of /x",
    ),
    (
        r#"schedule "a" { namespace => "n", } schedule "b" { namespace => "n", }"#,
        "`schedule[b]` is not valid: `schedule[a]` has the namespace n already",
    ),
];

#[test]
fn two_resources_that_would_undo_each_other_are_refused_before_anything_runs() {
    for (program, wanted) in PAIRS {
        let errors = errors(program);
        match wanted.is_empty() {
            true => assert_eq!(errors, Vec::<String>::new(), "{program}"),
            false => {
                assert_eq!(errors.len(), 1, "{program}: {errors:?}");
                assert!(errors[0].contains(wanted), "{program}: {errors:?}");
            }
        }
    }
}

#[test]
fn what_a_secret_line_says_is_not_told() {
    let errors = errors(
        "$line = sensitive(\"hunter7\")\nline \"a\" { file => \"/f\", state => \"exists\", content => $line, } line \"b\" { file => \"/f\", state => \"absent\", content => \"hunter7\", }",
    );
    let [told] = errors.as_slice() else {
        panic!("{errors:?}");
    };
    assert!(
        told.ends_with("wants something else of the line `(sensitive)` in /f"),
        "{told}"
    );
}

/// Programs, each with the one edge that follows between its two resources.
const ORDER: &[(&str, &str)] = &[
    (
        r#"mount "/srv/a/b" { state => "exists", device => "tmpfs", type => "tmpfs", } mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", }"#,
        "mount[/srv] -> mount[/srv/a/b]",
    ),
    (
        r#"mount "/srv/a/b" { state => "absent", } mount "/srv" { state => "absent", }"#,
        "mount[/srv/a/b] -> mount[/srv]",
    ),
    (
        r#"mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", } file "/srv/x/y" { content => "", }"#,
        "mount[/srv] -> file[/srv/x/y]",
    ),
    (
        r#"mount "/srv" { state => "absent", } file "/srv/x" { state => "absent", }"#,
        "file[/srv/x] -> mount[/srv]",
    ),
    (
        r#"file "/srv/" { state => "exists", } mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", }"#,
        "file[/srv/] -> mount[/srv]",
    ),
    (
        r#"file "/img" { content => "", } mount "/srv" { state => "exists", device => "/img", type => "ext4", }"#,
        "file[/img] -> mount[/srv]",
    ),
    (
        r#"file "/data/" { state => "exists", } mount "/srv" { state => "exists", device => "/data", type => "none", options => {"bind" => "",}, }"#,
        "file[/data/] -> mount[/srv]",
    ),
    (
        r#"mount "/data" { state => "exists", device => "tmpfs", type => "tmpfs", } mount "/srv" { state => "exists", device => "/data/x", type => "none", options => {"bind" => "",}, }"#,
        "mount[/data] -> mount[/srv]",
    ),
    (
        r#"file "/srv/" { state => "exists", } line "a" { file => "/srv/f", state => "exists", content => "x", }"#,
        "file[/srv/] -> line[a]",
    ),
    (
        r#"mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", } block "a" { file => "/srv/f", state => "exists", content => "x", }"#,
        "mount[/srv] -> block[a]",
    ),
    (
        r#"file "/srv/" { state => "exists", } json:edit "/srv/f" { edits => [".a = 1",], }"#,
        "file[/srv/] -> json:edit[/srv/f]",
    ),
    (
        r#"file "/srv/f" { state => "exists", } json:edit "/srv/f" { edits => [".a = 1",], }"#,
        "file[/srv/f] -> json:edit[/srv/f]",
    ),
    (
        r#"mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", } augeas "a" { file => "/srv/f", lens => "Hosts.lns", sets => [struct{path => "x", value => "1"},], }"#,
        "mount[/srv] -> augeas[a]",
    ),
    (
        r#"file "/srv/" { state => "exists", } sysctl "a.b" { value => "1", path => "/srv/x.conf", }"#,
        "file[/srv/] -> sysctl[a.b]",
    ),
    (
        r#"mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", } ssh:authorized_key "a" { state => "absent", file => "/srv/k", content => "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f a", }"#,
        "mount[/srv] -> ssh:authorized_key[a]",
    ),
    (
        r#"mount "/srv" { state => "exists", device => "tmpfs", type => "tmpfs", } exec "a" { cmd => "/bin/true", cwd => "/srv", }"#,
        "mount[/srv] -> exec[a]",
    ),
    (
        r#"file "/srv/a/" { state => "exists", } exec "a" { cmd => "/bin/true", cwd => "/srv/a/b", }"#,
        "file[/srv/a/] -> exec[a]",
    ),
    (
        r#"mount "/home" { state => "exists", device => "tmpfs", type => "tmpfs", } user "ada" { state => "exists", homedir => "/home/ada/", }"#,
        "mount[/home] -> user[ada]",
    ),
    (
        r#"file "/srv/" { state => "exists", } tar "/srv/a.tar" { inputs => ["/etc",], }"#,
        "file[/srv/] -> tar[/srv/a.tar]",
    ),
    (
        r#"file "/srv/" { state => "exists", } gzip "/srv/a.gz" { input => "/etc/hosts", }"#,
        "file[/srv/] -> gzip[/srv/a.gz]",
    ),
    (
        r#"mount "/var/lib/machines" { state => "exists", device => "tmpfs", type => "tmpfs", } nspawn "a" {}"#,
        "mount[/var/lib/machines] -> nspawn[a]",
    ),
    (
        r#"group "g" { state => "absent", } user "u" { state => "absent", group => "g", }"#,
        "user[u] -> group[g]",
    ),
    (
        r#"group "g" { state => "exists", } user "u" { state => "exists", group => "g", }"#,
        "group[g] -> user[u]",
    ),
    (
        r#"user "u" { state => "exists", } file "/srv/x" { content => "", owner => "u", }"#,
        "user[u] -> file[/srv/x]",
    ),
];

#[test]
fn what_lies_in_something_comes_after_it_and_goes_before_it() {
    let place = Hermetic::new();
    for (program, wanted) in ORDER {
        place.write("p.mcl", program);
        let ran = place.run(BINARY, &["graph", "--pure", "--format", "json", "p.mcl"]);
        let object: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        let end = |edge: &serde_json::Value, end: &str| {
            let text = |field: &str| edge[end][field].as_str().unwrap_or_default().to_owned();
            format!("{}[{}]", text("kind"), text("name"))
        };
        let edges = object["edges"].as_array().expect("they are a list").iter();
        let edges: BTreeSet<String> = edges
            .map(|edge| format!("{} -> {}", end(edge, "from"), end(edge, "to")))
            .collect();
        assert_eq!(
            edges,
            BTreeSet::from([(*wanted).to_owned()]),
            "{program}\n{}",
            ran.stderr
        );
    }
}
