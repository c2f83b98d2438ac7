//! A command that sees the new contents of a file before they are written.
//!
//! The command runs in a mount namespace of its own, in which the new contents stand at the final path. The contents are in memory alone, so nothing on a disk changes.
//! An existing file is covered by a bind mount. A file that does not exist yet needs an overlay over its directory.

use super::Command;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The new contents of a file, for one command.
#[derive(Debug)]
pub struct Preview {
    contents: File,
    path: PathBuf,
    scratch: PathBuf,
    owner: Option<(u32, u32)>,
    mode: u32,
}

/// Printed when the new contents are in place and the command itself begins.
const READY: &[u8] = b"setpoint: the new contents are in place\n";

/// Opens the contents while we still have our rights, and enters the namespace.
const ENTER: &str =
    r#"exec 3<"$1"; rights=$2; shift 2; exec unshare $rights --mount --propagation private -- "$@""#;

/// Puts the contents in place and becomes the command.
const COVER: &str = r#"set -e
umask 022
target=$(readlink -f -- "$1"; echo x); target=${target%?x}
scratch=$2 owner=$3 mode=$4 ready=$5
shift 5
test -n "$target"
while [ -n "$scratch" ] && ! [ -d "$scratch" ]; do scratch=${scratch%/*}; done
scratch=${scratch:-/tmp}
fill() {
    cat <&3 >"$1"
    if [ -n "$owner" ]; then chown "$owner" "$1"; fi
    chmod "$mode" "$1"
}
mount -t tmpfs -o mode=0711 tmpfs "$scratch"
if [ -e "$target" ]; then
    fill "$scratch/new"
    mount --bind "$scratch/new" "$target"
else
    directory=${target%/*} name=${target##*/}
    mkdir "$scratch/upper" "$scratch/work"
    chown --reference="$directory/" "$scratch/upper" 2>/dev/null || :
    chmod --reference="$directory/" "$scratch/upper"
    cd "$directory/"
    mount -t overlay overlay -o "lowerdir=.,upperdir=$scratch/upper,workdir=$scratch/work" .
    cd /
    fill "$directory/$name"
fi
cd /
exec 3<&-
printf '%s\n' "$ready"
exec "$@""#;

impl Preview {
    /// New contents of the file at `path`. `scratch` is a directory of ours, or below one, or else `/tmp` is: the command does not see what is in it.
    ///
    /// # Errors
    /// When there is no memory for the contents.
    pub fn new(
        path: impl Into<PathBuf>,
        scratch: impl Into<PathBuf>,
        contents: &[u8],
    ) -> io::Result<Preview> {
        let mut file = File::from(memfd_create("setpoint-preview", MemfdFlags::CLOEXEC)?);
        file.write_all(contents)?;
        Ok(Preview {
            contents: file,
            path: path.into(),
            scratch: scratch.into(),
            owner: None,
            mode: 0o644,
        })
    }

    /// The owner, the group and the mode that the command sees. Only root can change the owner of a file.
    #[must_use]
    pub fn metadata(mut self, owner: Option<(u32, u32)>, mode: u32) -> Preview {
        (self.owner, self.mode) = (owner, mode);
        self
    }

    /// The command that runs `words` in the namespace. The preview must live as long as it runs.
    #[must_use]
    pub fn command(&self, words: impl IntoIterator<Item = OsString>) -> Command {
        let is_root = rustix::process::geteuid().is_root();
        let contents = format!("/proc/{}/fd/{}", std::process::id(), self.contents.as_raw_fd());
        let owner = self.owner.filter(|_| is_root);
        let owner = owner.map_or(String::new(), |(user, group)| format!("{user}:{group}"));
        let ready = String::from_utf8_lossy(READY).trim_end().to_owned();
        let mut arguments: Vec<OsString> = ["-c", ENTER, "sh", &contents].map(OsString::from).to_vec();
        arguments.push(if is_root { "" } else { "--map-root-user" }.into());
        arguments.extend(["/bin/sh", "-c", COVER, "sh"].map(OsString::from));
        arguments.push(self.path.clone().into());
        arguments.push(self.scratch.clone().into());
        arguments.push(owner.into());
        arguments.push(format!("{:o}", self.mode & 0o7777).into());
        arguments.push(ready.into());
        arguments.extend(words);
        Command::new("/bin/sh", arguments)
    }

    /// The output of the command itself. None if it did not begin: then all output is about the namespace.
    #[must_use]
    pub fn output_of_command(output: &[u8]) -> Option<&[u8]> {
        let at = output.windows(READY.len()).position(|window| window == READY)?;
        Some(&output[at + READY.len()..])
    }
}
