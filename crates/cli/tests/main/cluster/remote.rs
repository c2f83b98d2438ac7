//! The kind `remote`: our program on another host, which has an SSH server of its own and joins the cluster.

mod fixture;
mod logging_in;

use std::time::{Duration, Instant};

use setpoint_testing::etcd::EtcdCluster;
use setpoint_testing::sshd::add_line;
use setpoint_testing::{Running, repository};

use super::Cluster;
use crate::several_hosts::{Host, becomes, eventually};
use fixture::Far;

/// Writes into a file on whichever host it runs.
const SAYS: &str = "file \"PLACE/${hostname}.says\" {\n\tstate => \"exists\",\n\tcontent => \"joined\",\n}\n";

/// Ends the program with a status.
const ENDS_WITH_3: &str = "exit \"now\" {\n\tcode => 3,\n}\n";

/// A program that ends when nothing is left to do, and is reached at any port that is free there.
const ENDS: &str = "converger_timeout => 0,\n\ttunnel_addr => \"127.0.0.1:0\",";

/// One that stays, and reaches the store by itself.
const STAYS: &str = "transient => false,\n\ttunnelled => false,";

#[test]
fn a_program_that_ends_is_waited_for_and_reaches_the_store_through_us() {
    let Some(far) = Far::start("a_program_that_ends_is_waited_for_and_reaches_the_store_through_us") else {
        return;
    };
    far.deploy(SAYS);
    let ran = far.once(&["-v"], &far.resource(ENDS));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(far.cluster.place.path("far.says")).expect("it has run there"),
        "joined"
    );
    // It is the program that runs here, in a directory that is nobody else's.
    let there = far.directory();
    let modes = far.server.there(&format!(
        "cd {there}; stat -c %a . .. ../.. prefix setpoint log; sha256sum < setpoint"
    ));
    let own = far.sha256();
    assert_eq!(modes, format!("700\n700\n700\n700\n770\n600\n{own}  -"));
    assert_eq!(far.server.there(&format!("cat {there}/exit")), "0");
    far.server.wait_for_sessions(0);
    // What is there is not copied again.
    let inode = || far.server.there(&format!("stat -c %i {there}/setpoint"));
    let before = inode();
    assert_eq!(far.once(&[], &far.resource(ENDS)).code, 0);
    assert_eq!(inode(), before);
    // A program that ends otherwise is a failure, and its last words are shown.
    far.deploy(ENDS_WITH_3);
    let said = far.fails(
        &[],
        &far.resource(ENDS),
        "run the program there: it has ended with status 3",
    );
    assert!(
        said.contains(&format!("the last lines of {there}/log there:")),
        "{}",
        said
    );
}

#[test]
fn a_program_that_stays_is_given_every_address_that_leads_somewhere() {
    let test = "a_program_that_stays_is_given_every_address_that_leads_somewhere";
    let advertised = "http://[::]:PORT,http://localhost:PORT,http://0.0.0.0:PORT,http://127.0.0.1:PORT";
    let etcd = ["--unsafe-no-fsync", "--advertise-client-urls", advertised];
    let Some(far) = Far::start_with(test, || EtcdCluster::start_with(1, &etcd), "") else {
        return;
    };
    far.deploy(SAYS);
    assert_eq!(far.once(&[], &far.resource(STAYS)).code, 0);
    becomes(&far.cluster.place.path("far.says"), "joined");
    let endpoints = far.cluster.etcd.endpoints();
    let port = endpoints[0].rsplit(':').next().expect("it has a port");
    let there = far.directory();
    assert_eq!(
        far.command_line(),
        format!(
            "{there}/setpoint run --hostname far --etcd-endpoints http://127.0.0.1:{port},http://localhost:{port} --state-dir {there}/prefix empty "
        )
    );
}

#[test]
fn without_an_address_that_leads_to_the_store_nothing_is_started() {
    let test = "without_an_address_that_leads_to_the_store_nothing_is_started";
    let etcd = [
        "--unsafe-no-fsync",
        "--advertise-client-urls",
        "http://[::]:PORT,http://0.0.0.0:PORT",
    ];
    let Some(far) = Far::start_with(test, || EtcdCluster::start_with(1, &etcd), "") else {
        return;
    };
    far.fails(
        &[],
        &far.resource(STAYS),
        "its members advertise none that leads to them (`--advertise-client-urls` of etcd)",
    );
    assert_eq!(far.server.there("ls -A /var/lib"), "");
    // Through a tunnel there is no need of one.
    far.deploy(SAYS);
    assert_eq!(far.once(&[], &far.resource(ENDS)).code, 0);
}

#[test]
fn a_program_that_stays_is_found_replaced_and_stopped() {
    let Some(far) = Far::start("a_program_that_stays_is_found_replaced_and_stopped") else {
        return;
    };
    far.deploy(SAYS);
    // Who may not repair anything looks, and leaves nothing there.
    let ran = far.once(&["--noop", "-v"], &far.resource(STAYS));
    assert!(ran.stderr.contains("would change state"), "{}", ran.stderr);
    assert_eq!(far.server.there("ls -A /var/lib /root"), "/root:\n\n/var/lib:");
    assert_eq!(far.once(&[], &far.resource(STAYS)).code, 0);
    let first = far.process();
    // It is right, whoever looks.
    for further in [&[][..], &["--noop"]] {
        let ran = far.once(further, &far.resource(STAYS));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("1 unchanged"), "{}", ran.stderr);
    }
    assert_eq!(far.process(), first);
    // Another program takes the place of the one that runs there, unless it may not.
    let other = far.another_program();
    let ran = far.once_with(&other, &["--noop", "-v"], &far.resource(STAYS));
    assert!(ran.stderr.contains("would change program"), "{}", ran.stderr);
    assert_eq!(far.process(), first);
    assert_eq!(far.once_with(&other, &[], &far.resource(STAYS)).code, 0);
    let second = far.process();
    assert_ne!(second, first);
    assert!(!far.is_there(&first));
    // What only bears the number of our process is left alone.
    let there = far.directory();
    let stranger = far.server.there(&format!(
        "cp {there}/pid {there}/kept; sleep 1000 > /dev/null 2>&1 & echo $!; echo $! > {there}/pid"
    ));
    let stopped = far.resource("state => \"stopped\",");
    let ran = far.once(&[], &stopped);
    assert!(ran.stderr.contains("1 unchanged"), "{}", ran.stderr);
    let _ = far.server.there(&format!(
        "kill -0 {stranger} && kill {stranger}; mv {there}/kept {there}/pid; kill -0 {second}"
    ));
    let ran = far.once(&["--noop", "-v"], &stopped);
    assert!(ran.stderr.contains("would change state"), "{}", ran.stderr);
    let ran = far.once(&[], &stopped);
    assert!(ran.stderr.contains("1 changed"), "{}", ran.stderr);
    assert!(!far.is_there(&second));
    let ran = far.once(&[], &stopped);
    assert!(ran.stderr.contains("1 unchanged"), "{}", ran.stderr);
}

#[test]
fn a_program_that_was_killed_is_started_again_also_after_the_connection_was_cut() {
    let test = "a_program_that_was_killed_is_started_again_also_after_the_connection_was_cut";
    let Some(far) = Far::start(test) else {
        return;
    };
    far.deploy(SAYS);
    let name = far.server.url();
    let mut near = Host::of_running(Running::start(far.command(
        &far.binary,
        &["--json"],
        &far.resource(STAYS),
    )));
    near.of("remote", &name, "repaired");
    let first = far.process();
    // The way there is cut while the program goes on.
    far.server.wait_for_sessions(1);
    let cut = far.server.sessions();
    far.server.signal_sessions("KILL");
    near.event("the failure of the watch", |event| {
        event["kind"] == "remote" && event["error"].to_string().contains("has ended")
    });
    eventually("there is another connection", || {
        let now = far.server.sessions();
        !now.is_empty() && now != cut
    });
    assert_eq!(far.process(), first);
    let _ = far.server.there(&format!("kill -9 {first}"));
    near.of("remote", &name, "repaired");
    let _ = far.other_process(&first);
    // Nobody there is left behind, and nobody there is stopped, when we go.
    near.stop();
    far.server.wait_for_sessions(0);
    assert!(far.is_there(&far.process()));
}

#[test]
fn a_program_that_is_waited_for_ends_when_nobody_waits_any_more() {
    let test = "a_program_that_is_waited_for_ends_when_nobody_waits_any_more";
    let Some(far) = Far::start(test) else {
        return;
    };
    far.deploy(SAYS);
    let never_ends = "tunnel_addr => \"127.0.0.1:0\",";
    let near = Running::start(far.command(&far.binary, &["--json"], &far.resource(never_ends)));
    becomes(&far.cluster.place.path("far.says"), "joined");
    let process = far.process();
    // It reaches the store at an address that is none of the store's.
    let called = far.command_line();
    let endpoint = &far.cluster.etcd.endpoints()[0];
    assert!(
        called.contains("--etcd-endpoints http://127.0.0.1:") && !called.contains(endpoint),
        "{called}"
    );
    // First its end is waited for, then it is ended.
    near.signal("TERM");
    near.signal("TERM");
    let begun = Instant::now();
    let (status, errors) = near.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(!far.is_there(&process));
    // One whose tunnel is gone with us is started anew.
    let near = Running::start(far.command(&far.binary, &["--json"], &far.resource(never_ends)));
    let left = far.other_process(&process);
    near.signal("KILL");
    let _ = near.finish();
    assert!(far.is_there(&left));
    let ran = far.once(&["-v"], &far.resource(ENDS));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("tunnel"), "{}", ran.stderr);
    assert!(!far.is_there(&left));
}

#[test]
fn a_tunnel_that_breaks_is_a_failure_and_the_next_try_begins_anew() {
    let test = "a_tunnel_that_breaks_is_a_failure_and_the_next_try_begins_anew";
    let Some(far) = Far::start(test) else {
        return;
    };
    far.deploy(SAYS);
    let program = far.resource("tunnel_addr => \"127.0.0.1:0\",\n\tMeta:retry => -1,\n\tMeta:delay => 100,");
    let mut near = Host::of_running(Running::start(far.command(&far.binary, &["--json"], &program)));
    let first = far.other_process("");
    let called = far.command_line();
    far.server.signal_sessions("KILL");
    near.event("a failed run", |event| {
        event["kind"] == "remote" && event["error"].to_string().contains("has ended")
    });
    let _ = far.other_process(&first);
    assert!(!far.is_there(&first));
    assert_ne!(far.command_line(), called);
    near.kill();
}

#[test]
fn a_host_hears_that_the_store_has_moved() {
    let test = "a_host_hears_that_the_store_has_moved";
    let Some(mut far) = Far::start_with(test, || EtcdCluster::start(3), "") else {
        return;
    };
    far.deploy(SAYS);
    let name = far.server.url();
    let command = far.command(&far.binary, &["--json", "-v"], &far.resource(STAYS));
    let mut near = Host::of_running(Running::start(command));
    near.of("remote", &name, "repaired");
    let process = far.process();
    let stays = far.cluster.etcd.leader();
    let goes = (stays + 1) % 3;
    far.cluster.etcd.kill_member(goes);
    let listed = far.cluster.etcd.control(&["member", "list"]);
    let id = listed.lines().find(|line| line.contains(&format!(", m{goes}, ")));
    let id = id
        .and_then(|line| line.split(',').next())
        .expect("it is one of them");
    far.cluster.etcd.control(&["member", "remove", id]);
    near.event("the news", |event| {
        event["kind"] == "remote"
            && event
                .to_string()
                .contains("the store is reached at other addresses")
    });
    // What runs there finds its way by itself.
    near.of("remote", &name, "run ended");
    assert_eq!(far.process(), process);
    near.stop();
}

#[test]
fn without_caching_nothing_stays_but_what_is_left_of_a_failure() {
    let Some(far) = Far::start("without_caching_nothing_stays_but_what_is_left_of_a_failure") else {
        return;
    };
    let parameters = format!("{ENDS}\n\tcaching => false,");
    far.deploy(ENDS_WITH_3);
    assert_eq!(far.once(&[], &far.resource(&parameters)).code, 1);
    let left = far.server.there("ls /root/.setpoint/remote/*/");
    assert_eq!(left, "exit\nlog\npid\nprefix\nsetpoint");
    far.deploy(SAYS);
    assert_eq!(far.once(&[], &far.resource(&parameters)).code, 0);
    assert_eq!(far.server.there("ls -A /root /var/lib"), "/root:\n\n/var/lib:");
}

#[test]
fn a_directory_that_others_can_change_is_not_used() {
    let Some(far) = Far::start("a_directory_that_others_can_change_is_not_used") else {
        return;
    };
    let there = far.directory();
    for (made, said) in [
        (
            "mkdir /tmp/elsewhere; ln -s /tmp/elsewhere /var/lib/setpoint",
            "/var/lib/setpoint is a symbolic link",
        ),
        (
            "mkdir -m 777 /var/lib/setpoint",
            "others can write to /var/lib/setpoint",
        ),
        (
            "mkdir /var/lib/setpoint; chown 1 /var/lib/setpoint",
            "/var/lib/setpoint belongs to another user",
        ),
        ("echo > /var/lib/setpoint", "/var/lib/setpoint is no directory"),
        (
            "mkdir -p /var/lib/setpoint/remote; ln -s /tmp THERE",
            "THERE is a symbolic link",
        ),
        (
            "chmod 775 /var/lib; chgrp 1 /var/lib",
            "the group of /var/lib can write to it",
        ),
        ("chmod 757 /var/lib", "others can write to /var/lib"),
    ] {
        let _ = far.server.there(&made.replace("THERE", &there));
        for further in [&["--noop"][..], &[]] {
            let ran = far.once(further, &far.resource(ENDS));
            assert_eq!(ran.code, 1, "{made}: {}", ran.stderr);
            let said = said.replace("THERE", &there);
            assert!(ran.stderr.contains(&said), "{made}: {}", ran.stderr);
        }
        let _ = far.server.there(
            "ls -A /tmp/elsewhere 2>/dev/null | grep . && exit 1; rm -rf /var/lib/setpoint /tmp/elsewhere; chmod 755 /var/lib; chgrp 0 /var/lib",
        );
    }
}

#[test]
fn a_program_that_cannot_run_there_is_told_of() {
    let Some(far) = Far::start("a_program_that_cannot_run_there_is_told_of") else {
        return;
    };
    // Nothing can be started below a file system that forbids it.
    let _ = far.server.there("mount -o remount,noexec /var/lib");
    let ran = far.once(&[], &far.resource(ENDS));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("run the program on ssh://"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Permission denied"), "{}", ran.stderr);
    // What it needs is installed with the tools of that host, which here only say what they were asked for.
    let tool = "#!/bin/sh\\necho \"$@\" >> /run/asked; case \"$*\" in *install*) mount -o remount,exec /var/lib ;; esac\\n";
    let _ = far.server.there(&format!(
        "printf '{tool}' > /run/tool; chmod 755 /run/tool; for name in dnf yum apt-get; do path=$(command -v $name) && mount --bind /run/tool $(readlink -f $path); done; true"
    ));
    far.deploy(SAYS);
    let ran = far.once(&[], &far.resource(&format!("{ENDS}\n\tinstall_deps => true,")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = far.server.there("tail -n 1 /run/asked");
    assert!(
        [
            "--assumeyes install glibc libgcc",
            "--yes install libc6 libgcc-s1"
        ]
        .contains(&&*asked),
        "{asked}"
    );
    // A full disk leaves the program that was there.
    let there = far.directory();
    let _ = far
        .server
        .there("mount -o remount,size=$(($(du -sk /var/lib | cut -f 1) + 512))k /var/lib");
    let other = far.another_program();
    let ran = far.once_with(&other, &[], &far.resource(ENDS));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
    assert_eq!(
        far.server.there(&format!(
            "sha256sum < {there}/setpoint; ls {there} | grep -c new || true"
        )),
        format!("{}  -\n0", far.sha256())
    );
}

#[test]
fn the_program_of_the_guide_has_its_hosts_join() {
    let Some(far) = Far::start("the_program_of_the_guide_has_its_hosts_join") else {
        return;
    };
    let guide = repository().join("docs/guide/setting-up.md");
    let guide = std::fs::read_to_string(guide).expect("there is a guide");
    let programs = guide
        .split("```mcl\n")
        .filter_map(|part| part.split("```").next());
    let mut programs = programs.filter(|program| program.contains("remote \"${url}\""));
    let program = programs.next().expect("it tells of many hosts");
    // Both are one host here, so each needs a port of its own.
    let port = far.server.port();
    let program = program
        .replace("ssh://root@10.0.0.11", &format!("ssh://root@127.0.0.1:{port}"))
        .replace("ssh://root@10.0.0.12", &format!("ssh://root@localhost:{port}"))
        .replace("~/.ssh/id_setup", &far.server.user_key().display().to_string())
        .replace("converger_timeout => 5,", ENDS);
    let known = far.server.known_hosts_line("ed25519");
    for known in [&known, &known.replace("127.0.0.1", "localhost")] {
        add_line(&far.cluster.place.home().join(".ssh/known_hosts"), known);
    }
    far.deploy(SAYS);
    let ran = far.once(&[], &program);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for host in ["web-1", "web-2"] {
        becomes(&far.cluster.place.path(&format!("{host}.says")), "joined");
    }
}

#[test]
fn a_host_that_shares_nothing_has_none_to_join() {
    let Some(far) = Far::start("a_host_that_shares_nothing_has_none_to_join") else {
        return;
    };
    let program = far.cluster.place.write("alone.mcl", far.resource(ENDS));
    let program = program.display().to_string();
    let prefix = far.cluster.place.path("alone").display().to_string();
    let ran = far
        .cluster
        .place
        .run(&far.binary, &["run", "--once", "--state-dir", &prefix, &program]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("this host is in no cluster: pass `--etcd-endpoints` to `run`"),
        "{}",
        ran.stderr
    );
    far.server.wait_for_sessions(0);
    // One that comes to the store through SSH has no way there to lend.
    let further = [
        "--ssh-url",
        &far.server.url(),
        "--ssh-id",
        &far.server.user_key().display().to_string(),
        "--ssh-hostkey",
        &far.server.host_key("ed25519"),
    ];
    let ran = far.once(&further, &far.resource(ENDS));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("this host reaches the store through SSH itself"),
        "{}",
        ran.stderr
    );
    assert_eq!(far.once(&further, &far.resource(STAYS)).code, 0);
}

#[test]
fn whoever_is_not_root_there_has_the_program_at_home() {
    let test = "whoever_is_not_root_there_has_the_program_at_home";
    // Where others than root can read it.
    let keys = "AuthorizedKeysFile /run/authorized_keys\n";
    let Some(far) = Far::start_with(test, || EtcdCluster::start(1), keys) else {
        return;
    };
    let own = far.server.user_key().with_extension("pub").display().to_string();
    let _ = far.server.there(&format!(
        "cp {own} /run/authorized_keys && chmod 644 /run/authorized_keys && \
         useradd --password '*' --home-dir /run/ada --create-home --shell /bin/bash ada && echo echo Welcome > /run/ada/.bashrc"
    ));
    far.deploy("noop \"nothing\" {}\n");
    let program = |further: &str| {
        let parameters = format!("{ENDS}\n\t{further}");
        far.resource(&parameters).replace("ssh://root@", "ssh://ada@")
    };
    let said = far.fails(&[], &program(""), "/var/lib/setpoint");
    assert!(said.contains("Permission denied"), "{}", said);
    assert_eq!(far.once(&["--noop"], &program("caching => false,")).code, 0);
    let ran = far.once(&[], &program("caching => false,"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(far.server.there("ls -A /run/ada | grep setpoint; true"), "");
    // A home that others can write to is none.
    let _ = far.server.there("chmod 777 /run/ada");
    let ran = far.once(&[], &program("caching => false,"));
    assert!(
        ran.stderr.contains("others can write to /run/ada"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_host_must_not_have_the_name_of_this_one() {
    let Some(far) = Far::start("a_host_must_not_have_the_name_of_this_one") else {
        return;
    };
    let program = far.resource(ENDS).replace("\"far\"", "\"near\"");
    far.fails(
        &[],
        &program,
        "`near` is the name of this host, too: give it another one with `hostname`",
    );
    // One that is not said is asked for there.
    let _ = far.server.there("mkdir /run/bin; printf '#!/bin/sh\\necho two words\\n' > /run/bin/hostname; chmod 755 /run/bin/hostname; mount --bind /run/bin/hostname $(command -v hostname)");
    let program = far.resource(ENDS).replace("\thostname => \"far\",\n", "");
    let ran = far.once(&[], &program);
    assert!(
        ran.stderr.contains("`two words` is not a host name"),
        "{}",
        ran.stderr
    );
    far.deploy(SAYS);
    let _ = far
        .server
        .there("printf '#!/bin/sh\\necho asked\\n' > /run/bin/hostname");
    assert_eq!(far.once(&[], &program).code, 0);
    becomes(&far.cluster.place.path("asked.says"), "joined");
}

#[test]
fn a_store_that_wants_certificates_gets_those_of_the_other_host() {
    let test = "a_store_that_wants_certificates_gets_those_of_the_other_host";
    let etcd = || EtcdCluster::start_with_tls(1, EtcdCluster::certificates(&["near", "far"]));
    let Some(far) = Far::start_with(test, etcd, "") else {
        return;
    };
    far.deploy(SAYS);
    let ran = far.once(&[], &far.resource(ENDS));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for said in [
        "what this host shows is not given away",
        "a certificate in /etc/setpoint/remote/cert.pem",
        "the key of its certificate in /etc/setpoint/remote/key.pem",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    let there = far.directory();
    assert_eq!(far.server.there(&format!("ls {there}")), "ca.pem\nsetpoint");
    let own = far.cluster.etcd.directory().display().to_string();
    let _ = far.server.there(&format!(
        "mkdir -p -m 700 /etc/setpoint/remote && cp {own}/far.pem /etc/setpoint/remote/cert.pem && cp {own}/far.key /etc/setpoint/remote/key.pem"
    ));
    let ran = far.once(&[], &far.resource(ENDS));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    becomes(&far.cluster.place.path("far.says"), "joined");
}

impl Cluster {
    /// Of this etcd.
    fn of(etcd: EtcdCluster) -> Cluster {
        Cluster {
            etcd,
            place: setpoint_testing::Hermetic::new(),
        }
    }
}
