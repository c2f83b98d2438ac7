//! The suite on real ones, and who is let in.

use std::sync::Arc;

use setpoint_host::files::AbsolutePath;
use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_world::{
    EtcdOptions, EtcdStore, Login, Operation, Selection, Store, StoreError, TlsFiles, Transaction, Watched,
};

use crate::suite::{self, changed, key, put, runtime, shown, text, write};

pub(crate) fn options(cluster: &EtcdCluster, namespace: &str) -> EtcdOptions {
    EtcdOptions {
        endpoints: cluster.endpoints(),
        namespace: namespace.to_owned(),
        login: None,
        tls: None,
        ssh: None,
    }
}

pub(crate) fn store(cluster: &EtcdCluster, namespace: &str) -> Arc<dyn Store> {
    Arc::new(EtcdStore::new(options(cluster, namespace)).unwrap())
}

#[test]
fn the_suite_holds_on_one_member() {
    if has_etcd("the_suite_holds_on_one_member") {
        let cluster = EtcdCluster::start(1);
        suite::run(|case| store(&cluster, &format!("/{case}")));
    }
}

#[test]
fn the_suite_holds_on_three_members() {
    if has_etcd("the_suite_holds_on_three_members") {
        let cluster = EtcdCluster::start(3);
        suite::run(|case| store(&cluster, &format!("/{case}")));
    }
}

#[test]
fn what_is_too_large_is_told_and_changes_nothing() {
    if !has_etcd("what_is_too_large_is_told_and_changes_nothing") {
        return;
    }
    let cluster = EtcdCluster::start(1);
    runtime().block_on(async {
        let store = store(&cluster, "");
        let value = vec![0; 1_900_000];
        let error = store
            .transact(Transaction::of([Operation::put(key("/k"), value)]))
            .await
            .unwrap_err();
        let StoreError::TooLarge { reason } = error else {
            panic!("{error}")
        };
        assert_eq!(&*reason, "request is too large");
        assert_eq!(text(&*store, "/k").await, None);
        assert_eq!(cluster.control(&["get", "--prefix", "", "--keys-only"]), "");
    });
}

#[test]
fn missing_logins_and_rights_are_reported_in_words() {
    if !has_etcd("missing_logins_and_rights_are_reported_in_words") {
        return;
    }
    let cluster = EtcdCluster::start(1);
    let options = options(&cluster, "/ns");
    let runtime = runtime();
    runtime.block_on(async {
        let early = logged_in(&options, "web", "hush").read(&[]).await;
        assert_eq!(
            reason(early.map(drop)),
            "the store does not let this host in: a user is given, but this store asks for none"
        );
    });
    ask_for_users(&cluster);
    runtime.block_on(async {
        a_wrong_login_is_reported(&options).await;
        a_missing_right_is_reported(&options).await;
    });
}

/// The store as this user sees it.
fn logged_in(options: &EtcdOptions, user: &str, password: &str) -> EtcdStore {
    let login = Some(Login {
        user: user.to_owned(),
        password: password.to_owned(),
    });
    EtcdStore::new(EtcdOptions {
        login,
        ..options.clone()
    })
    .unwrap()
}

fn reason(result: Result<(), StoreError>) -> String {
    result.unwrap_err().to_string()
}

/// Has etcd ask for users. The user `web` reads and writes below `/web/` and reads below `/all/`.
fn ask_for_users(cluster: &EtcdCluster) {
    cluster.control(&["user", "add", "root:root"]);
    cluster.control(&["user", "grant-role", "root", "root"]);
    cluster.control(&["role", "add", "web"]);
    cluster.control(&[
        "role",
        "grant-permission",
        "web",
        "readwrite",
        "/ns/web/",
        "--prefix=true",
    ]);
    cluster.control(&[
        "role",
        "grant-permission",
        "web",
        "read",
        "/ns/all/",
        "--prefix=true",
    ]);
    cluster.control(&["user", "add", "web:hush"]);
    cluster.control(&["user", "grant-role", "web", "web"]);
    cluster.control(&["auth", "enable"]);
}

async fn a_wrong_login_is_reported(options: &EtcdOptions) {
    let nobody = EtcdStore::new(options.clone()).unwrap();
    let own = key("/web/own");
    let refused = nobody.read(&[own.clone().into()]).await;
    assert_eq!(
        reason(refused.map(drop)),
        "the store does not let this host in: it asks for a user, and none is given"
    );
    let wrong = logged_in(options, "web", "guess")
        .read(&[own.clone().into()])
        .await;
    let said = reason(wrong.map(drop));
    assert_eq!(
        said,
        "the store does not let this host in: the name of the user or the password is wrong"
    );
}

async fn a_missing_right_is_reported(options: &EtcdOptions) {
    let web = logged_in(options, "web", "hush");
    assert!(!format!("{web:?} {options:?}").contains("hush"));
    let revision = write(&web, [put("/web/own", "mine")]).await;
    assert_eq!(text(&web, "/web/own").await.as_deref(), Some("mine"));
    let others = web.transact(Transaction::of([put("/all/x", "theirs")])).await;
    assert_eq!(
        reason(others.map(drop)),
        "the store does not allow it: its user has no right to that; `setpoint rights` shows who has which"
    );
    let others = web
        .transact(Transaction::of([put("/web/own", "2"), put("/all/x", "theirs")]))
        .await;
    assert_eq!(
        reason(others.map(drop)),
        "the store does not allow it: its user has no right to that; `setpoint rights` shows who has which"
    );
    let others = web.read(&[Selection::prefix("/db/")]).await;
    assert_eq!(
        reason(others.map(drop)),
        "the store does not allow it: its user has no right to that; `setpoint rights` shows who has which"
    );
    let mut allowed = web.watch(Selection::prefix("/web/"), revision);
    let mut refused = web.watch(Selection::prefix("/db/"), revision);
    assert!(matches!(
        refused.next().await,
        Watched::Away(StoreError::Denied { .. })
    ));
    write(&web, [put("/web/own", "3")]).await;
    assert_eq!(shown(&changed(&mut allowed).await), "/web/own=3");
}

#[test]
fn certificates_say_who_is_who() {
    if !has_etcd("certificates_say_who_is_who") {
        return;
    }
    let cluster = EtcdCluster::start_with_tls(1, EtcdCluster::certificates(&["web"]));
    let file = |name: &str| AbsolutePath::new(cluster.directory().join(name)).unwrap();
    let identity = || Some((file("web.pem"), file("web.key")));
    let with = |authority: Option<&str>, identity| {
        let tls = TlsFiles {
            authority: authority.map(file),
            identity,
        };
        let tls = Some(tls);
        EtcdStore::new(EtcdOptions {
            tls,
            ..options(&cluster, "/ns")
        })
    };
    runtime().block_on(async {
        let web = with(Some("ca.pem"), identity()).unwrap();
        write(&web, [put("/k", "v")]).await;
        assert_eq!(text(&web, "/k").await.as_deref(), Some("v"));
        let told = async |store: EtcdStore| store.read(&[]).await.unwrap_err().to_string();
        let other = told(with(Some("other-ca.pem"), identity()).unwrap()).await;
        assert!(
            other.contains("invalid peer certificate: ")
                && other.contains("whose certificate is not signed by the authority in ")
                && !other.contains("none is given"),
            "{other}"
        );
        let stranger = told(with(Some("other-ca.pem"), None).unwrap()).await;
        assert!(
            stranger.contains("not signed by the authority in ") && !stranger.contains("none is given"),
            "{stranger}"
        );
        let mixed = Some((file("web.pem"), file("server.key")));
        let mixed = told(with(Some("ca.pem"), mixed).unwrap()).await;
        assert!(
            mixed.contains("server.key is not the key of the certificate in "),
            "{mixed}"
        );
        let no_authority = told(with(Some("web.key"), identity()).unwrap()).await;
        assert!(
            no_authority.contains("there is no certificate in "),
            "{no_authority}"
        );
        let no_key = Some((file("web.pem"), file("ca.pem")));
        let no_key = told(with(Some("ca.pem"), no_key).unwrap()).await;
        assert!(no_key.contains("there is no private key in "), "{no_key}");
        let nobody = told(with(Some("ca.pem"), None).unwrap()).await;
        assert!(
            nobody.contains("which may want a certificate of this host"),
            "{nobody}"
        );
        let missing = told(with(Some("none.pem"), None).unwrap()).await;
        assert!(
            missing.contains("none.pem") && missing.contains("cannot be used"),
            "{missing}"
        );
        let unsafe_one = EtcdStore::new(options(&cluster, "/ns")).unwrap_err();
        assert!(
            unsafe_one.to_string().contains("needs the certificate"),
            "{unsafe_one}"
        );
        let mut in_the_clear = options(&cluster, "/ns");
        for endpoint in &mut in_the_clear.endpoints {
            *endpoint = endpoint.replace("https://", "http://");
        }
        let clear = told(EtcdStore::new(in_the_clear).unwrap()).await;
        assert!(clear.contains("which may want `https://`"), "{clear}");
    });
}

#[test]
fn a_store_without_encryption_is_recognised() {
    if !has_etcd("a_store_without_encryption_is_recognised") {
        return;
    }
    let plain = EtcdCluster::start(1);
    let certificates = EtcdCluster::certificates(&["web"]);
    let mut encrypted = options(&plain, "/ns");
    for endpoint in &mut encrypted.endpoints {
        *endpoint = endpoint.replace("http://", "https://");
    }
    encrypted.tls = Some(TlsFiles {
        authority: Some(AbsolutePath::new(certificates.path().join("ca.pem")).unwrap()),
        identity: None,
    });
    runtime().block_on(async {
        let store = EtcdStore::new(encrypted).unwrap();
        let told = store.read(&[]).await.unwrap_err().to_string();
        assert!(told.contains("which may speak no TLS: `http://`"), "{told}");
    });
}

#[test]
fn what_is_no_endpoint_is_told_at_once() {
    for (endpoints, said) in [
        (vec![], "no endpoint of the store is given"),
        (vec!["localhost:2379"], "`localhost:2379` is not an etcd endpoint"),
        (vec!["http://"], "`http://` is not an etcd endpoint"),
        (
            vec!["http://a:x"],
            "`http://a:x` is not an etcd endpoint: use a URL",
        ),
        (vec!["http://a:70000"], "`http://a:70000` is not an etcd endpoint"),
        (
            vec!["http://root:hush@h:1"],
            "the user of the store is not part of an endpoint",
        ),
    ] {
        let options = EtcdOptions {
            endpoints: endpoints.into_iter().map(str::to_owned).collect(),
            namespace: String::new(),
            login: None,
            tls: None,
            ssh: None,
        };
        let error = EtcdStore::new(options).unwrap_err().to_string();
        assert!(error.starts_with(said) && !error.contains("hush"), "{error}");
    }
}
