//! The real binary beside users who mean it harm, and on a machine that is not all there.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use setpoint_testing::{Hermetic, Running};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_prefix_is_private_whatever_the_umask_and_nobody_elses() {
    let place = Hermetic::new();
    let prefix = place.path("deep/prefix");
    for mask in ["000", "077", "777"] {
        let script = format!("umask {mask} && exec \"$@\"");
        let mut command = place.command("/bin/sh");
        command.args(["-c", &script, "sh", BINARY, "run", "--once", "--no-raise-limits"]);
        command.arg("--state-dir").arg(&prefix).arg("noop \"a\" {}");
        let output = command.output().unwrap();
        if mask == "777" && !is_root() {
            continue;
        }
        assert!(output.status.success(), "{mask}: {output:?}");
        let bits = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(bits(&prefix), 0o700, "umask {mask}");
        assert_eq!(bits(prefix.parent().unwrap()) & 0o022, 0, "umask {mask}");
        std::fs::remove_dir_all(place.path("deep")).unwrap();
    }
    std::fs::create_dir(place.path("open")).unwrap();
    std::fs::set_permissions(place.path("open"), PermissionsExt::from_mode(0o777)).unwrap();
    let open = place.path("open").display().to_string();
    let refused = place.run(
        BINARY,
        &[
            "run",
            "--once",
            "--allow-tmp-state-dir",
            "--state-dir",
            &open,
            "noop \"a\" {}",
        ],
    );
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("others can write in the directory"),
        "{}",
        refused.stderr
    );
}

#[test]
fn without_a_home_there_is_no_shared_directory_for_state() {
    let place = Hermetic::new();
    if !is_root() {
        return;
    }
    let program = place.path("setpoint");
    std::fs::copy(BINARY, &program).unwrap();
    place.write("p.mcl", "noop \"a\" {}\n");
    open_up(&place);
    let output = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(&program)
        .args(["run", "--once"])
        .arg(place.path("p.mcl"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("neither `XDG_CACHE_HOME` nor `HOME` is set"),
        "{errors}"
    );
}

/// Lets other users pass through the place.
fn open_up(place: &Hermetic) {
    let mut here = Some(place.path(""));
    while let Some(path) = here.filter(|path| path.as_path() != std::path::Path::new("/tmp")) {
        if let Ok(found) = path.metadata()
            && found.permissions().mode() & 0o005 != 0o005
        {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
        }
        here = path.parent().map(std::path::Path::to_path_buf);
    }
}

#[test]
fn the_status_file_is_no_way_to_another_file() {
    let place = Hermetic::new();
    let victim = place.write("victim", "precious\n");
    symlink(&victim, place.path("status")).unwrap();
    let status = place.path("status").display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let run = |status: &str| {
        place.run(
            BINARY,
            &[
                "run",
                "--once",
                "--no-raise-limits",
                "--state-dir",
                &prefix,
                "--converger-status-file",
                status,
                "noop \"a\" {}",
            ],
        )
    };
    let refused = run(&status);
    assert!(refused.stderr.contains("the status file"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    let fine = place.path("fine").display().to_string();
    assert_eq!(run(&fine).code, 0);
    assert_eq!(std::fs::read_to_string(&fine).unwrap(), "true\n");
    if is_root() {
        std::fs::create_dir(place.path("theirs")).unwrap();
        std::fs::hard_link(&victim, place.path("theirs/status")).unwrap();
        chown(place.path("theirs"), Some(65534), None).unwrap();
        let refused = run(&place.path("theirs/status").display().to_string());
        assert!(
            refused.stderr.contains("it has several names"),
            "{}",
            refused.stderr
        );
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    }
}

#[test]
fn random_values_need_no_device_file() {
    if !is_root() {
        return;
    }
    let place = Hermetic::new();
    let prefix = place.path("prefix").display().to_string();
    let mut command = place.command("unshare");
    command.args([
        "-m",
        "/bin/sh",
        "-c",
        "mount -t tmpfs none /dev && exec \"$@\"",
        "sh",
        BINARY,
    ]);
    command.args([
        "run",
        "--once",
        "--no-raise-limits",
        "--state-dir",
        &prefix,
        "noop \"a\" {}",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_may_not_be_looked_at_is_not_said_to_be_missing() {
    if !is_root() {
        return;
    }
    let place = Hermetic::new();
    let program = place.path("setpoint");
    std::fs::copy(BINARY, &program).expect("the place can be written");
    place.write("closed/main.mcl", "noop \"a\" {}");
    open_up(&place);
    std::fs::set_permissions(place.path("closed"), PermissionsExt::from_mode(0o700)).expect("it is ours");
    for name in [
        "closed/main.mcl",
        "closed/metadata.yaml",
        "closed/inner/",
        "closed/inner",
    ] {
        let output = Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--inh-caps=-all",
            ])
            .arg(&program)
            .arg("check")
            .arg(place.path(name))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("cannot be looked at: Permission denied"),
            "{name}: {errors}"
        );
    }
}

#[test]
fn a_file_system_that_never_answers_holds_up_what_lies_on_it_alone() {
    if !is_root() || !std::path::Path::new("/dev/fuse").exists() {
        return;
    }
    let place = Hermetic::new();
    std::fs::create_dir(place.path("hung")).unwrap();
    let (hung, fine) = (place.path("hung/a").display().to_string(), place.path("fine"));
    let program = format!(
        "file \"{hung}\" {{ state => \"exists\", content => \"x\", }}\n\
         file \"{}\" {{ state => \"exists\", content => \"right\\n\", }}",
        fine.display()
    );
    let program = place.write("main.mcl", program).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let options = "fd=3,rootmode=40000,user_id=65534,group_id=65534,allow_other";
    let script = format!(
        "exec 3<>/dev/fuse && mount -i -t fuse.hung -o {options} none '{}' && {{ sleep 3600 & }} && \
         exec 3>&- && exec \"$@\"",
        place.path("hung").display()
    );
    let mut command = place.command("unshare");
    command.args([
        "--mount-proc",
        "--pid",
        "--fork",
        "--kill-child",
        "/bin/sh",
        "-c",
        &script,
        "sh",
        BINARY,
    ]);
    command.args([
        "run",
        "--json",
        "--no-raise-limits",
        "--state-dir",
        &prefix,
        &program,
    ]);
    let mut running = Running::start(command);
    let name = fine.display().to_string();
    let is_right = || std::fs::read_to_string(&fine).is_ok_and(|text| text == "right\n");
    let ended = |line: &str| line.contains("\"run ended\"") && line.contains(&name);
    while !is_right() {
        running.wait_for("a run", ended);
    }
    std::fs::write(&fine, "wrong").expect("the place can be written");
    while !is_right() {
        running.wait_for("a run after it was changed", ended);
    }
    // Nothing that is under way there ever ends, and that keeps nobody from ending it all.
    running.signal("KILL");
    let _ = running.finish();
}
