//! Processes that fetch the modules of one program at once.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use rustix::fs::{FlockOperation, flock};

use super::*;

impl Forge {
    /// A directory with a `git` that does `meanwhile`, lines of shell, whenever the repository `name` was cloned.
    fn interrupted_git(&self, name: &str, meanwhile: &str) -> PathBuf {
        let repository = self.place.path("srv").join(name);
        let text = format!(
            "#!/bin/sh\n/usr/bin/git \"$@\" || exit\ncase \"$*\" in *clone*{}*)\n{meanwhile}\nesac\n",
            repository.display()
        );
        let program = self.place.write("bin/git", text);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, executable).expect("the place is ours");
        self.place.path("bin")
    }

    /// Fetches with that `git`.
    fn get_with(&self, programs: &Path) -> Finished {
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let mut command = self.command(&["modules", "get", "app/"]);
        let output = command.env("PATH", path).output().expect("it can be started");
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.place.path("app/setpoint.lock")
    }
}

#[test]
fn they_do_not_disturb_each_other() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    let children: Vec<Child> = (0..4)
        .map(|_| {
            let mut command = forge.command(&["check", "--download", "app/"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
    }
    assert_done(&forge.setpoint(&["check", "--locked", "app/"]));
}

#[test]
fn an_update_beside_them_does_not_leave_another_module_than_the_lock_file_says() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    forge.commit("web", &[("main.mcl", &module_of("b"))]);
    let children: Vec<Child> = ["get", "update", "get"]
        .into_iter()
        .map(|action| {
            let mut command = forge.command(&["modules", action, "app/"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
    }
    let graph = forge.setpoint(&["graph", "--locked", "app/"]);
    assert_done(&graph);
    assert!(graph.stdout.starts_with("test \"b\""), "{}", graph.stdout);
}

#[test]
fn what_another_one_wrote_meanwhile_is_what_is_fetched() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("old"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    forge.commit("web", &[("main.mcl", &module_of("new"))]);
    std::fs::remove_dir_all(forge.module("web")).unwrap();
    let lock = forge.lock_file();
    let other = lock.with_extension("other");
    std::fs::rename(&lock, &other).unwrap();
    let written = std::fs::read(&other).unwrap();
    let meanwhile = format!("[ ! -e {0} ] || mv {0} {1}", other.display(), lock.display());
    let programs = forge.interrupted_git("web", &meanwhile);
    assert_done(&forge.get_with(&programs));
    assert!(!other.exists());
    assert_eq!(std::fs::read(&lock).unwrap(), written);
    let graph = forge.setpoint(&["graph", "--locked", "app/"]);
    assert_done(&graph);
    assert!(graph.stdout.starts_with("test \"old\""), "{}", graph.stdout);
}

#[test]
fn a_module_that_somebody_took_away_meanwhile_is_fetched_again() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.commit("other", &[("metadata.yaml", ""), ("main.mcl", &module_of("b"))]);
    let text = format!(
        "import \"{}\" as web\nimport \"{}\" as other\n\ninclude web.main\ninclude other.main\n",
        forge.address("web"),
        forge.address("other")
    );
    forge.place.write("app/metadata.yaml", "");
    forge.place.write("app/main.mcl", text);
    let meanwhile = format!("rm -rf {}", forge.module("web").display());
    let programs = forge.interrupted_git("other", &meanwhile);
    assert_done(&forge.get_with(&programs));
    assert_done(&forge.setpoint(&["check", "--locked", "app/"]));
}

#[test]
fn somebody_who_holds_a_directory_is_waited_for_but_not_for_ever() {
    let forge = Forge::new();
    forge.commit("web", &[("metadata.yaml", ""), ("main.mcl", &module_of("a"))]);
    forge.program(&forge.address("web"));
    assert_done(&forge.setpoint(&["modules", "get", "app/"]));
    let refused = |directory: &str, said: &[&str]| {
        let held = std::fs::File::open(forge.place.path(directory)).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let refused = forge.setpoint(&["check", "--download", "--download-timeout", "0.3", "app/"]);
        assert_refused(&refused, said);
        let holder = format!("process {} (`", std::process::id());
        // Some file systems do not tell who it is.
        let names_holder = refused.stderr.contains(&holder) || refused.stderr.contains("another process");
        assert!(names_holder, "{}", refused.stderr);
    };
    refused("modules", &["E0117", "the modules directory", "holds it"]);
    refused("app", &["the directory app cannot be locked", "holds it"]);
    assert_done(&forge.setpoint(&["check", "--download", "app/"]));
}
