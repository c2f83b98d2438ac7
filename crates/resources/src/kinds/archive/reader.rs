//! The members of an archive: tar, compressed or not, and zip.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use setpoint_engine::Words;
use setpoint_host::files::OpenFile;
use tar::EntryType;
use tokio_util::sync::CancellationToken;
use zip::ZipArchive;

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Auto,
    Tar,
    Zip,
}

impl Words for Format {
    const ONE: &'static str = "a format";

    fn words() -> impl Iterator<Item = (&'static str, Format)> {
        [("auto", Format::Auto), ("tar", Format::Tar), ("zip", Format::Zip)].into_iter()
    }
}

/// A member of an archive.
#[derive(Debug)]
pub(super) struct Member {
    /// Below the root of the archive, without `.` and `..`. Empty for the root itself.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Directory,
    File,
    /// A symbolic link with this text.
    Link(OsString),
    /// Another name of an earlier member.
    HardLink(PathBuf),
}

/// The most that comes out of an archive.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) stop: CancellationToken,
}

/// Receives the members of an archive, each with its contents.
pub(super) type Visit<'v> = dyn FnMut(Member, &mut dyn Read) -> Result<(), String> + 'v;

/// Reads all members, in their order.
///
/// # Errors
/// When the archive is damaged, has members that no tree can have, or holds more than the limits. The reason names the member.
pub(super) fn each(
    mut archive: OpenFile,
    format: Format,
    limits: &Limits,
    visit: &mut Visit<'_>,
) -> Result<(), String> {
    let mut magic = [0; 4];
    let count = read_up_to(&mut archive, &mut magic).map_err(|error| error.to_string())?;
    archive.rewind().map_err(|error| error.to_string())?;
    let is_zip = matches!(&magic[..count], b"PK\x03\x04" | b"PK\x05\x06");
    let mut counted = Counted {
        limits,
        entries: 0,
        visit,
    };
    match (format, is_zip) {
        (Format::Zip, _) | (Format::Auto, true) => counted.zip(archive),
        (Format::Tar, _) | (Format::Auto, false) => counted.tar(archive),
    }
}

fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

struct Counted<'a, 'v> {
    limits: &'a Limits,
    entries: u64,
    visit: &'a mut Visit<'v>,
}

impl Counted<'_, '_> {
    fn visit(&mut self, name: &[u8], mode: u32, what: What, contents: &mut dyn Read) -> Result<(), String> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(format!("it has more than {} entries", self.limits.entries));
        }
        if self.limits.stop.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        let path =
            inside(name).ok_or_else(|| format!("the entry {} is outside of the directory", shown(name)))?;
        let told = shown(name);
        (self.visit)(Member { path, mode, what }, contents).map_err(|why| format!("the entry {told}: {why}"))
    }

    fn tar(&mut self, archive: OpenFile) -> Result<(), String> {
        let reader = decompressed(archive).map_err(|error| format!("it cannot be decompressed: {error}"))?;
        let reader = Limited {
            reader,
            left: self.limits.bytes,
            limit: self.limits.bytes,
            stop: self.limits.stop.clone(),
        };
        let mut archive = tar::Archive::new(reader);
        let damaged = |error: io::Error| format!("it cannot be read: {error}");
        let mut is_empty = true;
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            is_empty = false;
            let name = entry.path_bytes().into_owned();
            let mode = entry.header().mode().map_err(damaged)?;
            let target = || {
                let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned);
                target.ok_or_else(|| format!("the entry {} is a link to nothing", shown(&name)))
            };
            let what = match entry.header().entry_type() {
                EntryType::Directory => What::Directory,
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse if name.ends_with(b"/") => {
                    What::Directory
                }
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => What::File,
                EntryType::Symlink => What::Link(OsString::from_vec(target()?)),
                EntryType::Link => {
                    let target = target()?;
                    let inside = inside(&target);
                    What::HardLink(inside.ok_or_else(|| {
                        format!(
                            "the entry {} is a link to {}, outside of the directory",
                            shown(&name),
                            shown(&target)
                        )
                    })?)
                }
                EntryType::XGlobalHeader => continue,
                _ => return Err(format!("the entry {} is a device or a pipe", shown(&name))),
            };
            self.visit(&name, mode, what, &mut entry)?;
        }
        match is_empty {
            true => Err("there is nothing in it".to_owned()),
            false => Ok(()),
        }
    }

    fn zip(&mut self, archive: OpenFile) -> Result<(), String> {
        let damaged = |error: &dyn std::fmt::Display| format!("it cannot be read: {error}");
        let mut archive = ZipArchive::new(BufReader::new(archive)).map_err(|error| damaged(&error))?;
        let mut left = self.limits.bytes;
        let mut seen = std::collections::HashSet::new();
        for place in 0..archive.len() {
            let entry = archive.by_index(place).map_err(|error| damaged(&error))?;
            let name = entry.name_raw().to_vec();
            if entry.encrypted() {
                return Err(format!("the entry {} is encrypted", shown(&name)));
            }
            if !seen.insert(name.clone()) {
                return Err(format!("the entry {} is in it twice", shown(&name)));
            }
            let (is_directory, is_link) = (entry.is_dir(), entry.is_symlink());
            let usual = if is_directory { 0o755 } else { 0o644 };
            let mode = entry.unix_mode().map_or(usual, |mode| mode & 0o7777);
            let mut contents = Limited {
                reader: entry,
                left,
                limit: self.limits.bytes,
                stop: self.limits.stop.clone(),
            };
            let what = match (is_directory, is_link) {
                (true, _) => What::Directory,
                (_, true) => {
                    let mut text = Vec::new();
                    contents.read_to_end(&mut text).map_err(|error| damaged(&error))?;
                    What::Link(OsString::from_vec(text))
                }
                _ => What::File,
            };
            self.visit(&name, mode, what, &mut contents)?;
            left = contents.left;
        }
        Ok(())
    }
}

/// A tar archive without its compression, which its first bytes say.
fn decompressed(archive: OpenFile) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::with_capacity(1 << 16, archive);
    let magic = reader.fill_buf()?;
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(reader)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(XzReader::new(reader, true)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = StreamingDecoder::new(reader);
            Box::new(decoder.map_err(|error| io::Error::other(error.to_string()))?)
        }
        [b'B', b'Z', b'h', ..] => Box::new(MultiBzDecoder::new(reader)),
        _ => Box::new(reader),
    })
}

/// Ends with an error when too much comes out, or when the work is cancelled.
struct Limited<R> {
    reader: R,
    left: u64,
    limit: u64,
    stop: CancellationToken,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let count = self.reader.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                return Err(io::Error::other(format!(
                    "more than {} bytes come out of it",
                    self.limit
                )));
            }
        }
        Ok(count)
    }
}

/// The path of a member below the directory; none if it is outside.
fn inside(name: &[u8]) -> Option<PathBuf> {
    if name.contains(&0) {
        return None;
    }
    let mut path = PathBuf::new();
    for component in Path::new(OsStr::from_bytes(name)).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

fn shown(name: &[u8]) -> String {
    setpoint_value::quote(name)
}

/// Whether a link in a directory of the tree leads to somewhere in the tree.
pub(super) fn stays_inside(directory: &Path, text: &OsStr) -> bool {
    let mut depth = directory.components().count();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_links_stay_inside() {
        assert_eq!(inside(b"./a//b/"), Some(PathBuf::from("a/b")));
        assert_eq!(inside(b"./"), Some(PathBuf::new()));
        for name in [&b"/a"[..], b"../a", b"a/../../b", b"a\0b"] {
            assert_eq!(inside(name), None, "{name:?}");
        }
        let stays = |directory: &str, text: &str| stays_inside(Path::new(directory), OsStr::new(text));
        assert!(stays("a/b", "../../c") && stays("", "c/d") && stays("a", "./b"));
        assert!(!stays("a", "../../c") && !stays("", "/etc") && !stays("a/b", "../../../a"));
    }
}
