//! A real SSH server for a test, on a free port of the loopback interface, with keys of its own, ended with the test. It can be on a host of its own as far
//! as processes, homes and the state of the machine go.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to be there.
const LIMIT: Duration = Duration::from_secs(60);

/// An SSH server that lets in whoever runs the test, by one key.
#[derive(Debug)]
pub struct SshServer {
    directory: tempfile::TempDir,
    port: u16,
    process: Child,
    /// Whether it is on a host of its own, where it is the child of what has made that.
    is_apart: bool,
}

/// The password of root on a host of its own.
pub const PASSWORD: &str = "far-hush-7381";

/// The same as the system keeps it.
const PASSWORD_KEPT: &str =
    "$6$setpointtest$FBN82wBXoiAEFmyH0bC5ud0NNOAohC0MXb2fT.B0ey1WEHMij9cdrUJ7RISOiJUmEipPXBxdassJ.Br3EHACE1";

/// What makes a host of its own: its own processes, and nothing in homes, in the state of the machine and of what is written to its settings.
const APART: &str = "mount -t tmpfs -o mode=0755 tmpfs /run && mkdir -p /run/sshd /run/etc /run/work && \
                     mount -t tmpfs -o mode=0700 tmpfs /root && mount -t tmpfs -o mode=0755 tmpfs /var/lib && \
                     mount -t overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work overlay /etc && \
                     sed -i \"s|^root:[^:]*:|root:$1:|\" /etc/shadow && exec /usr/sbin/sshd -D -e -f \"$0\"";

/// Whether a server can be started on a host of its own; else says that a test is skipped.
#[must_use]
#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests wants to know what was not tested"
)]
pub fn can_be_apart(test: &str) -> bool {
    let can = is_root() && is_program("unshare") && is_program("nsenter");
    if !can {
        eprintln!("skipped: {test}: needs root, `unshare` and `nsenter`");
    }
    can && has_sshd(test)
}

/// Whether there is an SSH server on this machine; else says that a test is skipped.
#[must_use]
#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests wants to know what was not tested"
)]
pub fn has_sshd(test: &str) -> bool {
    let is_there = Path::new("/usr/sbin/sshd").exists() && is_program("ssh-keygen");
    if !is_there {
        eprintln!("skipped: {test}: needs `sshd` and `ssh-keygen`");
    }
    is_there
}

fn is_program(name: &str) -> bool {
    let status = Command::new(name)
        .arg("-?")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok()
}

impl SshServer {
    /// A server with a key of each of these types, `ed25519` and `rsa`, and lines of its configuration that go before all others.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(host_keys: &[&str], further: &str) -> SshServer {
        SshServer::made(host_keys, further, false)
    }

    /// The same on a host of its own, on which root has a password, too.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start_apart(host_keys: &[&str], further: &str) -> SshServer {
        SshServer::made(host_keys, further, true)
    }

    fn made(host_keys: &[&str], further: &str, is_apart: bool) -> SshServer {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let place = directory.path();
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
            listener.local_addr().expect("it is bound").port()
        };
        // Of what is said twice the first counts.
        let mut config = format!(
            "{further}Port {port}\nListenAddress 127.0.0.1\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nUseDNS no\nLogLevel VERBOSE\n\
             AuthorizedKeysFile {}\nSubsystem sftp internal-sftp\n",
            place.join("authorized_keys").display()
        );
        for sort in host_keys {
            make_key(&place.join(format!("host_{sort}")), sort, "");
            config.push_str(&format!(
                "HostKey {}\n",
                place.join(format!("host_{sort}")).display()
            ));
        }
        make_key(&place.join("user_key"), "ed25519", "");
        std::fs::copy(place.join("user_key.pub"), place.join("authorized_keys"))
            .expect("the place is writable");
        std::fs::write(place.join("config"), config).expect("the place is writable");
        let log = File::create(place.join("log")).expect("the place is writable");
        // As root it wants a directory below /run, which not every machine has: it gets one that nobody else sees.
        let begin = "if [ \"$(id -u)\" = 0 ]; then mount -t tmpfs tmpfs /run && mkdir /run/sshd; fi; exec /usr/sbin/sshd -D -e -f \"$0\"";
        let mut command = match is_root() {
            _ if is_apart => {
                let mut command = Command::new("unshare");
                command.args([
                    "--mount",
                    "--propagation",
                    "private",
                    "--pid",
                    "--fork",
                    "--kill-child",
                ]);
                command.args(["--mount-proc", "sh", "-c", APART]);
                command
            }
            true => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "--propagation", "private", "sh", "-c", begin]);
                command
            }
            false => {
                let mut command = Command::new("sh");
                command.args(["-c", begin]);
                command
            }
        };
        let process = command
            .arg(place.join("config"))
            .arg(PASSWORD_KEPT)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("there is an `sshd`");
        let server = SshServer {
            directory,
            port,
            process,
            is_apart,
        };
        let deadline = Instant::now() + LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "it does not start:\n{}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it is, for whom it lets in: `ssh://USER@127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ssh://{}@127.0.0.1:{}", user(), self.port)
    }

    /// The private key that it lets in.
    #[must_use]
    pub fn user_key(&self) -> PathBuf {
        self.file("user_key")
    }

    /// One of its own keys, in base64.
    ///
    /// # Panics
    /// When it has none of this type.
    #[must_use]
    pub fn host_key(&self, sort: &str) -> String {
        let line = self.host_key_line(sort);
        line.split(' ').nth(1).expect("a key follows its type").to_owned()
    }

    /// The line by which one of its keys is known.
    ///
    /// # Panics
    /// When it has none of this type.
    #[must_use]
    pub fn known_hosts_line(&self, sort: &str) -> String {
        format!("[127.0.0.1]:{} {}", self.port, self.host_key_line(sort))
    }

    fn host_key_line(&self, sort: &str) -> String {
        std::fs::read_to_string(self.file(&format!("host_{sort}.pub"))).expect("it has such a key")
    }

    /// The fingerprint of one of its keys: `SHA256:…`.
    ///
    /// # Panics
    /// When it has none of this type.
    #[must_use]
    pub fn fingerprint(&self, sort: &str) -> String {
        let shown = Command::new("ssh-keygen")
            .arg("-lf")
            .arg(self.file(&format!("host_{sort}.pub")))
            .output()
            .expect("there is an `ssh-keygen`");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        shown
            .split(' ')
            .nth(1)
            .expect("the length stands before it")
            .to_owned()
    }

    /// The server itself.
    fn daemon(&self) -> u32 {
        match self.is_apart {
            // Until it is there, nobody else is.
            true => children(self.process.id())
                .first()
                .copied()
                .unwrap_or(self.process.id()),
            false => self.process.id(),
        }
    }

    /// Runs a shell command on its host, and gives what it prints.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn there(&self, command: &str) -> String {
        let ran = Command::new("nsenter")
            .args(["--mount", "--pid", "--target", &self.daemon().to_string()])
            .args(["sh", "-c", command])
            .stdin(Stdio::null())
            .output()
            .expect("there is an `nsenter`");
        assert!(ran.status.success(), "{command}: {ran:?}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// The processes of the connections that there are.
    #[must_use]
    pub fn sessions(&self) -> Vec<u32> {
        let mut all = children(self.daemon());
        // Whatever has lost its parent is a child of the server on a host of its own.
        all.retain(|id| {
            let name = std::fs::read_to_string(format!("/proc/{id}/comm"));
            name.is_ok_and(|name| name.starts_with("sshd"))
        });
        all
    }

    /// Waits until there are so many connections.
    ///
    /// # Panics
    /// When that is not so within a minute.
    pub fn wait_for_sessions(&self, count: usize) {
        let deadline = Instant::now() + LIMIT;
        while self.sessions().len() != count {
            let log = self.log();
            assert!(
                Instant::now() < deadline,
                "{:?} are there, not {count}\n{log}",
                self.sessions()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal to all connections, and to nobody else: `KILL`, `STOP`.
    pub fn signal_sessions(&self, signal: &str) {
        for session in self.sessions() {
            for process in with_descendants(session) {
                send(process, signal);
            }
        }
    }

    /// Sends a signal to the server, which takes connections: `STOP`, `CONT`.
    pub fn signal(&self, signal: &str) {
        send(self.daemon(), signal);
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.signal("STOP");
        self.signal_sessions("KILL");
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes a key pair, encrypted where a passphrase is given.
///
/// # Panics
/// When it cannot be made.
pub fn make_key(file: &Path, sort: &str, passphrase: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", sort, "-N", passphrase, "-C", "a test", "-f"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .expect("there is an `ssh-keygen`");
    assert!(made.status.success(), "{made:?}");
}

/// Who runs the test.
fn user() -> String {
    let said = Command::new("id").arg("-un").output().expect("there is an `id`");
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

fn is_root() -> bool {
    user() == "root"
}

fn send(process: u32, signal: &str) {
    // It may have ended by itself.
    let _ = Command::new("kill")
        .arg(format!("-{signal}"))
        .arg(process.to_string())
        .stderr(Stdio::null())
        .status();
}

fn children(process: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let listed = listed.unwrap_or_default();
    listed
        .split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

fn with_descendants(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut done = 0;
    while done < all.len() {
        all.extend(children(all[done]));
        done += 1;
    }
    all
}

/// Adds a line to a file of known hosts, with its directory.
///
/// # Panics
/// When the disk refuses.
pub fn add_line(file: &Path, line: &str) {
    let directory = file.parent().expect("it lies in a directory");
    std::fs::create_dir_all(directory).expect("the place is writable");
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(file)
        .expect("the place is writable");
    writeln!(file, "{}", line.trim_end()).expect("the place is writable");
}
