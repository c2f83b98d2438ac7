//! Jobs of an administrator beyond those of the page about every day, each on a machine of its own: right at the first run, the same again,
//! and refused with a reason where something is wrong.

use setpoint_testing::place::{Place, shell};
use setpoint_testing::{Finished, Hermetic};

use crate::packages::REPOSITORY;

/// Packages with services.
const PACKAGES: &str = include_str!("../../../testing/fixtures/web-host-packages.sh");

/// A server's own check of its configuration, and one that is broken.
const CHECK: &str = "printf '#!/bin/sh\\nfor file in \"$1\"/*.conf; do if grep -q broken \"$file\"; then echo \"$file: broken\" >&2; exit 1; fi; done\\n' \
    > /usr/sbin/nginx-check; chmod 755 /usr/sbin/nginx-check";

/// An application with two releases in its repository, and its service.
const APPLICATION: &str = "git init -q /srv/work; cd /srv/work; git config user.email a@example.org; git config user.name a\n\
    for version in v1 v2; do echo $version > version; git add version; git commit -q -m $version; git tag $version; done\n\
    git clone -q --bare /srv/work /srv/app.git\n\
    printf '[Service]\\nExecStart=/bin/sh -c \"cp /opt/app/current/version /run/app.version; exec sleep infinity\"\\n' \
    > /etc/systemd/system/app.service; systemctl daemon-reload";

/// Runs a program once as this host.
fn once(place: &Hermetic, host: &str, program: &str, further: &[&str]) -> Finished {
    let main = place.write("main.mcl", program).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let mut arguments = vec![
        "run",
        "--once",
        "--no-raise-limits",
        "--hostname",
        host,
        "--state-dir",
        &prefix,
    ];
    arguments.extend(further);
    arguments.push(&main);
    place.run(env!("CARGO_BIN_EXE_setpoint"), &arguments)
}

/// Runs a program once, which must succeed, and once more, which must find nothing wrong.
#[track_caller]
fn right(place: &Hermetic, program: &str) {
    right_on(place, "host.example", program);
}

#[track_caller]
fn right_on(place: &Hermetic, host: &str, program: &str) {
    let first = once(place, host, program, &[]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let again = once(place, host, program, &[]);
    assert!(
        again.code == 0
            && again
                .stderr
                .lines()
                .last()
                .is_some_and(crate::end_to_end::is_unchanged),
        "again: {}",
        again.stderr
    );
}

/// Runs a program once, which must fail and say this.
#[track_caller]
fn refused(place: &Hermetic, program: &str, expected: &[&str]) {
    let finished = once(place, "host.example", program, &[]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    for expected in expected {
        assert!(
            finished.stderr.contains(expected),
            "no {expected:?} in {}",
            finished.stderr
        );
    }
}

#[test]
fn each_job_is_done_at_the_first_run() {
    Place::machine("jobs::each_job_is_done_at_the_first_run")
        .needing(&["apt-get", "dpkg-deb", "useradd", "git"])
        .run(|| {
            shell(&format!("{REPOSITORY}{PACKAGES}"));
            sites_with_tls();
            accounts_from_a_list();
            a_release_and_the_way_back();
            roles_of_three_hosts();
            a_secret();
            a_machine_that_was_made_by_hand();
        });
}

fn sites_with_tls() {
    let program = include_str!("jobs/sites.mcl");
    let place = Hermetic::new();
    shell(CHECK);
    right(&place, program);
    assert_eq!(
        shell(
            "ls /etc/nginx/conf.d; stat -c %a /etc/nginx/tls /etc/nginx/tls/a.example.org.key; systemctl is-active nginx"
        ),
        "a.example.org.conf\nb.example.org.conf\nc.example.org.conf\n700\n600\nactive"
    );
    // A configuration that the server would refuse does not take the place of the old one.
    let broken = program.replace("listen %d ssl", "broken listen %d ssl");
    refused(
        &place,
        &broken,
        &["b.example.org.conf: broken", "failed: ", "/usr/sbin/nginx-check"],
    );
    assert_eq!(shell("grep -l broken /etc/nginx/conf.d/* || true"), "");
    // A site that leaves the table goes.
    let fewer = program.replace("\t\"c.example.org\" => 8443,\n", "");
    assert_ne!(fewer, program);
    right(&place, &fewer);
    assert_eq!(
        shell("ls /etc/nginx/conf.d"),
        "a.example.org.conf\nb.example.org.conf"
    );
}

fn accounts_from_a_list() {
    let program = include_str!("jobs/users.mcl");
    let place = Hermetic::new();
    let people = |gone: usize| {
        let person = |number: usize| {
            let left = number < gone;
            format!(
                "{{\"name\": \"person{number}\", \"key\": \"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\", \"left\": {left}}}"
            )
        };
        let list: Vec<String> = (0..20).map(person).collect();
        std::fs::write("/root/people.json", format!("[{}]", list.join(", "))).expect("root writes there");
    };
    people(0);
    right(&place, program);
    assert_eq!(
        shell("ls -d /home/person* | wc -l; wc -l < ~person7/.ssh/authorized_keys"),
        "20\n1"
    );
    people(3);
    right(&place, program);
    assert_eq!(
        shell("grep -c ^person /etc/passwd; ls -d /home/person* | wc -l"),
        "17\n17"
    );
    std::fs::write("/root/people.json", "[{\"name\": \"x\"}]").expect("root writes there");
    refused(&place, program, &["people.json", "key"]);
}

fn a_release_and_the_way_back() {
    let program = include_str!("jobs/release.mcl");
    let place = Hermetic::new();
    shell(APPLICATION);
    for tag in ["v1", "v2", "v1"] {
        right(&place, &program.replace("TAG", tag));
        shell(&format!(
            "while ! grep -q {tag} /run/app.version; do sleep 0.05; done"
        ));
        assert_eq!(shell("readlink /opt/app/current"), format!("/opt/app/{tag}"));
    }
    // A release that is not there leaves the old one running.
    refused(
        &place,
        &program.replace("TAG", "v9"),
        &["Remote branch v9 not found"],
    );
    assert_eq!(
        shell("readlink /opt/app/current; cat /run/app.version; systemctl is-active app"),
        "/opt/app/v1\nv1\nactive"
    );
}

fn roles_of_three_hosts() {
    let program = include_str!("jobs/roles.mcl");
    for (host, expected) in [
        ("db1", "database: 10.0.0.12"),
        ("web1", "web: 10.0.0.11 10.0.0.12"),
    ] {
        right_on(&Hermetic::new(), host, program);
        assert_eq!(shell("cat /etc/role"), expected);
    }
    refused(&Hermetic::new(), program, &["E0301", "main.mcl:10"]);
}

fn a_secret() {
    let program = include_str!("jobs/secret.mcl");
    let place = Hermetic::new();
    right(&place, program);
    std::fs::write("/root/password", "hunter2\n").expect("root writes there");
    let finished = once(&place, "host.example", program, &["-v"]);
    assert!(
        finished.code == 0 && !finished.stderr.contains("hunter2") && finished.stderr.contains("(sensitive)"),
        "{}",
        finished.stderr
    );
    assert_eq!(
        shell("cat /etc/app.conf; stat -c %a /etc/app.conf"),
        "password = hunter2\n600"
    );
}

fn a_machine_that_was_made_by_hand() {
    shell(
        "printf 'made by hand\\n' > /etc/motd; chmod 644 /etc/motd; useradd -M -s /bin/sh deploy; usermod -aG www-data deploy",
    );
    let program = include_str!("jobs/adopted.mcl");
    let place = Hermetic::new();
    let finished = once(&place, "host.example", program, &["--noop"]);
    assert!(finished.stderr.contains("3 unchanged"), "{}", finished.stderr);
}
