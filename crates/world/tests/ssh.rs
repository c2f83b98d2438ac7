//! An etcd that is reached through an SSH server, and what happens on that way.

use std::sync::Arc;

use setpoint_host::files::AbsolutePath;
use setpoint_host::ssh::{HostKey, IdentityChoice, SshAddress, SshOptions};
use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::sshd::{SshServer, has_sshd, make_key};
use setpoint_world::{EtcdOptions, EtcdStore, Revision, Selection, Store, StoreError, TlsFiles, Watched};

use crate::etcd::options;
use crate::faults::in_time;
use crate::suite::{self, changed, put, runtime, shown, text, write};

fn has_both(test: &str) -> bool {
    has_etcd(test) && has_sshd(test)
}

fn server() -> SshServer {
    SshServer::start(&["ed25519"], "")
}

fn through(server: &SshServer) -> SshOptions {
    SshOptions {
        address: SshAddress::parse(&server.url()).unwrap(),
        host_key: Some(HostKey::parse(&server.host_key("ed25519")).unwrap()),
        identity: IdentityChoice::File(AbsolutePath::new(server.user_key()).unwrap()),
    }
}

fn store(cluster: &EtcdCluster, ssh: SshOptions, namespace: &str) -> Arc<dyn Store> {
    let options = EtcdOptions {
        ssh: Some(ssh),
        ..options(cluster, namespace)
    };
    Arc::new(EtcdStore::new(options).unwrap())
}

#[test]
fn the_suite_holds_through_an_ssh_server() {
    if has_both("the_suite_holds_through_an_ssh_server") {
        let (cluster, server) = (EtcdCluster::start(1), server());
        suite::run(|case| store(&cluster, through(&server), &format!("/{case}")));
    }
}

#[test]
fn connections_that_are_killed_are_made_anew_and_nothing_is_missed() {
    if !has_both("connections_that_are_killed_are_made_anew_and_nothing_is_missed") {
        return;
    }
    let (cluster, server) = (EtcdCluster::start(1), server());
    in_time(async {
        let store = store(&cluster, through(&server), "/ns");
        let mut watch = store.watch(Selection::prefix("/k"), Revision(0));
        for round in 0..5 {
            let value = format!("{round}");
            cluster.control(&["put", "/ns/k", &value]);
            assert_eq!(shown(&changed(&mut watch).await), format!("/k={value}"));
            server.signal_sessions("KILL");
        }
        // Each has closed the one before.
        assert_eq!(text(&*store, "/k").await.as_deref(), Some("4"));
        server.wait_for_sessions(1);
        drop(watch);
        drop(store);
    });
    server.wait_for_sessions(0);
}

#[test]
fn a_connection_that_freezes_is_given_up_and_nothing_is_missed() {
    if !has_both("a_connection_that_freezes_is_given_up_and_nothing_is_missed") {
        return;
    }
    let (cluster, server) = (EtcdCluster::start(1), server());
    in_time(async {
        let store = store(&cluster, through(&server), "/ns");
        let mut watch = store.watch(Selection::prefix("/k"), Revision(0));
        cluster.control(&["put", "/ns/k", "before"]);
        assert_eq!(shown(&changed(&mut watch).await), "/k=before");
        server.signal_sessions("STOP");
        cluster.control(&["put", "/ns/k", "meanwhile"]);
        let away = loop {
            match watch.next().await {
                Watched::Away(error) => break error,
                Watched::Back => {}
                other => panic!("{other:?}"),
            }
        };
        assert!(away.is_passing(), "{away}");
        assert_eq!(shown(&changed(&mut watch).await), "/k=meanwhile");
    });
}

#[test]
fn what_lies_behind_the_server_is_told_apart_from_the_server() {
    if !has_both("what_lies_behind_the_server_is_told_apart_from_the_server") {
        return;
    }
    let mut cluster = EtcdCluster::start(1);
    let strict = SshServer::start(&["ed25519"], "PermitOpen 127.0.0.1:1\n");
    let server = server();
    runtime().block_on(async {
        let told = async |ssh: SshOptions| store(&cluster, ssh, "/ns").read(&[]).await.unwrap_err();
        let forbidden = told(through(&strict)).await;
        assert!(forbidden.is_passing(), "{forbidden}");
        assert!(
            forbidden
                .to_string()
                .contains("it forbids that (`AllowTcpForwarding`, `PermitOpen`)"),
            "{forbidden}"
        );
        let mut nowhere = through(&server);
        nowhere.address.port = 1;
        let away = told(nowhere).await.to_string();
        assert!(
            away.contains("the SSH server 127.0.0.1:1 cannot be reached: Connection refused"),
            "{away}"
        );
        let mut no_ssh = through(&server);
        no_ssh.address.port = cluster.endpoints()[0]
            .rsplit(':')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let no_server = told(no_ssh).await;
        assert!(no_server.is_passing(), "{no_server}");
    });
    cluster.kill_member(0);
    runtime().block_on(async {
        let error = store(&cluster, through(&server), "/ns")
            .read(&[])
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("through the SSH server 127.0.0.1:{}", server.port())),
            "{error}"
        );
        assert!(error.contains("nobody answers it there"), "{error}");
    });
}

#[test]
fn certificates_are_checked_through_the_tunnel_and_by_the_name_of_the_endpoint() {
    if !has_both("certificates_are_checked_through_the_tunnel_and_by_the_name_of_the_endpoint") {
        return;
    }
    let cluster = EtcdCluster::start_with_tls(1, EtcdCluster::certificates(&["web"]));
    let server = server();
    let file = |name: &str| AbsolutePath::new(cluster.directory().join(name)).unwrap();
    let with = |authority: &str, endpoints: Vec<String>| {
        let tls = TlsFiles {
            authority: Some(file(authority)),
            identity: Some((file("web.pem"), file("web.key"))),
        };
        EtcdStore::new(EtcdOptions {
            tls: Some(tls),
            ssh: Some(through(&server)),
            endpoints,
            ..options(&cluster, "/ns")
        })
        .unwrap()
    };
    runtime().block_on(async {
        let web = with("ca.pem", cluster.endpoints());
        write(&web, [put("/k", "v")]).await;
        assert_eq!(text(&web, "/k").await.as_deref(), Some("v"));
        let told = async |store: EtcdStore| store.read(&[]).await.unwrap_err().to_string();
        let other = told(with("other-ca.pem", cluster.endpoints())).await;
        assert!(other.contains("invalid peer certificate: "), "{other}");
        let endpoint = cluster.endpoints()[0].replace("127.0.0.1", "127.0.0.2");
        let elsewhere = told(with("ca.pem", vec![endpoint])).await;
        assert!(
            elsewhere.contains("nobody answers") || elsewhere.contains("not valid for name"),
            "{elsewhere}"
        );
        let by_name = cluster.endpoints()[0].replace("127.0.0.1", "ip6-localhost.invalid");
        let unknown = told(with("ca.pem", vec![by_name])).await;
        assert!(unknown.contains("through the SSH server"), "{unknown}");
    });
}

#[test]
fn an_endpoint_that_is_given_twice_is_refused() {
    let options = EtcdOptions {
        endpoints: vec!["http://a:2379".to_owned(), "http://a".to_owned()],
        namespace: "/ns".to_owned(),
        login: None,
        tls: None,
        ssh: Some(SshOptions {
            address: SshAddress::parse("bastion").unwrap(),
            host_key: None,
            identity: IdentityChoice::Found,
        }),
    };
    let error = EtcdStore::new(options).unwrap_err();
    assert!(matches!(error, StoreError::Misconfigured { .. }));
    assert_eq!(
        error.to_string(),
        "the endpoint `http://a` of the store is given twice"
    );
}

#[test]
fn whom_the_server_does_not_let_in_has_to_do_something_about_it() {
    if !has_both("whom_the_server_does_not_let_in_has_to_do_something_about_it") {
        return;
    }
    let (cluster, server) = (EtcdCluster::start(1), server());
    let place = tempfile::tempdir().unwrap();
    let key = place.path().join("stranger");
    make_key(&key, "ed25519", "");
    let mut wrong_key = through(&server);
    wrong_key.identity = IdentityChoice::File(AbsolutePath::new(&key).unwrap());
    let mut wrong_host = through(&server);
    make_key(&place.path().join("other"), "ed25519", "");
    let other = std::fs::read_to_string(place.path().join("other.pub")).unwrap();
    wrong_host.host_key = Some(HostKey::parse(&other).unwrap());
    runtime().block_on(async {
        for (ssh, said) in [
            (wrong_key, "it does not take the key "),
            (wrong_host, "and not the given "),
        ] {
            let error = store(&cluster, ssh, "/ns").read(&[]).await.unwrap_err();
            assert!(!error.is_passing(), "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
    });
}
