//! What a host may do in the store: what is its own, and nothing else.

use setpoint_host::files::AbsolutePath;
use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::{Finished, Hermetic, Running};
use setpoint_world::{
    EtcdOptions, EtcdStore, Key, Operation, Selection, Store, StoreError, TlsFiles, Transaction,
};

use super::BINARY;
use crate::several_hosts::{Host, becomes, eventually};

/// A cluster in which everybody shows a certificate.
struct Certified {
    etcd: EtcdCluster,
    place: Hermetic,
}

impl Certified {
    fn of(names: &[&str]) -> Certified {
        Certified {
            etcd: EtcdCluster::start_with_tls(3, EtcdCluster::certificates(names)),
            place: Hermetic::new(),
        }
    }

    /// A command of whoever has this certificate.
    fn command(&self, name: &str, command: &str) -> std::process::Command {
        let file = |name: String| self.etcd.directory().join(name);
        let mut all = self.place.command(BINARY);
        all.args([command, "--etcd-endpoints", &self.etcd.endpoints().join(",")]);
        all.arg("--etcd-ca").arg(file("ca.pem".to_owned()));
        all.arg("--etcd-cert").arg(file(format!("{name}.pem")));
        all.arg("--etcd-key").arg(file(format!("{name}.key")));
        all
    }

    fn run(&self, name: &str, command: &str, arguments: &[&str]) -> Finished {
        let output = self.command(name, command).args(arguments).output();
        let output = output.expect("it can be started");
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn rights(&self, arguments: &[&str]) -> Finished {
        self.run("server", "rights", arguments)
    }

    /// A host that runs what is deployed.
    fn member(&self, host: &str) -> Host {
        let mut command = self.command(host, "run");
        command.args(["--no-raise-limits", "--json", "--hostname", host, "--state-dir"]);
        command
            .arg(self.place.path(&format!("prefix-{host}")))
            .arg("empty");
        Host::of_running(Running::start(command))
    }

    fn deploy(&self, name: &str, program: &str) -> Finished {
        let root = self.place.path("").display().to_string();
        let program = self.place.write("main.mcl", program.replace("PLACE/", &root));
        self.run(name, "deploy", &["--no-git", &program.display().to_string()])
    }

    /// Has etcd ask for users; who has the store's own certificate may everything.
    fn ask_for_users(&self) {
        for arguments in [
            &["role", "add", "root"][..],
            &["user", "add", "root", "--no-password"],
            &["user", "grant-role", "root", "root"],
            &["user", "add", "server", "--no-password"],
            &["user", "grant-role", "server", "root"],
            &["auth", "enable"],
        ] {
            self.etcd.control(arguments);
        }
    }

    /// The store as somebody sees it who has stolen the key of a host.
    fn stolen(&self, host: &str) -> EtcdStore {
        let file =
            |name: String| AbsolutePath::new(self.etcd.directory().join(name)).expect("places are absolute");
        let tls = TlsFiles {
            authority: Some(file("ca.pem".to_owned())),
            identity: Some((file(format!("{host}.pem")), file(format!("{host}.key")))),
        };
        let options = EtcdOptions {
            endpoints: self.etcd.endpoints(),
            namespace: "/setpoint".to_owned(),
            login: None,
            tls: Some(tls),
            ssh: None,
        };
        EtcdStore::new(options).expect("the endpoints are right")
    }

    /// etcd's role of a host, as etcd shows it.
    fn role_of(&self, host: &str) -> String {
        self.etcd
            .control(&["role", "get", &format!("setpoint:host:{host}")])
    }

    fn keys(&self) -> Vec<String> {
        let keys = self.etcd.control(&["get", "--prefix", "/", "--keys-only"]);
        let keys = keys.lines().filter_map(|key| key.strip_prefix("/setpoint"));
        keys.map(str::to_owned).collect()
    }
}

/// Uses everything that hosts share.
const ALL: &str = "\
import \"fmt\"
import \"world\"
import \"world/collect\"

kv \"own\" {
	value => \"of ${hostname}\",
	mapped => true,
}
schedule \"leader\" {
	# Whoever comes first: the first by name.
	strategy => \"alpha\",
}
file \"PLACE/${hostname}-for-all\" {
	state => \"exists\",
	content => sensitive(\"swordfish\"),
	Meta:hidden => true,
	Meta:export => [\"*\",],
}
file \"PLACE/${hostname}-for-db\" {
	state => \"exists\",
	content => \"for db\",
	Meta:hidden => true,
	Meta:export => [\"db\",],
}
collect file collect.res(\"file\") {
	state => \"exists\",
}
file \"PLACE/${hostname}.says\" {
	state => \"exists\",
	content => fmt.printf(\"%v %v\", world.kvlookup(\"own\"), world.schedule(\"leader\")),
}
";

#[test]
fn a_stolen_key_of_a_host_reaches_only_what_the_host_uses() {
    if !has_etcd("a_stolen_key_of_a_host_reaches_only_what_the_host_uses") {
        return;
    }
    let cluster = Certified::of(&["web", "db", "ada", "eve"]);
    rights_are_granted_and_listed(&cluster);
    let hosts = hosts_share_everything_with_their_rights(&cluster);
    the_key_of_web_reaches_only_its_own(&cluster);
    only_who_has_rights_uses_them_and_only_root_grants_them(&cluster);
    eventually("the host has put back what the thief took away", || {
        let keys = cluster.keys();
        let has = |wanted: &str| keys.iter().any(|key| key.starts_with(wanted));
        has("/host-strings/web/own") && has("/members/web")
    });
    a_host_without_its_rights_can_do_nothing(&cluster);
    for host in hosts {
        host.stop();
    }
}

fn rights_are_granted_and_listed(cluster: &Certified) {
    let granted = cluster.rights(&["grant", "web"]);
    assert_eq!(granted.code, 0, "{}", granted.stderr);
    for arguments in [&["grant", "db", "--decides"][..], &["grant", "--deploys", "ada"]] {
        assert_eq!(cluster.rights(arguments).code, 0);
    }
    cluster.ask_for_users();
    let shown = cluster.rights(&[]);
    let wanted = "\
HOST  EXPORTS TO   DECIDES  STRINGS FOR ALL
db    any host     yes      reads
web   any host     no       reads
ada may deploy
";
    assert_eq!(shown.stdout, wanted, "{}", shown.stderr);
    let again = cluster.rights(&["grant", "web"]);
    assert!(
        again.stderr.contains("all rights are as they shall be"),
        "{}",
        again.stderr
    );
}

fn hosts_share_everything_with_their_rights(cluster: &Certified) -> [Host; 2] {
    let refused = cluster.deploy("web", ALL);
    assert!(
        refused.code == 1 && refused.stderr.contains("its user has no right to that"),
        "{}",
        refused.stderr
    );
    let deployed = cluster.deploy("ada", ALL);
    assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    let mut hosts = ["web", "db"].map(|host| cluster.member(host));
    for host in ["web", "db"] {
        becomes(
            &cluster.place.path(&format!("{host}.says")),
            "{\"db\": \"of db\", \"web\": \"of web\"} [\"db\"]",
        );
    }
    becomes(&cluster.place.path("web-for-db"), "for db");
    becomes(&cluster.place.path("web-for-all"), "swordfish");
    becomes(&cluster.place.path("db-for-all"), "swordfish");
    for host in &mut hosts {
        host.event("all is right", |event| event["event"] == "converged");
    }
    let members = cluster.run("ada", "members", &[]);
    assert!(
        members.stdout.contains("web") && members.stdout.contains("db"),
        "{}",
        members.stdout
    );
    hosts
}

/// Tries all keys that there are, and some that are not there yet.
fn the_key_of_web_reaches_only_its_own(cluster: &Certified) {
    let mut keys = cluster.keys();
    assert!(
        keys.iter().any(|key| key.starts_with("/exported/db/web/file/")),
        "{keys:?}"
    );
    keys.extend(
        [
            "/strings/new",
            "/host-strings/db/new",
            "/host-strings/web/new",
            "/host-strings/webmaster/new",
            "/exported/web/db/file/new",
            "/exported/db/web/file/new",
            "/exported/*/db/file/new",
            "/exported/*/web/file/new",
            "/exporting/db/*",
            "/keys/web2",
            "/members/web2",
            "/last-seen/db",
            "/deploy/9/payload",
            "/storage/{sha256}new",
            "/fs/deploy/new",
            "/clearing",
            "/scheduler/election/1",
            "/scheduler/schedule/leader",
            "/scheduler/hostname/db/other",
            "/scheduler/hostname/web/other",
            "/new",
        ]
        .map(str::to_owned),
    );
    let thief = cluster.stolen("web");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("there are threads").block_on(async {
        for key in &keys {
            let key = Key::new(key.as_str()).expect("it is not empty");
            let put = thief.transact(Transaction::of([Operation::put(key.clone(), *b"stolen")]));
            let put = may(put.await.map(drop));
            assert_eq!(put, web_owns(key.as_str()), "set {key}");
            let read = may(thief.read(&[key.clone().into()]).await.map(drop));
            assert_eq!(read, web_may_read(key.as_str()), "read {key}");
            let delete = thief.transact(Transaction::of([Operation::Delete(key.clone().into())]));
            assert_eq!(
                may(delete.await.map(drop)),
                web_owns(key.as_str()),
                "delete {key}"
            );
        }
        for all in ["/", "/exported/", "/exported/db/", "/members/", "/exporting/"] {
            assert!(
                !may(thief.read(&[Selection::prefix(all)]).await.map(drop)),
                "read {all}"
            );
            let delete = Operation::Delete(Selection::prefix(all));
            assert!(
                !may(thief.transact(Transaction::of([delete])).await.map(drop)),
                "delete {all}"
            );
        }
    });
}

fn web_owns(key: &str) -> bool {
    let parts: Vec<&str> = key.split('/').collect();
    match parts.as_slice() {
        ["", "exported", _, host, ..]
        | [
            "",
            "exporting" | "host-strings" | "keys" | "members" | "last-seen",
            host,
            ..,
        ]
        | ["", "scheduler", "hostname", host, ..] => *host == "web",
        _ => false,
    }
}

fn web_may_read(key: &str) -> bool {
    let parts: Vec<&str> = key.split('/').collect();
    match parts.as_slice() {
        ["", "exported", to, from, ..] => ["*", "web"].contains(to) || *from == "web",
        ["", "exporting" | "members" | "last-seen", host, ..] => *host == "web",
        ["", first, ..] => !["clearing", "cleared", "new"].contains(first),
        _ => false,
    }
}

fn only_who_has_rights_uses_them_and_only_root_grants_them(cluster: &Certified) {
    let stranger = cluster.stolen("eve");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("there are threads").block_on(async {
        assert!(stranger.read(&[Selection::prefix("/strings/")]).await.is_err());
    });
    let refused = cluster.run("web", "rights", &["grant", "--deploys", "web"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("rights are given by etcd's user `root`"),
        "{}",
        refused.stderr
    );
}

fn a_host_without_its_rights_can_do_nothing(cluster: &Certified) {
    let revoked = cluster.rights(&["revoke", "web"]);
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    let shown = cluster.rights(&[]);
    assert!(!shown.stdout.contains("web"), "{}", shown.stdout);
    let out = cluster.run("web", "members", &[]);
    assert!(
        out.code == 1 && out.stderr.contains("its user has no right"),
        "{}",
        out.stderr
    );
}

/// Whether the store allowed something. Any other refusal is a failure of the test.
fn may(done: Result<(), StoreError>) -> bool {
    match done {
        Ok(()) => true,
        Err(StoreError::Denied { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn rights_are_granted_changed_and_revoked() {
    if !has_etcd("rights_are_granted_changed_and_revoked") {
        return;
    }
    let cluster = Certified::of(&[]);
    assert_eq!(cluster.rights(&[]).stdout, "nobody was given any rights\n");
    wrong_usage_is_refused(&cluster);
    noop_only_shows_the_changes(&cluster);
    earlier_hosts_export_to_later_ones(&cluster);
    a_right_that_was_granted_by_hand_is_taken_back(&cluster);
    revoked_hosts_are_in_no_role(&cluster);
    // Another cluster in the same etcd has its own.
    let other = cluster.rights(&["--etcd-namespace", "/other"]);
    assert_eq!(other.stdout, "nobody was given any rights\n");
}

const GRANTED: &str = "\
HOST   EXPORTS TO   DECIDES  STRINGS FOR ALL
many1  all alone    no       reads
web1   any host     no       sets
web2   any host     no       sets
";

fn wrong_usage_is_refused(cluster: &Certified) {
    for (arguments, code, said) in [
        (&["grnat", "web"][..], 64, "did you mean `grant`?"),
        (&["grant"], 64, "`grant` needs a name"),
        (&["grant", "a/b"], 64, "`a/b` is no name of a host"),
        (
            &["revoke", "--decides", "web"],
            64,
            "`--decides` means nothing without `grant`",
        ),
        (&["--decides"], 64, "`--decides` means nothing without `grant`"),
        (&["--noop"], 64, "`--noop` means nothing"),
        (
            &["grant", "--deploys", "--decides", "web"],
            64,
            "cannot be used with",
        ),
        (
            &["revoke", "web"],
            1,
            "web has no rights that could be taken away",
        ),
    ] {
        let ran = cluster.rights(arguments);
        assert!(
            ran.code == code && ran.stderr.contains(said),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

fn noop_only_shows_the_changes(cluster: &Certified) {
    let plan = cluster.rights(&["grant", "--noop", "web1"]);
    assert!(
        plan.stderr
            .contains("web1 may read and write all below /exported/*/web1/")
            && plan.stderr.contains("web1 is a user of etcd, without a password")
            && plan.stderr.contains("rights would be changed"),
        "{}",
        plan.stderr
    );
    assert_eq!(cluster.rights(&[]).stdout, "nobody was given any rights\n");
}

fn earlier_hosts_export_to_later_ones(cluster: &Certified) {
    assert_eq!(
        cluster
            .rights(&["grant", "web1", "many1", "--exports-to-all-alone"])
            .code,
        0
    );
    assert_eq!(cluster.rights(&["grant", "web1", "web2", "--strings"]).code, 0);
    assert_eq!(cluster.rights(&[]).stdout, GRANTED);
    assert!(cluster.role_of("web1").contains("/setpoint/exported/web2/web1/"));
    assert!(cluster.role_of("web1").contains("/setpoint/exported/many1/web1/"));
    assert!(
        !cluster
            .role_of("many1")
            .contains("/setpoint/exported/web1/many1/")
    );
}

fn a_right_that_was_granted_by_hand_is_taken_back(cluster: &Certified) {
    cluster.etcd.control(&[
        "role",
        "grant-permission",
        "setpoint:host:web2",
        "readwrite",
        "/setpoint/strings/",
        "--prefix=true",
    ]);
    assert!(
        cluster
            .rights(&[])
            .stdout
            .contains("web2   any host     no       sets  (not all that")
    );
    let mended = cluster.rights(&["grant", "web2"]);
    assert!(
        mended.stderr.contains("web2 may not use all below /strings/")
            && mended.stderr.contains("1 right changed"),
        "{}",
        mended.stderr
    );
    assert_eq!(cluster.rights(&[]).stdout, GRANTED);
}

fn revoked_hosts_are_in_no_role(cluster: &Certified) {
    let revoke = cluster.rights(&["revoke", "web9"]);
    assert!(
        revoke.code == 1 && revoke.stderr.contains("did you mean `web1`?"),
        "{}",
        revoke.stderr
    );
    assert_eq!(cluster.rights(&["revoke", "web1", "many1"]).code, 0);
    assert!(
        !cluster.role_of("web2").contains("web1"),
        "{}",
        cluster.role_of("web2")
    );
}
