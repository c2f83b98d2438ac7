//! A real etcd for a test: one member or several, on free ports of the loopback interface or on hosts of a network of the test's own, ended with
//! the test.

mod recording;

use std::fs::{File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use recording::Recording;

use crate::Network;
use crate::network::within;

/// How long members may take to be there.
const LIMIT: Duration = Duration::from_secs(60);

/// Members of an etcd that a test has started.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<Member>,
    directory: tempfile::TempDir,
    has_tls: bool,
    /// What members are started with, too.
    options: Vec<String>,
    /// From where they are asked.
    asked_from: Option<String>,
}

#[derive(Debug)]
struct Member {
    name: String,
    /// On which host of a network; none: on this one.
    namespace: Option<String>,
    address: String,
    client: u16,
    peer: u16,
    process: Option<Child>,
}

/// Whether there is an etcd on this machine; else says that a test is skipped.
#[must_use]
#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests wants to know what was not tested"
)]
pub fn has_etcd(test: &str) -> bool {
    let is_there = Command::new("etcd")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    if !is_there {
        eprintln!("skipped: {test}: needs the program `etcd`");
    }
    is_there
}

impl EtcdCluster {
    /// So many members, ready to answer.
    ///
    /// # Panics
    /// When they cannot be started.
    #[must_use]
    pub fn start(count: usize) -> EtcdCluster {
        EtcdCluster::start_with(count, &["--unsafe-no-fsync"])
    }

    /// The same with other options than usual. `PORT` in them is the port for clients.
    ///
    /// # Panics
    /// When they cannot be started.
    #[must_use]
    pub fn start_with(count: usize, options: &[&str]) -> EtcdCluster {
        EtcdCluster::made(count, temporary(), false, options, None)
    }

    /// A member on each of the first hosts of a network.
    ///
    /// # Panics
    /// When they cannot be started.
    #[must_use]
    pub fn start_on(network: &Network, count: usize) -> EtcdCluster {
        EtcdCluster::made(count, temporary(), false, &["--unsafe-no-fsync"], Some(network))
    }

    /// Members that take only hosts with a certificate, made by [`EtcdCluster::certificates`] before.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start_with_tls(count: usize, certificates: tempfile::TempDir) -> EtcdCluster {
        EtcdCluster::made(count, certificates, true, &["--unsafe-no-fsync"], None)
    }

    fn made(
        count: usize,
        directory: tempfile::TempDir,
        has_tls: bool,
        options: &[&str],
        network: Option<&Network>,
    ) -> EtcdCluster {
        let members = (0..count).map(|number| Member {
            name: format!("m{number}"),
            namespace: network.map(|network| network.namespace(number)),
            address: network.map_or_else(|| "127.0.0.1".to_owned(), |network| network.address(number)),
            client: free_port(),
            peer: free_port(),
            process: None,
        });
        let mut cluster = EtcdCluster {
            members: members.collect(),
            directory,
            has_tls,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            asked_from: network.map(Network::bridge),
        };
        for number in 0..count {
            cluster.start_member(number);
        }
        cluster.wait_until_ready();
        cluster
    }

    /// An authority with a certificate for the store, `server`, and one for each name: `NAME.pem` and `NAME.key` beside `ca.pem`. Another
    /// authority that nobody trusts is `other-ca.pem`.
    ///
    /// # Panics
    /// When they cannot be made.
    #[must_use]
    pub fn certificates(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("no names are valid");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        authority
            .distinguished_name
            .push(rcgen::DnType::CommonName, "authority of a test");
        let write = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("the place is writable");
            let mode = Permissions::from_mode(if name.ends_with(".key") { 0o600 } else { 0o644 });
            std::fs::set_permissions(&path, mode).expect("it is ours");
        };
        for (file, is_used) in [("other-ca.pem", false), ("ca.pem", true)] {
            let key = rcgen::KeyPair::generate().expect("a key can be made");
            let certificate = authority.self_signed(&key).expect("it can be signed");
            write(file, certificate.pem());
            if !is_used {
                continue;
            }
            let issuer = rcgen::Issuer::new(authority.clone(), key);
            for name in names.iter().chain(&["server"]) {
                let alternatives = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
                let mut params = rcgen::CertificateParams::new(alternatives).expect("the names are valid");
                params.distinguished_name.push(rcgen::DnType::CommonName, *name);
                let key = rcgen::KeyPair::generate().expect("a key can be made");
                let certificate = params.signed_by(&key, &issuer).expect("it can be signed");
                write(&format!("{name}.pem"), certificate.pem());
                write(&format!("{name}.key"), key.serialize_pem());
            }
        }
        directory
    }

    /// Where certificates and data are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The URLs of all members, for clients.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| self.client_url(member))
            .collect()
    }

    fn client_url(&self, member: &Member) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", member.address, member.client)
    }

    fn peer_url(member: &Member) -> String {
        format!("http://{}:{}", member.address, member.peer)
    }

    /// Starts a member, also one that was killed, with what it had.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_member(&mut self, number: usize) {
        self.start_member_as(number, "new");
    }

    /// Takes a member out of the others for good, and starts one in its place with nothing, as their administrator does when its disk is lost.
    ///
    /// # Panics
    /// When the others do not do that, or it cannot be started.
    pub fn replace_member(&mut self, number: usize) {
        if self.members[number].process.is_some() {
            self.kill_member(number);
        }
        let listed = self.control(&["member", "list"]);
        let name = self.members[number].name.clone();
        let id = listed
            .lines()
            .find(|line| line.split(", ").nth(2) == Some(&*name));
        let id = id
            .and_then(|line| line.split(',').next())
            .expect("it is one of them");
        self.control(&["member", "remove", id]);
        self.lose_data(number);
        let peer = EtcdCluster::peer_url(&self.members[number]);
        // The others take nobody new as long as they have not all heard of who has gone.
        let add = format!("--peer-urls={peer}");
        let deadline = Instant::now() + LIMIT;
        while !self.tries(&["member", "add", &name, &add]) {
            assert!(Instant::now() < deadline, "no member can be added");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.start_member_as(number, "existing");
    }

    /// Removes what a member has that does not run.
    ///
    /// # Panics
    /// When it cannot be removed.
    pub fn lose_data(&self, number: usize) {
        let data = self.file(&self.members[number].name);
        std::fs::remove_dir_all(data).expect("it has data");
    }

    /// How many members there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Whether a member was started and not killed.
    #[must_use]
    pub fn runs(&self, number: usize) -> bool {
        self.members[number].process.is_some()
    }

    /// The process of a member.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn process_of(&self, number: usize) -> u32 {
        self.members[number].process.as_ref().expect("it runs").id()
    }

    fn start_member_as(&mut self, number: usize, state: &str) {
        let peers = self
            .members
            .iter()
            .map(|member| format!("{}={}", member.name, EtcdCluster::peer_url(member)));
        let peers: Vec<String> = peers.collect();
        let member = &self.members[number];
        let (client, peer) = (self.client_url(member), EtcdCluster::peer_url(member));
        let log = File::create(self.file(&format!("{}.log", member.name))).expect("the place is writable");
        let mut command = within(member.namespace.as_deref(), "etcd");
        command
            .args(["--name", &member.name])
            .arg("--data-dir")
            .arg(self.file(&member.name))
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args([
                "--initial-cluster",
                &peers.join(","),
                "--initial-cluster-state",
                state,
            ])
            .args(["--logger", "zap", "--log-outputs", "stderr"])
            .args(
                self.options
                    .iter()
                    .map(|option| option.replace("PORT", &member.client.to_string())),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if self.has_tls {
            command.arg("--client-cert-auth");
            for (option, file) in [
                ("--trusted-ca-file", "ca.pem"),
                ("--cert-file", "server.pem"),
                ("--key-file", "server.key"),
            ] {
                command.arg(option).arg(self.file(file));
            }
        }
        let process = command.spawn().expect("there is an `etcd`");
        self.members[number].process = Some(process);
    }

    /// Kills a member at once.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill_member(&mut self, number: usize) {
        let mut process = self.members[number].process.take().expect("it runs");
        process.kill().expect("it is ours");
        process.wait().expect("it is ours");
    }

    /// Sends a signal to a member: `STOP`, `CONT`.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal_member(&self, number: usize, signal: &str) {
        let process = self.members[number].process.as_ref().expect("it runs");
        let sent = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(process.id().to_string())
            .status();
        assert!(sent.expect("there is a `kill`").success(), "signal {signal}");
    }

    /// Which member leads the others.
    ///
    /// # Panics
    /// When none does for a minute.
    #[must_use]
    pub fn leader(&self) -> usize {
        let deadline = Instant::now() + LIMIT;
        loop {
            for number in 0..self.members.len() {
                let status = self.control_one(number, &["endpoint", "status", "--write-out=json"]);
                let status: Option<serde_json::Value> =
                    status.and_then(|text| serde_json::from_str(&text).ok());
                if let Some(status) = status.as_ref().and_then(|all| all.get(0)?.get("Status"))
                    && status["leader"] == status["header"]["member_id"]
                {
                    return number;
                }
            }
            assert!(Instant::now() < deadline, "no member leads");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs `etcdctl`, and gives what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn control(&self, arguments: &[&str]) -> String {
        let endpoints = self.endpoints().join(",");
        let output = self
            .etcdctl(&endpoints, arguments)
            .output()
            .expect("there is an `etcdctl`");
        assert!(output.status.success(), "etcdctl {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `etcdctl`, and says whether it succeeds.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn tries(&self, arguments: &[&str]) -> bool {
        let output = self.client(arguments).output();
        output.expect("there is an `etcdctl`").status.success()
    }

    /// `etcdctl` of all members, to be run.
    #[must_use]
    pub fn client(&self, arguments: &[&str]) -> Command {
        self.etcdctl(&self.endpoints().join(","), arguments)
    }

    /// The same of one member; none when it fails.
    fn control_one(&self, number: usize, arguments: &[&str]) -> Option<String> {
        let endpoint = self.client_url(&self.members[number]);
        let output = self.etcdctl(&endpoint, arguments).output().ok()?;
        let is_done = output.status.success();
        is_done.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn etcdctl(&self, endpoints: &str, arguments: &[&str]) -> Command {
        let mut command = within(self.asked_from.as_deref(), "etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--dial-timeout", "2s", "--endpoints", endpoints]);
        if self.has_tls {
            command.arg("--cacert").arg(self.file("ca.pem"));
            command.arg("--cert").arg(self.file("server.pem"));
            command.arg("--key").arg(self.file("server.key"));
        }
        command.args(arguments);
        command
    }

    /// Forgets history up to now.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub fn compact(&self) {
        let status = self.control(&["endpoint", "status", "--write-out=json"]);
        let status: serde_json::Value = serde_json::from_str(&status).expect("it is JSON");
        let revision = status[0]["Status"]["header"]["revision"]
            .as_i64()
            .expect("it has a revision");
        let done = self
            .etcdctl(
                &self.endpoints().join(","),
                &["compaction", &revision.to_string(), "--physical"],
            )
            .output();
        let done = done.expect("there is an `etcdctl`");
        // Nothing may have happened since the last time.
        let is_again = String::from_utf8_lossy(&done.stderr).contains("has been compacted");
        assert!(done.status.success() || is_again, "{done:?}");
    }

    /// Waits until all members that run answer.
    ///
    /// # Panics
    /// When they do not in a minute.
    pub fn wait_until_ready(&self) {
        let deadline = Instant::now() + LIMIT;
        for number in 0..self.members.len() {
            if self.members[number].process.is_none() {
                continue;
            }
            while self.control_one(number, &["endpoint", "health"]).is_none() {
                let log = std::fs::read_to_string(self.file(&format!("m{number}.log"))).unwrap_or_default();
                assert!(Instant::now() < deadline, "a member does not answer:\n{log}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for process in self
            .members
            .iter_mut()
            .filter_map(|member| member.process.as_mut())
        {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is a place for temporary files")
}

/// A port that was free just now.
/// A free port that the system gives to no connection meanwhile: below the range of those ports.
fn free_port() -> u16 {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 10_000 + u16::try_from(random % 20_000).expect("it is small");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
