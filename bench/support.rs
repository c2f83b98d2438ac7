//! What the benchmarks have in common: arguments, a place to work in, random numbers, running the program, and the few system
//! calls that the standard library lacks.

pub mod process;

use std::ffi::{CString, c_char, c_int};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn syncfs(descriptor: c_int) -> c_int;
    fn inotify_init1(flags: c_int) -> c_int;
    fn inotify_add_watch(descriptor: c_int, path: *const c_char, mask: u32) -> c_int;
}

/// `--name value` pairs from the command line.
pub struct Arguments(Vec<String>);

impl Arguments {
    pub fn read() -> Arguments {
        Arguments(std::env::args().skip(1).collect())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == name)?;
        Some(
            self.0
                .get(at + 1)
                .unwrap_or_else(|| panic!("{name} needs a value")),
        )
    }

    pub fn number(&self, name: &str, default: usize) -> usize {
        self.text(name).map_or(default, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name} needs a number"))
        })
    }
}

/// The program under test, and a directory to work in that is removed at the end.
pub struct Place {
    pub setpoint: PathBuf,
    pub directory: PathBuf,
}

impl Place {
    pub fn new(arguments: &Arguments) -> Place {
        let setpoint = PathBuf::from(
            arguments
                .text("--setpoint")
                .expect("--setpoint says which program"),
        );
        let parent = arguments
            .text("--directory")
            .map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = parent.join(format!("setpoint-bench-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("make the directory to work in");
        Place {
            setpoint: setpoint.canonicalize().expect("find the program"),
            directory,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The program with these arguments, quiet, in surroundings of its own.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.setpoint);
        command.args(arguments);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.directory);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> (ExitStatus, Duration) {
        let start = Instant::now();
        let status = self.command(arguments).status().expect("start the program");
        (status, start.elapsed())
    }

    /// Runs the program to its end, which must be a good one.
    pub fn run_well(&self, arguments: &[&str]) -> Duration {
        let (status, time) = self.run(arguments);
        if !status.success() {
            let output = self.command(arguments).stderr(Stdio::piped()).output();
            let errors = output.map(|output| output.stderr).unwrap_or_default();
            let errors = String::from_utf8_lossy(&errors);
            let first: Vec<&str> = errors.lines().take(5).collect();
            panic!(
                "setpoint {arguments:?} ended with {status}; once more: {}",
                first.join("\n")
            );
        }
        time
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A process that is killed when this goes.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Random numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// The files that a program describes: so many, a thousand a directory.
pub struct Files {
    pub root: PathBuf,
    pub count: usize,
}

impl Files {
    pub fn path(&self, index: usize) -> PathBuf {
        self.root
            .join(format!("d{}", index / 1000))
            .join(format!("f{index}"))
    }

    pub fn directories(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..self.count.div_ceil(1000)).map(|index| self.root.join(format!("d{index}")))
    }

    /// Empty directories.
    pub fn clear(&self) {
        let _ = fs::remove_dir_all(&self.root);
        for directory in self.directories() {
            fs::create_dir_all(directory).expect("make a directory");
        }
    }
}

/// The calls that replacing files takes at least, with the promise that setpoint gives: whole before and after a crash. Temporary files,
/// one sync for all, renames, one sync a directory; in batches.
pub fn replace_bare(files: &[(PathBuf, Vec<u8>)]) {
    for batch in files.chunks(1024) {
        let mut directories: Vec<(&Path, File)> = Vec::new();
        for (path, content) in batch {
            let parent = path.parent().expect("a file has a parent");
            if directories.last().is_none_or(|(last, _)| *last != parent) {
                directories.push((parent, File::open(parent).expect("open a directory")));
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(temporary(path))
                .expect("make a temporary file");
            file.write_all(content).expect("write");
            file.set_permissions(fs::Permissions::from_mode(0o644))
                .expect("set the mode");
        }
        let (_, any) = directories.last().expect("a batch is not empty");
        assert_eq!(unsafe { syncfs(any.as_raw_fd()) }, 0, "sync the file system");
        for (path, _) in batch {
            fs::rename(temporary(path), path).expect("rename");
        }
        for (_, directory) in &directories {
            directory.sync_all().expect("sync a directory");
        }
    }
}

/// The same for one file alone.
pub fn replace_one_bare(path: &Path, content: &[u8]) {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(temporary(path))
        .expect("make a temporary file");
    file.write_all(content).expect("write");
    file.set_permissions(fs::Permissions::from_mode(0o644))
        .expect("set the mode");
    file.sync_all().expect("sync");
    fs::rename(temporary(path), path).expect("rename");
    let directory = File::open(path.parent().expect("a file has a parent")).expect("open a directory");
    directory.sync_all().expect("sync a directory");
}

fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().expect("a file has a name").to_string_lossy();
    path.with_file_name(format!(".bare-{name}"))
}

/// Whether a file is as it shall be: the calls that finding out takes at least.
pub fn is_right(path: &Path, content: &[u8], buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    metadata.permissions().mode() & 0o7777 == 0o644
        && file.read_to_end(buffer).is_ok()
        && buffer.as_slice() == content
}

/// Directories that are watched for files that were written, as little as `inotify(7)` takes.
pub struct Watch(File);

impl Watch {
    pub fn new(directories: impl Iterator<Item = PathBuf>) -> Watch {
        const CLOSED_AFTER_WRITING: u32 = 0x8;
        Watch::with(directories, CLOSED_AFTER_WRITING)
    }

    /// The same for files that take their place by a rename.
    pub fn of_arrivals(directories: impl Iterator<Item = PathBuf>) -> Watch {
        const MOVED_TO: u32 = 0x80;
        Watch::with(directories, MOVED_TO)
    }

    fn with(directories: impl Iterator<Item = PathBuf>, events: u32) -> Watch {
        const CLOSE_ON_EXEC: c_int = 0o2_000_000;
        let descriptor: RawFd = unsafe { inotify_init1(CLOSE_ON_EXEC) };
        assert!(descriptor >= 0, "{}", io::Error::last_os_error());
        for directory in directories {
            let path = CString::new(directory.as_os_str().as_bytes()).expect("a path without zeros");
            let watch = unsafe { inotify_add_watch(descriptor, path.as_ptr(), events) };
            assert!(watch >= 0, "{}", io::Error::last_os_error());
        }
        Watch(unsafe { File::from_raw_fd(descriptor) })
    }

    /// The names of the next files that were written, with the position of their directory, counted from 1.
    pub fn next(&mut self) -> Vec<(u32, String)> {
        let mut buffer = [0u8; 65536];
        let length = self.0.read(&mut buffer).expect("read events");
        let mut events = Vec::new();
        let mut at = 0;
        while at + 16 <= length {
            let word = |offset: usize| {
                let bytes = &buffer[at + offset..at + offset + 4];
                u32::from_ne_bytes(bytes.try_into().expect("four bytes"))
            };
            let size = word(12) as usize;
            let name = &buffer[at + 16..at + 16 + size];
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            events.push((word(0), String::from_utf8_lossy(name).into_owned()));
            at += 16 + size;
        }
        events
    }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value below which so many of a hundred lie.
pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) * percent).div_ceil(100)]
}
