//! Strings, exports and candidates of a cluster, and what the store's own history says of them.

use setpoint_testing::etcd::has_etcd;

use super::{Cluster, READS, STANDS};
use crate::several_hosts::{Host, eventually};

#[test]
fn an_equal_value_is_written_once_and_a_deleted_one_is_not_there() {
    if !has_etcd("an_equal_value_is_written_once_and_a_deleted_one_is_not_there") {
        return;
    }
    let cluster = Cluster::start(1);
    let db = cluster.host("db", READS);
    let sets = "kv \"motto/of all\" {\n\tvalue => \"onward\",\n}\n";
    for host in ["a", "b", "a"] {
        assert_eq!(cluster.once(host, sets).code, 0);
    }
    cluster.becomes("db.says", "true onward {}");
    let motto = || -> Vec<String> {
        let history = cluster.history("/strings/motto");
        history.into_iter().map(|(_, value)| value).collect()
    };
    assert_eq!(motto(), ["onward"], "it was written once");
    assert_eq!(cluster.once("a", "kv \"motto/of all\" {}\n").code, 0);
    cluster.becomes("db.says", "false  {}");
    assert_eq!(cluster.once("b", "kv \"motto/of all\" {}\n").code, 0);
    assert_eq!(motto(), ["onward", ""], "it was deleted once");
    // Each of three hosts has one of its own, and takes back its own alone.
    let role = "kv \"role\" {\n\tvalue => \"of ${hostname}\",\n\tmapped => true,\n}\n";
    for host in ["a", "b", "c"] {
        assert_eq!(cluster.once(host, role).code, 0);
    }
    cluster.becomes(
        "db.says",
        "false  {\"a\": \"of a\", \"b\": \"of b\", \"c\": \"of c\"}",
    );
    assert_eq!(cluster.once("b", "kv \"role\" {\n\tmapped => true,\n}\n").code, 0);
    cluster.becomes("db.says", "false  {\"a\": \"of a\", \"c\": \"of c\"}");
    db.stop();
}

#[test]
fn what_two_export_under_one_name_is_collected_by_who_exports_it() {
    if !has_etcd("what_two_export_under_one_name_is_collected_by_who_exports_it") {
        return;
    }
    let cluster = Cluster::start(1);
    let exports = "file \"PLACE/a/b name\" {\n\tstate => \"exists\",\n\tcontent => \"of ${hostname}\",\n\tmode => \"0644\",\n\tMeta:hidden => true,\n\tMeta:export => [\"*\",],\n}\nprint \"other\" {\n\tMeta:export => [\"*\",],\n\tMeta:hidden => true,\n}\n";
    for host in ["db", "web"] {
        let ran = cluster.once(host, exports);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    std::fs::create_dir(cluster.place.path("a")).expect("the place is writable");
    assert_eq!(cluster.history("/exported/").len(), 4);
    // One of both by its host, with a parameter of its own.
    let one =
        "collect file [struct{name => \"PLACE/a/b name\", host => \"web\",},] {\n\tmode => \"0600\",\n}\n";
    let ran = cluster.once("app", one);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    cluster.becomes("a/b name", "of web");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &cluster
            .place
            .path("a/b name")
            .metadata()
            .expect("it is there")
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // Both by their name are two different wishes.
    let both = cluster.once("app", "collect file \"PLACE/a/b name\" {}\n");
    assert_eq!(both.code, 1, "{}", both.stderr);
    assert!(both.stderr.contains("a/b name"), "{}", both.stderr);
    // What there is of a kind, and of nobody else's.
    let lists = "import \"fmt\"\nimport \"world/collect\"\nfile \"PLACE/list\" {\n\tstate => \"exists\",\n\tcontent => fmt.printf(\"%v\", collect.res(\"print\")),\n}\n";
    assert_eq!(cluster.once("app", lists).code, 0);
    let list = std::fs::read_to_string(cluster.place.path("list")).expect("it was written");
    assert!(
        list.contains("other") && list.contains("db") && list.contains("web") && !list.contains("b name"),
        "{list}"
    );
    // The same once more changes nothing in the store.
    assert_eq!(cluster.once("db", exports).code, 0);
    assert_eq!(cluster.history("/exported/").len(), 4);
}

#[test]
fn two_of_five_hosts_are_chosen_and_stay_until_all_withdraw() {
    if !has_etcd("two_of_five_hosts_are_chosen_and_stay_until_all_withdraw") {
        return;
    }
    let cluster = Cluster::start(1);
    let names = ["a", "b", "c", "d", "e"];
    // From the end of the alphabet, so that who was first is not who comes first by name.
    let hosts: Vec<Host> = names
        .iter()
        .rev()
        .map(|host| {
            let started = cluster.host(host, &stands("max => 2,"));
            eventually("it stands", || {
                cluster
                    .keys()
                    .contains(&format!("/scheduler/hostname/{host}/leader"))
            });
            started
        })
        .collect();
    for host in names {
        cluster.becomes(&format!("{host}.says"), "d e");
    }
    let chosen: Vec<String> = cluster
        .history("/scheduler/schedule/")
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    // In the order in which they stood, or by name where both stood before anybody decided.
    let last = chosen.last().map(String::as_str);
    assert!(matches!(last, Some("e,d" | "d,e")), "{chosen:?}");
    assert!(chosen.len() <= 2, "nothing changes when others join: {chosen:?}");
    for host in names {
        cluster.rewrite(host, &stands("withdraw => true,"));
    }
    for host in names {
        cluster.becomes(&format!("{host}.says"), "");
    }
    for host in hosts {
        host.stop();
    }
    let chosen = cluster.history("/scheduler/schedule/");
    assert_eq!(chosen.last().map(|(_, value)| &**value), Some(""), "{chosen:?}");
    the_first_by_name_are_chosen(&cluster);
    wrong_namespaces_and_strategies_are_refused(&cluster);
    a_run_with_noop_writes_nothing(&cluster);
}

fn stands(options: &str) -> String {
    STANDS.replace("OPTIONS", options)
}

fn the_first_by_name_are_chosen(cluster: &Cluster) {
    let hosts: Vec<Host> = ["e", "c", "a"]
        .map(|host| cluster.host(host, &stands("max => 2,\n\tstrategy => \"alpha\",")))
        .into_iter()
        .collect();
    for host in ["a", "c", "e"] {
        cluster.becomes(&format!("{host}.says"), "a c");
    }
    for host in hosts {
        host.stop();
    }
}

fn wrong_namespaces_and_strategies_are_refused(cluster: &Cluster) {
    for (program, said) in [
        (
            stands("namespace => \"a/b\","),
            "must not be empty or contain a slash",
        ),
        (
            "schedule \"a/b\" {}\n".to_owned(),
            "must not be empty or contain a slash",
        ),
        (stands("strategy => \"best\","), "strategy"),
    ] {
        let ran = cluster.once("a", &program);
        assert_eq!(ran.code, 1, "{program}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{program}: {}", ran.stderr);
    }
}

fn a_run_with_noop_writes_nothing(cluster: &Cluster) {
    let before = cluster.history("/scheduler/").len();
    let mut command = cluster.command("noop", &stands(""), &["--once", "--noop"]);
    assert!(command.output().is_ok_and(|ran| ran.status.success()));
    // A lease of a host that ended before may run out meanwhile.
    let since = cluster.history("/scheduler/").split_off(before);
    let written: Vec<_> = since.iter().filter(|(_, value)| !value.is_empty()).collect();
    assert!(
        written.is_empty(),
        "a host that may change nothing writes nothing: {written:?}"
    );
}
