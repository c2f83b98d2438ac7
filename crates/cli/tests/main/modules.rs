//! Modules from elsewhere, by the real binary and the real git: repositories on disk, behind a daemon, and behind servers that mean it
//! harm.

mod several_processes;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use setpoint::Assembly;
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_testing::{Finished, Hermetic};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// A directory of repositories, and a program that imports them.
struct Forge {
    place: Hermetic,
}

impl Forge {
    fn new() -> Forge {
        let place = Hermetic::new();
        std::fs::create_dir_all(place.path("modules")).expect("the place is ours");
        std::fs::create_dir_all(place.path("srv")).expect("the place is ours");
        Forge { place }
    }

    /// Calls git in a repository.
    fn git(&self, repository: &Path, arguments: &[&str]) -> String {
        let output = self
            .place
            .command("/usr/bin/git")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Tester", "-c", "user.email=tester@example.org"])
            .args([
                "-c",
                "protocol.file.allow=always",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(arguments)
            .current_dir(repository)
            .output()
            .expect("git can be started");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits these files to the repository of this name, which is made if it is missing. Answers the commit.
    fn commit(&self, name: &str, files: &[(&str, &str)]) -> String {
        let repository = self.place.path("srv").join(name);
        if !repository.is_dir() {
            std::fs::create_dir_all(&repository).expect("the place is ours");
            self.git(&repository, &["init", "--quiet"]);
        }
        for (file, text) in files {
            self.place.write(&format!("srv/{name}/{file}"), text);
        }
        self.git(&repository, &["add", "--all"]);
        self.git(&repository, &["commit", "--quiet", "--message", "a version"]);
        self.git(&repository, &["rev-parse", "HEAD"])
    }

    /// The address of a repository on disk.
    fn address(&self, name: &str) -> String {
        format!("file://{}/", self.place.path("srv").join(name).display())
    }

    /// Where the module of such an address is kept.
    fn module(&self, name: &str) -> PathBuf {
        let path = self.place.path("srv").join(name);
        self.place
            .path("modules")
            .join(path.strip_prefix("/").unwrap_or(&path))
    }

    /// A program that includes the class `main` of a module.
    fn program(&self, address: &str) {
        let text = format!("import \"{address}\" as module\n\ninclude module.main\n");
        self.place.write("app/metadata.yaml", "");
        self.place.write("app/main.mcl", text);
    }

    fn setpoint(&self, arguments: &[&str]) -> Finished {
        let mut all = arguments.to_vec();
        all.extend(["--module-path", "modules/"]);
        self.place.run(BINARY, &all)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(BINARY);
        command.args(arguments).args(["--module-path", "modules/"]);
        command
    }
}

/// The text of a module whose class `main` makes a resource of this name.
fn module_of(name: &str) -> String {
    format!("class main() {{\n\ttest \"{name}\" {{}}\n}}\n")
}

/// A git daemon of this machine only. It ends with this.
struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    fn start(forge: &Forge) -> Daemon {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("there is a free port").port();
        let programs = forge.git(&forge.place.directory(), &["--exec-path"]);
        let mut command = forge.place.command(Path::new(&programs).join("git-daemon"));
        let child = command
            .args(["--export-all", "--reuseaddr", "--listen=127.0.0.1"])
            .arg(format!("--port={port}"))
            .arg(format!("--base-path={}", forge.place.path("srv").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the daemon can be started");
        let daemon = Daemon { child, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < LIMIT, "the daemon does not listen");
            std::thread::yield_now();
        }
        daemon
    }

    fn address(&self, name: &str) -> String {
        format!("git://127.0.0.1:{}/{name}/", self.port)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn assert_done(finished: &Finished) {
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

/// That it failed, and said all of this.
#[track_caller]
fn assert_refused(finished: &Finished, said: &[&str]) {
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    for said in said {
        assert!(finished.stderr.contains(said), "{said}:\n{}", finished.stderr);
    }
}

#[test]
fn a_module_comes_from_a_daemon_with_what_it_imports() {
    let forge = Forge::new();
    let daemon = Daemon::start(&forge);
    let deeper = forge.commit(
        "deeper",
        &[
            ("metadata.yaml", ""),
            ("main.mcl", &module_of("from the deeper one")),
        ],
    );
    let text = format!(
        "import \"{}\" as deeper\n\nclass main() {{\n\tinclude deeper.main\n}}\n",
        daemon.address("deeper")
    );
    forge.commit(
        "web",
        &[("metadata.yaml", "main: lib/web.mcl\n"), ("lib/web.mcl", &text)],
    );
    forge.program(&daemon.address("web"));
    let missing = forge.setpoint(&["check", "app/"]);
    assert_refused(&missing, &["E0117", "app/main.mcl:1:1", "modules get"]);
    let got = forge.setpoint(&["modules", "get", "app/"]);
    assert_done(&got);
    assert_eq!(got.stdout, "");
    let graph = forge.setpoint(&["graph", "app/"]);
    assert_done(&graph);
    assert!(
        graph.stdout.starts_with("test \"from the deeper one\""),
        "{}",
        graph.stdout
    );
    let listed = forge.setpoint(&["modules", "list", "app/"]);
    assert_done(&listed);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", listed.stdout);
    assert!(lines[1].starts_with(&daemon.address("deeper")), "{}", lines[1]);
    assert!(
        lines[1].contains(&deeper[..12]) && lines[1].contains(" locked "),
        "{}",
        lines[1]
    );
    assert!(
        lines[1].ends_with("$DIR/modules/127.0.0.1/deeper/"),
        "{}",
        lines[1]
    );
    let lock = std::fs::read_to_string(forge.place.path("app/setpoint.lock")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    assert_eq!(
        lock["modules"]["/modules/127.0.0.1/deeper/"]["commit"],
        deeper.as_str()
    );
    assert_done(&forge.setpoint(&["check", "--locked", "app/"]));
}

#[test]
fn what_only_looks_fetches_nothing() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    for arguments in [
        &["check", "app/"][..],
        &["graph", "app/"],
        &["check", "--update", "app/"],
        &["check", "--only-download", "app/"],
        &["modules", "list", "app/"],
        &["run", "--once", "--tmp-state-dir", "--noop", "--download", "app/"],
    ] {
        let finished = forge.setpoint(arguments);
        assert_refused(&finished, &["E0117"]);
        assert!(!forge.module("web").exists(), "{arguments:?}");
    }
    let only = forge.setpoint(&[
        "run",
        "--once",
        "--tmp-state-dir",
        "--download",
        "--only-download",
        "app/",
    ]);
    assert_done(&only);
    assert_eq!(only.stdout, "");
    assert!(forge.module("web").join("metadata.yaml").is_file());
    assert_done(&forge.setpoint(&["graph", "app/"]));
    std::fs::remove_dir_all(forge.module("web")).unwrap();
    let graph = forge.setpoint(&["graph", "--download", "app/"]);
    assert!(graph.stdout.starts_with("test \"a\""), "{}", graph.stderr);
}

#[test]
fn an_update_takes_the_newest_and_the_lock_file_brings_it_elsewhere() {
    let forge = Forge::new();
    let old = forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("old"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    let lock_of_old = std::fs::read(forge.place.path("app/setpoint.lock")).unwrap();
    let new = forge.commit("web", &[("main.mcl", &module_of("new"))]);
    // What is there is left alone.
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    assert!(
        forge
            .setpoint(&["graph", "app/"])
            .stdout
            .starts_with("test \"old\"")
    );
    let updated = forge.setpoint(&["modules", "update", "app/"]);
    assert_done(&updated);
    assert!(
        updated
            .stderr
            .contains(&format!("was at {}, and is now at {}", &old[..12], &new[..12])),
        "{}",
        updated.stderr
    );
    assert!(
        forge
            .setpoint(&["graph", "app/"])
            .stdout
            .starts_with("test \"new\"")
    );
    assert_done(&forge.setpoint(&["modules", "update", "app/"]));
    // Somebody else has only the program with its older lock file.
    std::fs::write(forge.place.path("app/setpoint.lock"), &lock_of_old).unwrap();
    let refused = forge.setpoint(&["graph", "--locked", "app/"]);
    assert_refused(&refused, &["E0119", &new[..12], &old[..12], "app/main.mcl:1:1"]);
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    assert!(
        forge
            .setpoint(&["graph", "--locked", "app/"])
            .stdout
            .starts_with("test \"old\"")
    );
    std::fs::remove_dir_all(forge.module("web")).unwrap();
    assert_done(&forge.setpoint(&["graph", "--locked", "--download", "app/"]));
    assert!(
        forge
            .setpoint(&["graph", "--locked", "app/"])
            .stdout
            .starts_with("test \"old\"")
    );
    assert_eq!(
        std::fs::read(forge.place.path("app/setpoint.lock")).unwrap(),
        lock_of_old
    );
}

#[test]
fn only_what_the_lock_file_says_is_taken() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    let refused = forge.setpoint(&["check", "--locked", "--download", "app/"]);
    assert_refused(&refused, &["E0117", "is not in the lock file"]);
    assert!(!forge.module("web").exists());
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    assert_done(&forge.setpoint(&["check", "--locked", "app/"]));
    forge.place.write("modules/x", "beside");
    std::fs::write(forge.module("web").join("more.mcl"), "").unwrap();
    let refused = forge.setpoint(&["run", "--once", "--tmp-state-dir", "--locked", "app/"]);
    assert_refused(&refused, &["E0119", "are not those of the lock file"]);
    let listed = forge.setpoint(&["modules", "list", "--json", "app/"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["modules"][0]["state"], "changed");
    std::fs::remove_file(forge.place.path("app/setpoint.lock")).unwrap();
    let refused = forge.setpoint(&["check", "--locked", "app/"]);
    assert_refused(&refused, &["E0119", "there is no lock file `app/setpoint.lock`"]);
    for text in ["{", "{\"version\": 2}", "<<<<<<< HEAD\n"] {
        forge.place.write("app/setpoint.lock", text);
        assert_refused(
            &forge.setpoint(&["check", "--locked", "app/"]),
            &["app/setpoint.lock cannot be used"],
        );
    }
    let option = "{\"version\":1,\"modules\":{\"/modules/x/\":{\"url\":\"x\",\"commit\":\"--upload-pack=x\",\"sha256\":\"\"}}}";
    forge.place.write("app/setpoint.lock", option);
    assert_refused(
        &forge.setpoint(&["modules", "get", "app/"]),
        &["the commit of `/modules/x/`"],
    );
    // A program that is one file has a lock file of its own; one that is no file has none.
    let text = std::fs::read_to_string(forge.place.path("app/main.mcl")).unwrap();
    forge.place.write("one.mcl", &text);
    assert_done(&forge.setpoint(&["modules", "get", "one.mcl"]));
    assert!(forge.place.path("one.mcl.lock").is_file());
    assert_done(&forge.setpoint(&["graph", &text]));
    assert_refused(
        &forge.setpoint(&["graph", "--locked", &text]),
        &["E0119", "is not a file"],
    );
}

#[test]
fn what_somebody_changed_in_a_module_is_not_thrown_away() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    forge.commit("web", &[("main.mcl", &module_of("b"))]);
    let own = forge.module("web").join("main.mcl");
    std::fs::write(&own, module_of("my own")).unwrap();
    let refused = forge.setpoint(&["modules", "update", "app/"]);
    assert_refused(
        &refused,
        &[
            "E0117",
            "were changed since it was fetched",
            "remove the directory",
        ],
    );
    forge.git(
        &forge.module("web"),
        &["commit", "--quiet", "--all", "--message", "my own"],
    );
    let refused = forge.setpoint(&["modules", "update", "app/"]);
    assert_refused(&refused, &["E0117", "is at a commit that"]);
    assert_eq!(std::fs::read_to_string(&own).unwrap(), module_of("my own"));
    // What was put there by hand is used, and never replaced.
    std::fs::remove_dir_all(forge.module("web").join(".git")).unwrap();
    let updated = forge.setpoint(&["modules", "update", "app/"]);
    assert_done(&updated);
    assert!(
        updated.stderr.contains("is not a repository"),
        "{}",
        updated.stderr
    );
    assert!(
        forge
            .setpoint(&["graph", "--locked", "app/"])
            .stdout
            .starts_with("test \"my own\"")
    );
}

#[test]
fn a_repository_that_is_not_a_module_leaves_nothing_behind() {
    let forge = Forge::new();
    forge.commit("web", &[("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(
        &refused,
        &[
            "E0117",
            "it has no `metadata.yaml` at its top",
            "app/main.mcl:1:1",
        ],
    );
    assert!(!forge.module("web").exists());
    forge.program(&forge.address("none"));
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(
        &refused,
        &["E0117", "git says:", "does not appear to be a git repository"],
    );
    std::fs::create_dir_all(forge.module("none")).unwrap();
    std::fs::write(forge.module("none").join("x"), "").unwrap();
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(&refused, &["E0117", "is there, but is not a module"]);
    let arrivals = std::fs::read_dir(forge.place.path("modules")).unwrap().flatten();
    let arrivals: Vec<_> = arrivals
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".setpoint"))
        .collect();
    assert!(arrivals.is_empty(), "{arrivals:?}");
}

#[test]
fn a_server_that_never_answers_is_given_up_and_a_killed_download_leaves_no_half_module() {
    let forge = Forge::new();
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = frozen.local_addr().unwrap().port();
    forge.program(&format!("git://127.0.0.1:{port}/web/"));
    let start = Instant::now();
    let refused = forge.setpoint(&["modules", "get", "--download-timeout", "0.5", "app/"]);
    assert_refused(
        &refused,
        &["E0117", "git did not end within 0.5 s", "--download-timeout"],
    );
    assert!(start.elapsed() < LIMIT);
    let mut command = forge.command(&["modules", "get", "app/"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    // Two connections were made: of the first one, which was given up, and of this one.
    let (first, _) = frozen.accept().unwrap();
    let (second, _) = frozen.accept().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Git ends with it, which closes the connection.
    for mut connection in [first, second] {
        connection.set_read_timeout(Some(LIMIT)).unwrap();
        let mut request = Vec::new();
        connection.read_to_end(&mut request).unwrap();
    }
    let remains = |prefix: &str| {
        let entries = std::fs::read_dir(forge.place.path("modules")).unwrap().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
            .count()
    };
    assert_eq!(remains(".setpoint-fetch-"), 1);
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    assert_eq!(remains(".setpoint-fetch-"), 0);
}

#[test]
fn without_git_it_is_said_what_to_install() {
    let forge = Forge::new();
    forge.program("https://example.org/web/");
    let mut command = forge.command(&["modules", "get", "app/"]);
    let output = command.env("PATH", "/nonexistent").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["E0117", "there is no program `git` in PATH", "install it"] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
}

#[test]
fn addresses_that_would_run_something_are_refused() {
    let forge = Forge::new();
    let trap = forge.place.path("trap");
    let touch = format!("touch${{IFS}}{}", trap.display()).replace("${", "\\${");
    for address in [
        format!("ext:///{touch}/"),
        format!("ssh://-oProxyCommand={touch}/web/"),
        "git://127.0.0.1/--upload-pack=x/".to_owned(),
        "https://example.org/web/.git/hooks/".to_owned(),
    ] {
        forge.program(&address);
        let refused = forge.setpoint(&["modules", "get", "app/"]);
        assert_eq!(refused.code, 1, "{address}: {}", refused.stderr);
        assert!(!refused.stderr.contains("git says"), "{}", refused.stderr);
    }
    forge.program("ext:///x/");
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(
        &refused,
        &[
            "E0117",
            "modules are not fetched by `ext`",
            "`https`, `http`, `git`, `ssh` or `file`",
        ],
    );
    assert!(!trap.exists());
    let inside: Vec<_> = std::fs::read_dir(forge.place.path("modules"))
        .unwrap()
        .flatten()
        .collect();
    assert!(inside.is_empty(), "{inside:?}");
}

#[test]
fn a_repository_runs_nothing_and_leads_nowhere() {
    let forge = Forge::new();
    let trap = forge.place.path("trap");
    // Links out of the module, and metadata that is one.
    let web = forge.place.path("srv/web");
    forge.commit("web", &[("main.mcl", "import \"out/secret.mcl\"\n")]);
    forge.place.write("secret.mcl", "$secret = (\n");
    std::os::unix::fs::symlink(forge.place.directory(), web.join("out")).unwrap();
    forge.commit("web", &[("metadata.yaml", "")]);
    forge.program(&forge.address("web"));
    let refused = forge.setpoint(&["check", "--download", "app/"]);
    assert_refused(&refused, &["it leads out of the program's directory"]);
    assert!(!refused.stderr.contains("$secret"), "{}", refused.stderr);
    // What somebody has put into a repository's own configuration is not obeyed.
    let script = forge
        .place
        .write("script", format!("#!/bin/sh\ntouch {}\n", trap.display()));
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let module = forge.module("web");
    let script = script.display().to_string();
    for (key, value) in [
        ("core.fsmonitor", &script),
        ("core.sshCommand", &script),
        ("core.pager", &script),
    ] {
        forge.git(&module, &["config", key, value]);
    }
    for hook in ["post-checkout", "post-merge", "pre-commit"] {
        std::fs::copy(&script, module.join(".git/hooks").join(hook)).unwrap();
        std::fs::copy(&script, web.join(".git/hooks").join(hook)).unwrap();
    }
    std::fs::remove_file(web.join("out")).unwrap();
    forge.place.write("srv/web/main.mcl", module_of("a"));
    forge.git(&web, &["add", "--all"]);
    forge.git(
        &web,
        &[
            "-c",
            "core.hooksPath=/dev/null",
            "commit",
            "--quiet",
            "--message",
            "b",
        ],
    );
    assert_done(&forge.setpoint(&["modules", "update", "app/"]));
    assert_done(&forge.setpoint(&["modules", "list", "app/"]));
    assert_done(&forge.setpoint(&["check", "--locked", "app/"]));
    assert!(!trap.exists(), "a program of the repository ran");
}

#[test]
fn submodules_come_along_but_no_copies_of_what_lies_here() {
    let forge = Forge::new();
    let daemon = Daemon::start(&forge);
    forge.commit("parts", &[("part.mcl", &module_of("of a part"))]);
    forge.commit(
        "web",
        &[
            ("metadata.yaml", ""),
            ("main.mcl", "import \"parts/part.mcl\" as *\n"),
        ],
    );
    let web = forge.place.path("srv/web");
    forge.git(
        &web,
        &["submodule", "--quiet", "add", &daemon.address("parts"), "parts"],
    );
    forge.git(&web, &["commit", "--quiet", "--message", "parts"]);
    let text = format!(
        "import \"{}\" as web\n\ninclude web.main\n",
        daemon.address("web")
    );
    forge.place.write("app/metadata.yaml", "");
    forge.place.write("app/main.mcl", text);
    let got = forge.setpoint(&["modules", "get", "app/"]);
    assert_done(&got);
    assert!(
        forge
            .setpoint(&["graph", "--locked", "app/"])
            .stdout
            .starts_with("test \"of a part\"")
    );
    std::fs::remove_dir_all(forge.place.path("modules/127.0.0.1")).unwrap();
    forge.git(
        &web,
        &[
            "config",
            "--file",
            ".gitmodules",
            "submodule.parts.url",
            &forge.address("parts"),
        ],
    );
    forge.git(
        &web,
        &["commit", "--quiet", "--all", "--message", "from this machine"],
    );
    let refused = forge.setpoint(&["modules", "update", "app/"]);
    assert_refused(&refused, &["E0117", "git says:"]);
    assert!(!forge.place.path("modules/127.0.0.1/web").exists());
}

#[test]
fn a_server_that_asks_for_a_password_gets_no_answer_and_a_written_one_is_not_shown() {
    let forge = Forge::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let answer = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    std::thread::spawn(move || {
        for mut connection in server.incoming().flatten() {
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    forge.program(&format!("http://127.0.0.1:{port}/web/"));
    let refused = forge.setpoint(&["modules", "get", "--download-timeout", "50", "app/"]);
    assert_refused(
        &refused,
        &["E0117", "could not read Username", "credential helper"],
    );
    forge.program(&format!("http://me:hunter7@127.0.0.1:{port}/web/"));
    let refused = forge.setpoint(&["modules", "get", "--download-timeout", "50", "app/"]);
    let told = refused.stderr.lines().filter(|line| !line.contains("import"));
    let told: Vec<&str> = told.collect();
    assert_eq!(refused.code, 1);
    assert!(!told.join("\n").contains("hunter7"), "{}", refused.stderr);
}

#[test]
fn a_program_keeps_modules_in_a_directory_of_its_own() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    forge.place.write("app/metadata.yaml", "path: vendor/\n");
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(
        &refused,
        &[
            "E0117",
            "the modules directory `vendor/` does not exist",
            "mkdir -p $DIR/app/vendor/",
        ],
    );
    let elsewhere = forge.place.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, forge.place.path("app/vendor")).unwrap();
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(&refused, &["E0117", "it leads out of the program's directory"]);
    std::fs::remove_file(forge.place.path("app/vendor")).unwrap();
    std::fs::create_dir(forge.place.path("app/vendor")).unwrap();
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    let lock = std::fs::read_to_string(forge.place.path("app/setpoint.lock")).unwrap();
    assert!(lock.contains("\"vendor/"), "{lock}");
    assert_done(&forge.setpoint(&["check", "--locked", "app/"]));
    assert_eq!(std::fs::read_dir(forge.place.path("modules")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn a_module_reads_the_files_that_came_with_it() {
    let forge = Forge::new();
    let text = "import \"deploy\"\n\nclass main() {\n\t$name = deploy.readfile(\"/files/name\")\n\tprint \"p\" {\n\t\tmsg => $name,\n\t}\n}\n";
    forge.commit(
        "web",
        &[
            ("metadata.yaml", ""),
            ("main.mcl", text),
            ("files/name", "a file of the module"),
        ],
    );
    forge.program(&forge.address("web"));
    forge.place.write("app/files/name", "a file of the program");
    let graph = forge.setpoint(&["graph", "--download", "app/"]);
    assert_done(&graph);
    assert!(graph.stdout.contains("a file of the module"), "{}", graph.stdout);
}

#[test]
fn without_another_directory_modules_lie_below_the_prefix() {
    use std::os::unix::fs::PermissionsExt;
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    let got = forge
        .place
        .run(BINARY, &["modules", "get", "--prefix", "state", "app/"]);
    assert_done(&got);
    let modules = forge.place.path("state/modules");
    assert_eq!(modules.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for command in ["check", "graph"] {
        assert_done(
            &forge
                .place
                .run(BINARY, &[command, "--state-dir", "state", "app/"]),
        );
    }
    assert_done(
        &forge
            .place
            .run(BINARY, &["run", "--once", "--state-dir", "state", "app/"]),
    );
    let none = forge.setpoint(&["modules", "list", "test \"a\" {}"]);
    assert_eq!((none.code, &*none.stdout), (0, ""));
}

#[test]
fn a_module_that_is_compiled_in_is_imported_by_its_name() {
    let assembly = Assembly::standard().with_embedded_module(
        "embedded/greeter",
        [
            (
                "main.mcl",
                "import \"part.mcl\" as part\n\nclass main($name) {\n\tinclude part.greet($name)\n}\n",
            ),
            ("part.mcl", "class greet($name) {\n\ttest $name {}\n}\n"),
            ("broken.mcl", "test \"a\" {}\n"),
        ],
    );
    let library = assembly.library("host.example");
    let compiled = |text: &str| {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let loader = MemoryLoader::new().with("main.mcl", text);
        let entry = Entry::File("main.mcl".to_owned());
        let options = CompileOptions::default();
        let compiled = compile(
            &entry,
            &options,
            &loader,
            &library,
            &mut sources,
            &mut diagnostics,
        );
        let codes: Vec<&str> = diagnostics.iter().map(|found| found.code.code).collect();
        (compiled.program.is_some(), compiled.files, codes)
    };
    let program = "import \"embedded/greeter\"\n\ninclude greeter.main(\"you\")\n";
    // What is compiled in is no file of the program.
    assert_eq!(compiled(program), (true, vec!["main.mcl".to_owned()], vec![]));
    // It is found by its exact name only.
    for other in ["embedded", "greeter", "embedded/greeter/part"] {
        let text = format!("import \"{other}\" as module\n\ninclude module.main(\"you\")\n");
        assert_eq!(compiled(&text).2, ["E0114"], "{other}");
    }
}

#[test]
fn modules_inside_of_each_other_are_refused() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    forge.program(&format!("{}inner/", forge.address("web")));
    let refused = forge.setpoint(&["modules", "get", "app/"]);
    assert_refused(&refused, &["E0117", "would lie inside of another one"]);
}
