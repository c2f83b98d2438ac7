//! The real binary beside users who mean it harm, and on a machine that is not all there.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use setpoint_testing::Hermetic;

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
        command.arg("--prefix").arg(&prefix).arg("noop \"a\" {}");
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
            "--allow-tmp-prefix",
            "--prefix",
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
    open_up(&place);
    let output = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(&program)
        .args(["run", "--once", "noop \"a\" {}"])
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
                "--prefix",
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
        "--prefix",
        &prefix,
        "noop \"a\" {}",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
