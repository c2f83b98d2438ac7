//! A host `near` that has a host `far` join its cluster.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use setpoint_testing::Finished;
use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::sshd::{SshServer, can_be_apart};
use sha2::{Digest, Sha256};

use super::super::deploys::finished;
use super::super::{BINARY, Cluster};
use crate::several_hosts::eventually;

/// A cluster, and a host of its own with an SSH server.
pub(super) struct Far {
    pub(super) cluster: Cluster,
    pub(super) server: SshServer,
    /// The program, which is copied often, without what only a debugger needs.
    pub(super) binary: PathBuf,
}

impl Far {
    /// None, and a word about it, where that cannot be had.
    pub(super) fn start(test: &str) -> Option<Far> {
        Far::start_with(test, || EtcdCluster::start(1), "")
    }

    /// With this etcd and these lines of the configuration of the SSH server.
    pub(super) fn start_with(test: &str, etcd: impl FnOnce() -> EtcdCluster, sshd: &str) -> Option<Far> {
        (has_etcd(test) && can_be_apart(test)).then(|| Far {
            cluster: Cluster::of(etcd()),
            server: SshServer::start_apart(&["ed25519"], sshd),
            binary: stripped().to_owned(),
        })
    }

    /// The program of `near`: a resource for the other host, of which everything is said that is needed to log in.
    pub(super) fn resource(&self, further: &str) -> String {
        self.resource_with(&format!(
            "hostkey => \"{}\",\n\tssh_id => \"{}\",\n\t{further}",
            self.server.host_key("ed25519"),
            self.server.user_key().display()
        ))
    }

    /// The same with nothing said but the name.
    pub(super) fn resource_with(&self, further: &str) -> String {
        format!(
            "remote \"{}\" {{\n\thostname => \"far\",\n\t{further}\n}}\n",
            self.server.url()
        )
    }

    /// Where everything is on the other host.
    pub(super) fn directory(&self) -> String {
        let hash = Sha256::digest(format!("remote:{}", self.server.url()));
        let digits: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        format!("/var/lib/setpoint/remote/{digits}")
    }

    /// A command of `near`.
    pub(super) fn command(&self, binary: &Path, further: &[&str], program: &str) -> Command {
        let program = self.cluster.place.write("near.mcl", program);
        let mut command = self.cluster.place.command(binary);
        command.args(["run", "--no-deploy", "--no-raise-limits", "--hostname", "near"]);
        command.args(self.store());
        command
            .arg("--state-dir")
            .arg(self.cluster.place.path("prefix-near"));
        command.args(further).arg(program);
        command
    }

    /// How the store is named on a command line.
    fn store(&self) -> Vec<String> {
        let etcd = &self.cluster.etcd;
        let mut all = vec!["--etcd-endpoints".to_owned(), etcd.endpoints().join(",")];
        if etcd.endpoints()[0].starts_with("https") {
            for (option, file) in [
                ("--etcd-ca", "ca.pem"),
                ("--etcd-cert", "near.pem"),
                ("--etcd-key", "near.key"),
            ] {
                all.push(option.to_owned());
                all.push(etcd.directory().join(file).display().to_string());
            }
        }
        all
    }

    /// Runs `near` until all is right, or cannot be made so.
    pub(super) fn once(&self, further: &[&str], program: &str) -> Finished {
        self.once_with(&self.binary, further, program)
    }

    /// The same, which fails and says this among others. Answers all that it says.
    #[track_caller]
    pub(super) fn fails(&self, further: &[&str], program: &str, said: &str) -> String {
        let ran = self.once(further, program);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        ran.stderr
    }

    /// The same as [`Far::once`] with another program.
    pub(super) fn once_with(&self, binary: &Path, further: &[&str], program: &str) -> Finished {
        finished(&mut self.command(binary, &["--once"], program), further)
    }

    /// Publishes a program to the cluster.
    pub(super) fn deploy(&self, program: &str) {
        let root = self.cluster.place.path("").display().to_string();
        let program = program.replace("PLACE/", &root);
        let program = self.cluster.place.write("deployed.mcl", program);
        let program = program.display().to_string();
        let mut command = self.cluster.place.command(BINARY);
        command.arg("deploy").arg("--no-git").args(self.store());
        let deployed = finished(&mut command, &["lang", &program]);
        assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    }

    /// The program's process there; empty while none is said.
    pub(super) fn process(&self) -> String {
        let there = self.directory();
        self.server.there(&format!("cat {there}/pid 2>/dev/null || true"))
    }

    /// Waits until another process than this one is the program there, and answers which.
    pub(super) fn other_process(&self, than: &str) -> String {
        let mut found = String::new();
        eventually("another process is the program there", || {
            found = self.process();
            !found.is_empty() && found != than
        });
        found
    }

    /// Whether a process is there.
    pub(super) fn is_there(&self, process: &str) -> bool {
        let looked = format!("kill -0 {process} 2> /dev/null && echo yes; true");
        self.server.there(&looked) == "yes"
    }

    /// How the program there was called.
    pub(super) fn command_line(&self) -> String {
        let there = self.directory();
        self.server
            .there(&format!(
                "tr '\\0' ' ' < /proc/$(cat {there}/pid)/cmdline; echo ."
            ))
            .trim_end_matches('.')
            .to_owned()
    }

    /// The hash of the program.
    pub(super) fn sha256(&self) -> String {
        let bytes = std::fs::read(&self.binary).expect("it was made");
        Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// One that does the same, but is not the same.
    pub(super) fn another_program(&self) -> PathBuf {
        let path = self.cluster.place.path("another");
        let mut bytes = std::fs::read(&self.binary).expect("it was made");
        bytes.push(0);
        std::fs::write(&path, bytes).expect("the place is writable");
        executable(&path);
        path
    }
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("it is ours");
}

/// The program without what only a debugger needs.
fn stripped() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = directory.join("setpoint-stripped");
        let written = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        if written(&path) < written(Path::new(BINARY)) {
            // Another process may do the same.
            let new = directory.join(format!("setpoint-stripped-{}", std::process::id()));
            let stripped = Command::new("strip").arg("-o").arg(&new).arg(BINARY).status();
            if !stripped.is_ok_and(|status| status.success()) {
                std::fs::copy(BINARY, &new).expect("the place is writable");
            }
            executable(&new);
            std::fs::rename(new, &path).expect("the place is writable");
        }
        path
    })
}
