//! Secrets that hosts share.

use setpoint_testing::etcd::has_etcd;

use super::{BINARY, Cluster};
use crate::several_hosts::{Host, eventually};

/// All that the store holds, with its values.
fn everything(cluster: &Cluster) -> String {
    cluster.etcd.control(&["get", "--prefix", "/"])
}

#[test]
fn a_secret_is_stored_encrypted_for_those_who_may_read_it() {
    if !has_etcd("a_secret_is_stored_encrypted_for_those_who_may_read_it") {
        return;
    }
    let cluster = Cluster::start(1);
    let collects = ["two", "all"]
        .map(|name| {
            format!("collect file \"PLACE/{name}\" {{\n\tpath => \"PLACE/${{hostname}}.{name}\",\n}}\n")
        })
        .concat();
    let two = cluster.host("two", &collects);
    let three = cluster.host("three", &collects);
    eventually("their keys are there", || {
        let keys = everything(&cluster);
        keys.contains("/keys/two") && keys.contains("/keys/three")
    });
    let mut one = cluster.host("one", &exports("swordfish"));
    cluster.becomes("two.two", "swordfish-two");
    cluster.becomes("two.all", "swordfish-all");
    cluster.becomes("three.all", "swordfish-all");
    the_store_has_no_secret_in_plain_text(&cluster);
    // What changes is encrypted anew, and what does not is not written again.
    let before = cluster.history("/exported/").len();
    one.stop();
    one = cluster.host("one", &exports("swordfish"));
    one.event("rest", |event| event["event"] == "converged");
    assert_eq!(cluster.history("/exported/").len(), before, "nothing was written");
    cluster.rewrite("one", &exports("marlin"));
    cluster.becomes("two.two", "marlin-two");
    cluster.becomes("three.all", "marlin-all");
    // Who comes later can read what is for all.
    let four = cluster.host("four", &collects);
    cluster.becomes("four.all", "marlin-all");
    // A host that was made anew has another key.
    two.stop();
    std::fs::remove_dir_all(cluster.place.path("prefix-two")).expect("it is there");
    std::fs::remove_file(cluster.place.path("two.two")).expect("it is there");
    let two = cluster.host("two", &collects);
    cluster.becomes("two.two", "marlin-two");
    a_host_whose_key_is_removed_reads_nothing_more(&cluster, four);
    // For a host that nobody knows nothing is encrypted, and so nothing is written.
    let stranger = exports("tuna").replace("[\"two\",]", "[\"stranger\",]");
    cluster.rewrite("one", &stranger);
    one.event("a failure", |event| {
        event["event"] == "backing off" && event.to_string().contains("stranger has no key in the store yet")
    });
    assert!(!everything(&cluster).contains("tuna"));
    for host in [one, two, three] {
        host.stop();
    }
}

/// Exports a file to the host `two` and one to all hosts.
fn exports(content: &str) -> String {
    let of = |name: &str, to: &str| {
        format!(
            "file \"PLACE/{name}\" {{\n\tstate => \"exists\",\n\tcontent => sensitive(\"{content}-{name}\"),\n\tmode => \"0600\",\n\tMeta:hidden => true,\n\tMeta:export => [{to}],\n}}\n"
        )
    };
    of("two", "\"two\",") + &of("all", "\"*\",")
}

fn the_store_has_no_secret_in_plain_text(cluster: &Cluster) {
    let stored = everything(cluster);
    assert!(
        !stored.contains("swordfish") && stored.contains("/exported/two/one/file/"),
        "{stored}"
    );
    assert!(
        !cluster.place.path("three.two").exists(),
        "it is not for this host"
    );
}

fn a_host_whose_key_is_removed_reads_nothing_more(cluster: &Cluster, four: Host) {
    let seeds = cluster.etcd.endpoints().join(",");
    let keys = |words: &[&str]| {
        let mut all = vec!["keys", "--etcd-endpoints", &seeds];
        all.extend(words);
        cluster.place.run(BINARY, &all)
    };
    assert_eq!(keys(&[]).stdout.lines().count(), 4);
    let wrong = keys(&["remove", "fuor"]);
    assert!(
        wrong.code == 1 && wrong.stderr.contains("did you mean `four`?"),
        "{}",
        wrong.stderr
    );
    assert_eq!(keys(&["remoof"]).code, 64);
    four.stop();
    assert_eq!(keys(&["remove", "four"]).code, 0);
    eventually("it is encrypted for the others", || {
        let all = cluster
            .etcd
            .control(&["get", "--prefix", "/setpoint/exported/*/"]);
        !all.contains("\"four\"")
    });
    assert!(!everything(cluster).contains("marlin"));
}

#[test]
fn a_secret_string_is_shared_by_the_hosts_and_by_nobody_else() {
    if !has_etcd("a_secret_string_is_shared_by_the_hosts_and_by_nobody_else") {
        return;
    }
    let cluster = Cluster::start(1);
    let reads = "\
import \"world\"
import \"fmt\"
$shared = world.getval(\"token\")
$own = world.kvlookup(\"own\")
file \"PLACE/${hostname}.says\" {
	state => \"exists\",
	content => fmt.printf(\"%s %v\", $shared->value, $own),
	mode => \"0600\",
}
";
    let mut one = cluster.host("one", reads);
    cluster.becomes("one.says", " {}");
    let sets = |token: &str| {
        format!(
            "kv \"token\" {{\n\tvalue => {token},\n}}\nkv \"own\" {{\n\tvalue => sensitive(\"mine\"),\n\tmapped => true,\n}}\n"
        )
    };
    let mut two = cluster.host("two", &sets("sensitive(\"swordfish\")"));
    cluster.becomes("one.says", "swordfish {\"two\": \"mine\"}");
    assert!(!everything(&cluster).contains("swordfish") && !everything(&cluster).contains("mine"));
    // What it says is sensitive for who reads it, too.
    std::fs::write(cluster.place.path("one.says"), "mine").expect("the place is writable");
    let path = cluster.place.path("one.says").display().to_string();
    let drift = one.of("file", &path, "drift");
    assert!(!drift.to_string().contains("swordfish"), "{drift}");
    cluster.becomes("one.says", "swordfish {\"two\": \"mine\"}");
    // It is written once, and again when others come who shall read it.
    let written = || cluster.history("/strings/token").len();
    two.event("rest", |event| event["event"] == "converged");
    let before = written();
    let three = cluster.host("three", reads);
    cluster.becomes("three.says", "swordfish {\"two\": \"mine\"}");
    assert_eq!(written(), before + 1);
    // Whoever puts it there in the clear is corrected.
    cluster
        .etcd
        .control(&["put", "/setpoint/strings/token", "swordfish"]);
    two.event("a repair", |event| {
        event["event"] == "drift"
            && event["field"] == "readers"
            && event["is"] == "everybody"
            && event["want"] == "the hosts that there are"
    });
    eventually("it is encrypted again", || {
        !everything(&cluster).contains("swordfish")
    });
    // What is no secret any more is for everybody.
    cluster.rewrite("two", &sets("\"herring\""));
    cluster.becomes("one.says", "herring {\"two\": \"mine\"}");
    assert!(everything(&cluster).contains("herring"));
    for host in [one, two, three] {
        host.stop();
    }
}
