//! Hosts that reach their etcd through an SSH server.

use std::process::Command;
use std::time::{Duration, Instant};

use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::sshd::{SshServer, add_line, has_sshd, make_key};
use setpoint_testing::{Finished, Hermetic, Running};

use super::{BINARY, Cluster};

/// An etcd and an SSH server, and a home in which nothing of SSH is yet.
struct Behind {
    etcd: EtcdCluster,
    server: SshServer,
    place: Hermetic,
}

impl Behind {
    /// With host keys of these types.
    fn start(test: &str, host_keys: &[&str]) -> Option<Behind> {
        (has_etcd(test) && has_sshd(test)).then(|| Behind {
            etcd: EtcdCluster::start(1),
            server: SshServer::start(host_keys, ""),
            place: Hermetic::new(),
        })
    }

    /// Asks who the members are, with these options.
    fn members(&self, further: &[&str]) -> Finished {
        let mut all = vec!["members", "--etcd-endpoints"];
        let endpoints = self.etcd.endpoints().join(",");
        all.push(&endpoints);
        all.extend(further);
        self.place.run(BINARY, &all)
    }

    /// The same, with the key that the server lets in.
    fn members_with_key(&self, further: &[&str]) -> Finished {
        let key = self.server.user_key().display().to_string();
        let url = self.server.url();
        let all = [&["--ssh-url", &url, "--ssh-id", &key], further].concat();
        self.members(&all)
    }

    fn knows(&self, line: &str) {
        add_line(&self.place.home().join(".ssh/known_hosts"), line);
    }

    fn forgets(&self) {
        let _ = std::fs::remove_file(self.place.home().join(".ssh/known_hosts"));
    }

    /// Puts a key pair where they are looked for.
    fn has_key(&self, name: &str, from: &std::path::Path) {
        let directory = self.place.home().join(".ssh");
        std::fs::create_dir_all(&directory).expect("the place is writable");
        for end in ["", ".pub"] {
            let from = format!("{}{end}", from.display());
            std::fs::copy(from, directory.join(format!("{name}{end}"))).expect("the place is writable");
        }
    }
}

/// The command has reached the store; no host is there.
#[track_caller]
fn reached(finished: &Finished) {
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(finished.stderr.contains("no host is there"), "{finished:?}");
}

/// The command has failed, and says this.
#[track_caller]
fn refused(finished: &Finished, said: &[&str]) {
    assert_eq!(finished.code, 1, "{finished:?}");
    for said in said {
        assert!(finished.stderr.contains(said), "{said}\n{}", finished.stderr);
    }
}

#[test]
fn an_ssh_server_that_is_not_known_is_refused_and_what_to_do_is_told() {
    let test = "an_ssh_server_that_is_not_known_is_refused_and_what_to_do_is_told";
    let Some(behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    let shown = format!("ssh-ed25519 {}", behind.server.fingerprint("ed25519"));
    let keyscan = format!("`ssh-keyscan -p {} 127.0.0.1`", behind.server.port());
    refused(
        &behind.members_with_key(&[]),
        &[&shown, "is not known", &keyscan, "$ROOT/home/.ssh/known_hosts"],
    );
    // What it tells to do helps.
    let scanned = Command::new("ssh-keyscan")
        .args(["-p", &behind.server.port().to_string(), "127.0.0.1"])
        .output()
        .expect("it comes with the client");
    behind.knows(&String::from_utf8_lossy(&scanned.stdout));
    reached(&behind.members_with_key(&[]));
}

#[test]
fn an_ssh_server_with_another_key_than_before_is_refused() {
    let test = "an_ssh_server_with_another_key_than_before_is_refused";
    let Some(behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    let other = SshServer::start(&["ed25519", "rsa"], "");
    let at = |line: String| line.replace(&other.port().to_string(), &behind.server.port().to_string());
    behind.knows("# a comment");
    behind.knows(&at(other.known_hosts_line("ed25519")));
    let fingerprints = [behind.server.fingerprint("ed25519"), other.fingerprint("ed25519")];
    let forget = format!("`ssh-keygen -R '[127.0.0.1]:{}'`", behind.server.port());
    let said = [
        &*fingerprints[0],
        &fingerprints[1],
        "but is known by",
        "known_hosts, line 2",
        &forget,
    ];
    refused(&behind.members_with_key(&[]), &said);
    behind.forgets();
    behind.knows(&at(other.known_hosts_line("rsa")));
    refused(
        &behind.members_with_key(&[]),
        &["but is known by one of another type, ssh-rsa SHA256:"],
    );
    behind.forgets();
    let given = other.host_key("ed25519");
    refused(
        &behind.members_with_key(&["--ssh-hostkey", &given]),
        &[&fingerprints[0], &fingerprints[1], "and not the given"],
    );
    // A key that was revoked is refused, whoever gives it.
    behind.knows(&format!(
        "@revoked * ssh-ed25519 {}",
        behind.server.host_key("ed25519")
    ));
    let given = behind.server.host_key("ed25519");
    refused(
        &behind.members_with_key(&["--ssh-hostkey", &given]),
        &[&fingerprints[0], "which is revoked"],
    );
}

#[test]
fn the_key_of_an_ssh_server_is_given_by_option_by_url_or_by_known_hosts() {
    let test = "the_key_of_an_ssh_server_is_given_by_option_by_url_or_by_known_hosts";
    let Some(behind) = Behind::start(test, &["ed25519", "rsa"]) else {
        return;
    };
    for sort in ["ed25519", "rsa"] {
        let key = behind.server.host_key(sort);
        reached(&behind.members_with_key(&["--ssh-hostkey", &key]));
        let file = behind.server.user_key().display().to_string();
        for key in [
            key.clone(),
            key.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
        ] {
            let url = format!("{}/?hostkey={key}", behind.server.url());
            reached(&behind.members(&["--ssh-url", &url, "--ssh-id", &file]));
        }
        // Known by this one alone, though it has others that would go before.
        behind.forgets();
        behind.knows(&behind.server.known_hosts_line(sort));
        reached(&behind.members_with_key(&[]));
        let hashed = Command::new("ssh-keygen")
            .args(["-q", "-H", "-f"])
            .arg(behind.place.home().join(".ssh/known_hosts"))
            .output()
            .expect("it comes with the client");
        assert!(hashed.status.success(), "{hashed:?}");
        reached(&behind.members_with_key(&[]));
    }
}

#[test]
fn an_ssh_server_that_has_only_rsa_is_as_good_and_so_are_rsa_keys_of_users() {
    let test = "an_ssh_server_that_has_only_rsa_is_as_good_and_so_are_rsa_keys_of_users";
    let Some(behind) = Behind::start(test, &["rsa"]) else {
        return;
    };
    behind.knows(&behind.server.known_hosts_line("rsa"));
    let key = behind.place.path("rsa_key");
    make_key(&key, "rsa", "");
    let public = std::fs::read_to_string(behind.place.path("rsa_key.pub")).expect("it was made");
    add_line(
        &behind.server.user_key().with_file_name("authorized_keys"),
        &public,
    );
    reached(&behind.members(&[
        "--ssh-url",
        &behind.server.url(),
        "--ssh-id",
        &key.display().to_string(),
    ]));
}

#[test]
fn keys_are_found_at_home_and_those_with_passphrases_are_passed_over_with_a_word() {
    let test = "keys_are_found_at_home_and_those_with_passphrases_are_passed_over_with_a_word";
    let Some(behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    behind.knows(&behind.server.known_hosts_line("ed25519"));
    let url = behind.server.url();
    refused(
        &behind.members(&["--ssh-url", &url]),
        &["does not let `", "there is no private key to show"],
    );
    let locked = behind.place.path("locked");
    make_key(&locked, "ed25519", "a passphrase");
    behind.has_key("id_a_locked", &locked);
    let passed_over = "id_a_locked is encrypted, and there is no agent that could use it";
    let finished = behind.members(&["--ssh-url", &url]);
    refused(&finished, &[passed_over]);
    behind.has_key("id_ed25519", &behind.server.user_key());
    // One without its public half beside it does not count.
    std::fs::write(behind.place.home().join(".ssh/id_other"), "no key").expect("the place is writable");
    let finished = behind.members(&["--ssh-url", &url]);
    reached(&finished);
    assert!(finished.stderr.contains(passed_over), "{}", finished.stderr);
    assert!(!finished.stderr.contains("id_other"), "{}", finished.stderr);
    // One that others can read is none either.
    let own = behind.place.home().join(".ssh/id_ed25519");
    let chmod = Command::new("chmod").arg("644").arg(&own).status();
    assert!(chmod.expect("there is a `chmod`").success());
    refused(
        &behind.members(&["--ssh-url", &url]),
        &["id_ed25519 cannot be used: others can read it, its mode is 0644: `chmod 600` it"],
    );
    let locked = locked.display().to_string();
    refused(
        &behind.members(&["--ssh-url", &url, "--ssh-id", &locked]),
        &["is encrypted: load it into an agent"],
    );
    for (file, said) in [
        (behind.place.path("none"), "there is no such file"),
        (behind.place.write("text", "text"), "it is no private key"),
        (
            behind.server.user_key().with_extension("pub"),
            "it is the public half of a key",
        ),
    ] {
        let _ = Command::new("chmod").arg("600").arg(&file).output();
        let file = file.display().to_string();
        refused(&behind.members(&["--ssh-url", &url, "--ssh-id", &file]), &[said]);
    }
}

#[test]
fn an_agent_signs_for_keys_that_are_nowhere_else() {
    let test = "an_agent_signs_for_keys_that_are_nowhere_else";
    let Some(behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    behind.knows(&behind.server.known_hosts_line("ed25519"));
    let socket = behind.place.path("agent");
    let mut agent = Command::new("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket);
    let mut agent = Running::start(agent);
    agent.wait_for("the agent", |line| line.contains("SSH_AUTH_SOCK"));
    let members = || {
        let mut command = behind.place.command(BINARY);
        command.env("SSH_AUTH_SOCK", &socket);
        command.args(["members", "--ssh-url", &behind.server.url(), "--etcd-endpoints"]);
        let output = command
            .arg(behind.etcd.endpoints().join(","))
            .output()
            .expect("it can be started");
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    };
    let add = |key: &std::path::Path| {
        let added = Command::new("ssh-add")
            .env("SSH_AUTH_SOCK", &socket)
            .arg(key)
            .output();
        assert!(
            added.as_ref().is_ok_and(|added| added.status.success()),
            "{added:?}"
        );
    };
    refused(&members(), &["nor at the agent"]);
    let stranger = behind.place.path("stranger");
    make_key(&stranger, "rsa", "");
    add(&stranger);
    refused(&members(), &["the agent's ssh-rsa SHA256:", "(a test)"]);
    add(&behind.server.user_key());
    reached(&members());
}

#[test]
fn a_key_that_the_server_does_not_take_is_told_and_nothing_secret_is() {
    let test = "a_key_that_the_server_does_not_take_is_told_and_nothing_secret_is";
    let Some(behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    behind.knows(&behind.server.known_hosts_line("ed25519"));
    let stranger = behind.place.path("stranger");
    make_key(&stranger, "ed25519", "");
    let shown = Command::new("ssh-keygen").arg("-lf").arg(&stranger).output();
    let shown = String::from_utf8_lossy(&shown.expect("it was made").stdout).into_owned();
    let fingerprint = shown.split(' ').nth(1).expect("it follows the length");
    let finished = behind.members(&[
        "--ssh-url",
        &behind.server.url(),
        "--ssh-id",
        &stranger.display().to_string(),
    ]);
    refused(
        &finished,
        &[
            "it does not take the key",
            "stranger",
            fingerprint,
            "`~/.ssh/authorized_keys`",
        ],
    );
    let secret = std::fs::read_to_string(&stranger).expect("it was made");
    let mut lines = secret.lines().filter(|line| !line.starts_with("---"));
    assert!(
        lines.all(|line| !finished.stderr.contains(&line[..16])),
        "{}",
        finished.stderr
    );
}

#[test]
fn what_else_an_ssh_server_wants_is_told() {
    let test = "what_else_an_ssh_server_wants_is_told";
    let Some(mut behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    for (configuration, said) in [
        (
            "PubkeyAuthentication no\nPasswordAuthentication yes\n",
            "it takes no keys, only password",
        ),
        (
            "PasswordAuthentication yes\nAuthenticationMethods publickey,password\n",
            "it wants more than the right key (",
        ),
    ] {
        behind.server = SshServer::start(&["ed25519"], configuration);
        behind.knows(&behind.server.known_hosts_line("ed25519"));
        refused(&behind.members_with_key(&[]), &[said]);
    }
    behind.server = SshServer::start(&["ed25519"], "MaxAuthTries 2\n");
    behind.knows(&behind.server.known_hosts_line("ed25519"));
    for name in ["id_a", "id_b", "id_c"] {
        let key = behind.place.path(name);
        make_key(&key, "ed25519", "");
        behind.has_key(name, &key);
    }
    behind.has_key("id_d", &behind.server.user_key());
    refused(
        &behind.members(&["--ssh-url", &behind.server.url()]),
        &[
            "it has closed the connection after 2 keys",
            "too many: name the right one",
        ],
    );
    reached(&behind.members_with_key(&[]));
}

#[test]
fn files_of_known_hosts_that_cannot_be_used_are_told() {
    let test = "files_of_known_hosts_that_cannot_be_used_are_told";
    let Some(behind) = Behind::start(test, &["ed25519"]) else {
        return;
    };
    let file = behind.place.home().join(".ssh/known_hosts");
    std::fs::create_dir_all(&file).expect("the place is writable");
    refused(
        &behind.members_with_key(&[]),
        &[
            "the known hosts of SSH cannot be used: failed to ",
            "/.ssh/known_hosts",
        ],
    );
    std::fs::remove_dir(&file).expect("it is empty");
    let made = Command::new("mkfifo").arg(&file).status();
    assert!(made.expect("there is a `mkfifo`").success());
    refused(
        &behind.members_with_key(&[]),
        &["the known hosts of SSH cannot be used: failed to "],
    );
    std::fs::remove_file(&file).expect("it is there");
    // What is no text of known hosts names nobody.
    std::fs::write(&file, [0xff, 0, b'\n', b'|', 0xfe]).expect("the place is writable");
    refused(&behind.members_with_key(&[]), &["is not known"]);
}

#[test]
fn wrong_options_of_ssh_are_refused_before_anything_is_done() {
    let place = Hermetic::new();
    for (options, said) in [
        (
            &["--ssh-url", "me:hush@bastion"][..],
            "a password has no place in `--ssh-url`",
        ),
        (&["--ssh-url", "http://bastion"], "`http://` is not SSH"),
        (&["--ssh-url", "bastion:99999"], "`99999` is no port"),
        (
            &["--ssh-url", "bastion", "--ssh-hostkey", "SHA256:abc"],
            "a fingerprint is not the key",
        ),
        (
            &["--ssh-url", "bastion", "--ssh-hostkey", "abc"],
            "`--ssh-hostkey` cannot be used",
        ),
        (&["--ssh-hostkey", "abc"], "--ssh-url"),
        (&["--ssh-id", "abc"], "--ssh-url"),
        (
            &["--ssh-url", "bastion", "--etcd-endpoints", "http://A,http://b"],
            "the endpoint `http://A` of the store is given twice",
        ),
    ] {
        let all = [&["members", "--etcd-endpoints", "http://a"], options].concat();
        let finished = place.run(BINARY, &all);
        assert_eq!(finished.code, 64, "{finished:?}");
        assert!(finished.stderr.contains(said), "{said}\n{}", finished.stderr);
        assert!(!finished.stderr.contains("hush"), "{}", finished.stderr);
    }
    let finished = place.run(BINARY, &["members", "--ssh-url", "bastion"]);
    assert_eq!(finished.code, 64, "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("`--ssh-url` means nothing without `--etcd-endpoints`"),
        "{finished:?}"
    );
}

/// What is shared, written into a file.
const READS: &str = super::READS;

#[test]
fn a_host_behind_ssh_catches_up_after_its_way_was_cut_or_has_frozen() {
    let test = "a_host_behind_ssh_catches_up_after_its_way_was_cut_or_has_frozen";
    if !(has_etcd(test) && has_sshd(test)) {
        return;
    }
    let cluster = Cluster::start(1);
    let server = SshServer::start(&["ed25519"], "");
    let ssh = [
        "--ssh-url".to_owned(),
        server.url(),
        "--ssh-hostkey".to_owned(),
        server.host_key("ed25519"),
        "--ssh-id".to_owned(),
        server.user_key().display().to_string(),
    ];
    let mut further: Vec<&str> = ssh.iter().map(String::as_str).collect();
    further.push("--watch");
    let db = Running::start(cluster.command("db", READS, &further));
    let says = |value: &str| cluster.becomes("db.says", &format!("true {value} {{}}"));
    let put = |value: &str| {
        cluster
            .etcd
            .control(&["put", "/setpoint/strings/motto%2Fof all", value]);
    };
    put("one");
    says("one");
    server.signal_sessions("KILL");
    put("two");
    says("two");
    // What is frozen gives no sign of life, which takes a while to be sure of.
    server.signal_sessions("STOP");
    put("three");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(cluster.place.path("db.says"))
        .ok()
        .as_deref()
        != Some("true three {}")
    {
        assert!(Instant::now() < deadline, "it does not catch up");
        std::thread::sleep(Duration::from_millis(20));
    }
    // It ends through a way that is dead, and where no new one can be made.
    server.signal("STOP");
    server.signal_sessions("STOP");
    db.signal("TERM");
    let (status, errors) = db.finish();
    server.signal("CONT");
    assert_eq!(status.code(), Some(0), "{errors}");
}
