//! Who uses what is mounted: why it cannot be unmounted.
//!
//! It is read from `/proc` and `/sys`, proc(5), and the files themselves are not touched: one that hangs would hang who looks. Of the processes of others only root sees this.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{MountedFileSystem, Table, unescape};

/// Something that keeps a mounted file system busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// A process.
    Process {
        /// Its number.
        number: u32,
        /// What it calls itself.
        name: String,
        /// What it has to do with it.
        how: Tie,
        /// What it uses there.
        path: PathBuf,
    },
    /// A loop device on a file of it.
    Loop {
        /// As `loop0`.
        device: String,
        /// The file.
        file: PathBuf,
    },
    /// A file of it that the kernel swaps to.
    Swap(PathBuf),
    /// Another file system that is mounted in it.
    Mount(PathBuf),
}

/// What a process has to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// It works in the directory.
    Directory,
    /// The directory is its root.
    Root,
    /// It runs the program.
    Program,
    /// It has it open.
    Open,
    /// It has it in its memory.
    Mapped,
    /// It is a socket there that the process listens or talks at.
    Socket,
}

/// Who uses a mounted file system, at most so many. What is not found may use it all the same: another machine over the network, or a process that may not be looked at.
#[must_use]
pub fn uses(mounted: &MountedFileSystem, at_most: usize) -> Vec<Use> {
    let of_kernel = mounted_below(mounted)
        .chain(swaps(mounted))
        .chain(loop_devices(mounted));
    of_kernel.chain(processes(mounted)).take(at_most).collect()
}

fn mounted_below(of: &MountedFileSystem) -> impl Iterator<Item = Use> + use<> {
    let table = Table::read().unwrap_or_default();
    let number = of.number;
    let below = table.0.into_iter().filter(move |other| other.parent == number);
    below.map(|other| Use::Mount(other.point))
}

fn swaps(of: &MountedFileSystem) -> impl Iterator<Item = Use> {
    let text = fs::read("/proc/swaps").unwrap_or_default();
    let files: Vec<PathBuf> = text
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(|byte| matches!(byte, b' ' | b'\t')).next())
        .map(|file| PathBuf::from(OsString::from_vec(unescape(file))))
        .collect();
    let here = files.into_iter().filter(|file| file.starts_with(&of.point));
    here.map(Use::Swap)
}

fn loop_devices(of: &MountedFileSystem) -> impl Iterator<Item = Use> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices.filter_map(|device| {
        let file = fs::read(device.path().join("loop/backing_file")).ok()?;
        let file = PathBuf::from(OsString::from_vec(file.trim_ascii_end().to_vec()));
        let device = device.file_name().to_string_lossy().into_owned();
        file.starts_with(&of.point).then_some(Use::Loop { device, file })
    })
}

fn processes(of: &MountedFileSystem) -> impl Iterator<Item = Use> {
    let sockets = sockets(&of.point);
    let own_namespace = fs::read_link("/proc/self/ns/mnt").ok();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(move |entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let process = entry.path();
        let (how, path) = tie(&process, of, &sockets)?;
        // Where other file systems are mounted the same path may be something else.
        let is_elsewhere = fs::read_link(process.join("ns/mnt")).ok() != own_namespace;
        if is_elsewhere {
            let table = Table::parse(&fs::read(process.join("mountinfo")).ok()?);
            table.under(&path).filter(|there| there.device == of.device)?;
        }
        let name = fs::read(process.join("comm")).unwrap_or_default();
        let name = String::from_utf8_lossy(name.trim_ascii_end()).replace(char::is_control, "?");
        Some(Use::Process {
            number,
            name,
            how,
            path,
        })
    })
}

/// The first thing of a mounted file system that a process uses. A process that has ended meanwhile uses nothing.
fn tie(process: &Path, of: &MountedFileSystem, sockets: &HashMap<String, PathBuf>) -> Option<(Tie, PathBuf)> {
    let here = |link: &Path| {
        fs::read_link(link)
            .ok()
            .filter(|path| path.starts_with(&of.point))
    };
    for (name, how) in [
        ("cwd", Tie::Directory),
        ("root", Tie::Root),
        ("exe", Tie::Program),
    ] {
        if let Some(path) = here(&process.join(name)) {
            return Some((how, path));
        }
    }
    for entry in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
        let Ok(path) = fs::read_link(entry.path()) else {
            continue;
        };
        if path.starts_with(&of.point) {
            return Some((Tie::Open, path));
        }
        if let Some(path) = path.to_str().and_then(|socket| sockets.get(socket)) {
            return Some((Tie::Socket, path.clone()));
        }
    }
    let maps = fs::read(process.join("maps")).ok()?;
    let mapped = maps.split(|byte| *byte == b'\n').find_map(|line| {
        // The path is last, and nothing before it has a slash.
        let at = line.iter().position(|byte| *byte == b'/')?;
        let path = PathBuf::from(OsString::from_vec(unescape(&line[at..])));
        path.starts_with(&of.point).then_some(path)
    });
    mapped.map(|path| (Tie::Mapped, path))
}

/// Sockets with a path below a directory: by what links to their descriptors say, unix(7).
fn sockets(below: &Path) -> HashMap<String, PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let named = lines.filter_map(|line| {
        let at = line.windows(2).position(|pair| pair == b" /")?;
        let path = PathBuf::from(OsString::from_vec(line[at + 1..].to_vec()));
        let inode = line[..at].rsplit(|byte| *byte == b' ').next()?;
        let inode = std::str::from_utf8(inode).ok()?;
        path.starts_with(below)
            .then(|| (format!("socket:[{inode}]"), path))
    });
    named.collect()
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Process {
                number,
                name,
                how,
                path,
            } => {
                let path = path.display();
                write!(f, "process {number} (`{name}`), ")?;
                match how {
                    Tie::Directory => write!(f, "which works in {path}"),
                    Tie::Root => write!(f, "whose root is {path}"),
                    Tie::Program => write!(f, "which is the program {path}"),
                    Tie::Open => write!(f, "which has {path} open"),
                    Tie::Mapped => write!(f, "which has {path} in its memory"),
                    Tie::Socket => write!(f, "which has the socket {path} open"),
                }
            }
            Use::Loop { device, file } => write!(f, "the device {device}, which is on {}", file.display()),
            Use::Swap(file) => write!(f, "the swap file {}", file.display()),
            Use::Mount(point) => write!(f, "what is mounted at {}", point.display()),
        }
    }
}
