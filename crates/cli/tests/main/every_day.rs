//! The programs of the page about what is to be done every day, and the example of a web server's host, each on a machine of its own with
//! packages that are made on the spot: from nothing to done, again, and after somebody has changed something by hand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use setpoint_testing::{Hermetic, repository};

use crate::book::snippets_of;
use crate::end_to_end::{Engine, is_unchanged, run};
use crate::packages::REPOSITORY;
use setpoint_testing::place::{Place, shell};

/// Packages with services.
const PACKAGES: &str = include_str!("../../../testing/fixtures/web-host-packages.sh");

/// A section of the page.
struct Section {
    heading: &'static str,
    /// Shell commands before anything is done.
    prepare: &'static str,
    /// A shell command, and what it prints when all is done.
    done: (&'static str, &'static str),
}

const SECTIONS: &[Section] = &[
    Section {
        heading: "A web server",
        prepare: "true",
        done: (
            "systemctl is-active nginx; systemctl is-enabled nginx; cat /etc/nginx/conf.d/site.conf | head -1",
            "active\nenabled\nserver {",
        ),
    },
    Section {
        heading: "Users and their keys",
        prepare: "useradd mallory",
        done: (
            "id -nG ada; cut -d' ' -f1,3 ~grace/.ssh/authorized_keys; stat -c '%U %a' ~ada/.ssh/authorized_keys; stat -c %a /etc/sudoers.d/admins; id mallory 2>&1 | grep -c 'no such user'",
            "ada admins\nssh-ed25519 grace\nada 600\n440\n1",
        ),
    },
    Section {
        heading: "A nightly job",
        prepare: "mkdir -p /var/backups",
        done: (
            "systemctl is-active backup.timer; systemctl start backup.service; ls /var/backups/etc.tar",
            "active\n/var/backups/etc.tar",
        ),
    },
    Section {
        heading: "Kernel parameters",
        prepare: "true",
        done: (
            "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/all/rp_filter; cat /etc/sysctl.d/99-net.core.somaxconn.conf",
            "1\n1\nnet.core.somaxconn = 1024",
        ),
    },
    Section {
        heading: "An SSH server without passwords",
        prepare: "true",
        done: (
            "systemctl is-active ssh; grep -c no$ /etc/ssh/sshd_config.d/10-hardened.conf",
            "active\n4",
        ),
    },
    Section {
        heading: "A pinned version",
        prepare: "apt-get -q -y install app=1.4.1 > /dev/null; systemctl start app",
        done: ("cat /run/app.version; apt-mark showhold", "1.4.2\napp"),
    },
];

/// The program of a section of the page.
fn program(heading: &str) -> String {
    let root = repository();
    let page = root.join("docs/guide/every-day.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let line = text.lines().position(|line| line == format!("## {heading}"));
    let line = line.unwrap_or_else(|| panic!("the page has a section `{heading}`")) + 1;
    let programs = snippets_of(&root, &page).into_iter();
    let mut programs = programs.filter(|snippet| snippet.language == "mcl" && snippet.line > line);
    programs.next().expect("the section has a program").text
}

fn once(place: &Hermetic, path: &Path) -> String {
    let finished = run(
        place,
        &["--once", path.to_str().expect("the place has a plain name")],
    );
    assert_eq!(finished.code, 0, "{}: {}", path.display(), finished.stderr);
    finished.stderr
}

#[test]
fn each_section_does_what_it_says() {
    let page =
        std::fs::read_to_string(repository().join("docs/guide/every-day.md")).expect("the page is there");
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let all: Vec<&str> = SECTIONS.iter().map(|section| section.heading).collect();
    assert_eq!(headings.collect::<Vec<&str>>(), all);
    let test = "every_day::each_section_does_what_it_says";
    Place::machine(test)
        .needing(&["apt-get", "dpkg-deb", "useradd"])
        .run(|| {
            shell(&format!("{REPOSITORY}{PACKAGES}"));
            for Section {
                heading,
                prepare,
                done,
            } in SECTIONS
            {
                let place = Hermetic::new();
                shell(prepare);
                let path = place.write("main.mcl", program(heading));
                once(&place, &path);
                assert_eq!(shell(done.0), done.1, "{heading}");
                let again = once(&place, &path);
                assert!(
                    again.lines().last().is_some_and(is_unchanged),
                    "{heading}, again: {again}"
                );
            }
        });
}

/// What the web server answers for a site; nothing if it does not.
fn served(site: &str) -> String {
    let Ok(mut stream) = TcpStream::connect("127.0.0.1:8080") else {
        return String::new();
    };
    let mut answer = String::new();
    let asked = write!(stream, "GET /index.html HTTP/1.0\r\nHost: {site}\r\n\r\n");
    asked
        .and_then(|()| stream.read_to_string(&mut answer).map(drop))
        .unwrap_or_default();
    answer.rsplit("\r\n").next().unwrap_or_default().to_owned()
}

/// Waits until the site is served, and answers how long that took.
fn until_served(site: &str, content: &str) -> Duration {
    let begun = Instant::now();
    while served(site) != content {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{site} is not served: {}",
            served(site)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    begun.elapsed()
}

#[test]
fn a_whole_web_host_comes_up_from_nothing_and_is_kept_right() {
    let test = "every_day::a_whole_web_host_comes_up_from_nothing_and_is_kept_right";
    Place::machine(test)
        .needing(&["apt-get", "dpkg-deb", "useradd"])
        .run(|| {
            shell(&format!("{REPOSITORY}{PACKAGES}"));
            let place = Hermetic::new();
            let example = repository().join("examples/web-host/");
            let lines = std::fs::read_to_string(example.join("main.mcl"))
                .expect("the example is there")
                .lines()
                .count();
            assert!(lines < 60, "it is short: {lines} lines");
            let page = "<h1>www.example.org</h1>\n";
            let begun = Instant::now();
            let mut engine = Engine::start(&place, &[example.to_str().expect("a plain path")]);
            until_served("www.example.org", page);
            engine.event("all is right", |event| {
                assert_ne!(
                    event["event"], "backing off",
                    "nothing has to be tried again: {event}"
                );
                event["event"] == "converged"
            });
            eprintln!("from nothing to right: {:?}", begun.elapsed());
            assert_eq!(
                shell("systemctl is-active nginx web-report.timer; cat /proc/sys/net/core/somaxconn"),
                "active\nactive\n1024"
            );
            assert_eq!(
                shell("stat -c %U /srv/www/blog.example.org/index.html"),
                "webmaster"
            );
            for (what, drift) in [
                ("a service that is stopped", "systemctl stop nginx"),
                (
                    "a configuration that is overwritten",
                    "echo > /etc/nginx/new; mv /etc/nginx/new /etc/nginx/nginx.conf; systemctl reload nginx",
                ),
                ("a page that is removed", "rm /srv/www/www.example.org/index.html"),
                (
                    "a package that is removed",
                    "apt-get -q -y remove nginx > /dev/null 2>&1",
                ),
            ] {
                shell(drift);
                eprintln!(
                    "{what}: served again after {:?}",
                    until_served("www.example.org", page)
                );
            }
            engine.stop();
        });
}
