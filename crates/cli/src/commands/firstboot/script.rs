//! Scripts: which there are, what is said of them, and how they are taken away.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{Access, accessat};
use setpoint_diagnostics::{SourceMap, did_you_mean, visible};
use setpoint_host::files::{
    AbsolutePath, Committer, Content, Directory, Entry, FileError, FileType, Replace,
};
use setpoint_programs::failure::{Failure, system_text};
use setpoint_yaml::tree::{self, Yaml};

use super::places::make_directory;
use crate::output::Output;

/// How the names end of files with what holds for a script.
const OPTIONS: &str = ".yaml";

/// A script that is to be run.
pub(super) struct Script {
    path: AbsolutePath,
    entry: Entry,
    options: Entry,
}

/// The options of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptOptions {
    /// The directory for it after its run, instead of the one for all scripts.
    pub(super) done_directory: Option<AbsolutePath>,
    /// Whether it stays if it fails.
    pub(super) keep_on_fail: bool,
    /// Whether its output is not logged.
    pub(super) no_log: bool,
}

/// The removal of a script after its run.
pub(super) struct Leave<'a> {
    script: &'a Script,
    /// The path that it is moved to. None if it is deleted.
    done: Option<AbsolutePath>,
}

/// The scripts of a directory, by name: files that their owner may execute. None if there is no such directory.
pub(super) fn find(directory: &AbsolutePath, output: &Output) -> Result<Option<Vec<Script>>, Failure> {
    let failed = |error| Failure::wrong(format!("failed to look for scripts in {directory}")).because(error);
    let opened = match Directory::open(directory) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => Arc::new(opened.map_err(failed)?),
    };
    let mut listed = opened.list().map_err(failed)?;
    listed.sort_by(|left, right| left.name.cmp(&right.name));
    let mut scripts = Vec::new();
    for found in listed {
        if found.name.as_bytes().ends_with(OPTIONS.as_bytes()) || found.file_type == FileType::Directory {
            continue;
        }
        let entry = opened.entry(found.name.clone());
        let Some(stat) = entry.stat().map_err(failed)? else {
            continue;
        };
        let path = directory.join(&found.name);
        let shown = visible(&path.to_string()).into_owned();
        if !stat.is_regular() {
            output.warning(format!("{shown} is not run: it is not a file"));
        } else if stat.mode & 0o100 == 0 {
            output.warning(format!("{shown} is not run: its owner may not execute it"));
        } else {
            let mut options = found.name;
            options.push(OPTIONS);
            scripts.push(Script {
                path,
                entry,
                options: opened.entry(options),
            });
        }
    }
    Ok(Some(scripts))
}

/// Refuses a directory from which nothing can be taken away: its scripts would run at every start.
pub(super) fn check_writable(directory: &AbsolutePath) -> Result<(), Failure> {
    let allowed = accessat(
        rustix::fs::CWD,
        directory.as_path(),
        Access::WRITE_OK | Access::EXEC_OK,
        rustix::fs::AtFlags::EACCESS,
    );
    allowed.map_err(|error| {
        Failure::wrong(format!(
            "scripts that have run could not be taken away from {directory}"
        ))
        .because(system_text(&error.into()))
        .hint("they are not run, for they would be run at every start")
    })
}

impl Script {
    /// Where it lies.
    pub(super) fn path(&self) -> &AbsolutePath {
        &self.path
    }

    /// Its name, for messages.
    pub(super) fn name(&self) -> String {
        visible(&self.entry.name().to_string_lossy()).into_owned()
    }

    /// Which program its first line names, if that is not there: the system then says the same as if the script were not there.
    pub(super) fn missing_interpreter(&self) -> Option<String> {
        use std::io::Read;
        let mut start = Vec::new();
        let opened = self.entry.open().ok()?;
        opened.take(256).read_to_end(&mut start).ok()?;
        let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line)
            .trim_start_matches([' ', '\t'])
            .to_owned();
        let program = line.split([' ', '\t']).next()?;
        let is_missing = !std::path::Path::new(program).exists();
        is_missing.then(|| match program.strip_suffix('\r') {
            Some(before) if std::path::Path::new(before).exists() => {
                "its lines end as on Windows, with a carriage return".to_owned()
            }
            _ => format!("its first line names `{}`, which is not there", visible(program)),
        })
    }

    /// What holds for it.
    pub(super) fn options(&self) -> Result<ScriptOptions, Failure> {
        let path = self.options.path();
        let failed = |why: &dyn std::fmt::Display| {
            let shown = path.display().to_string();
            let failure = Failure::wrong(format!(
                "{} is not run: failed to read {}",
                self.name(),
                visible(&shown)
            ));
            failure.because(why)
        };
        let text = match self.options.stat() {
            Ok(None) => return Ok(ScriptOptions::default()),
            Ok(Some(_)) => self.options.read().map_err(|error| failed(&error))?,
            Err(error) => return Err(failed(&error)),
        };
        let text = String::from_utf8(text).map_err(|_| failed(&"it is no text"))?;
        read_options(&text).map_err(|(why, hint)| failed(&why).hint_if(hint))
    }

    /// Makes sure that it can be taken away when it has run.
    pub(super) fn prepare(&self, done: Option<&AbsolutePath>) -> Result<Leave<'_>, Failure> {
        let Some(directory) = done else {
            return Ok(Leave {
                script: self,
                done: None,
            });
        };
        let failed = |why: &dyn std::fmt::Display| {
            let failure = Failure::wrong(format!(
                "{} is not run: it could not be moved to {directory} afterwards",
                self.name()
            ));
            failure.because(why)
        };
        make_directory(directory).map_err(|error| failed(&error))?;
        check_writable(directory).map_err(|failure| failed(&failure))?;
        Ok(Leave {
            script: self,
            done: Some(directory.clone()),
        })
    }
}

impl Leave<'_> {
    /// Takes the script away, and then what holds for it: whoever is killed in between leaves no script without its options.
    pub(super) fn take_away(self) -> Result<(), Failure> {
        for entry in [&self.script.entry, &self.script.options] {
            take_away(entry, self.done.as_ref()).map_err(|error| {
                let shown = entry.path().display().to_string();
                Failure::wrong(format!("failed to take {} away", visible(&shown)))
                    .because(error)
                    .hint("as it is now, the script runs again at the next start")
            })?;
        }
        Ok(())
    }
}

fn take_away(entry: &Entry, done: Option<&AbsolutePath>) -> Result<(), FileError> {
    // A script may have taken itself away.
    if entry.stat()?.is_none() {
        return Ok(());
    }
    let Some(directory) = done else {
        return entry.remove_file();
    };
    let target = Entry::at(&directory.join(entry.name()))?;
    let renamed = rustix::fs::renameat(entry.directory(), entry.name(), target.directory(), target.name());
    if renamed.is_ok() {
        return target.directory().sync();
    }
    // It lies on another file system, or whatever is wrong is told by what copies.
    let mode = entry.stat()?.map(|stat| stat.mode & 0o777);
    let copy = Replace::new(directory.join(entry.name()), Content::Copy(entry.open()?)).mode(mode);
    Committer::new().replace(copy)?;
    entry.remove_file()
}

/// Options as they are written; why not, and what to do.
fn read_options(text: &str) -> Result<ScriptOptions, (String, Option<String>)> {
    let mut sources = SourceMap::default();
    let file = sources.add("options", text);
    let tree = tree::parse(file, text).map_err(|malformed| (malformed.reason, None))?;
    let mut options = ScriptOptions::default();
    let entries = match &tree.value {
        Yaml::Null => return Ok(options),
        Yaml::Map(entries) => entries,
        other => return Err((format!("it has to be a map, and is {}", other.sort()), None)),
    };
    for (key, node) in entries {
        let truth = || match node.value {
            Yaml::Bool(truth) => Ok(truth),
            _ => Err((
                format!(
                    "`{}` has to be `true` or `false`, and is {}",
                    key.text,
                    node.value.sort()
                ),
                None,
            )),
        };
        match &*key.text {
            "keep-on-fail" => options.keep_on_fail = truth()?,
            "no-log" => options.no_log = truth()?,
            "done-dir" => {
                let Some(path) = node.text() else {
                    let why = format!("`done-dir` has to be a path, and is {}", node.value.sort());
                    return Err((why, None));
                };
                let path =
                    AbsolutePath::new(&*path).map_err(|error| (format!("`done-dir`: {error}"), None))?;
                options.done_directory = Some(path);
            }
            other => {
                let meant = did_you_mean(other, ["done-dir", "keep-on-fail", "no-log"]);
                return Err((format!("there is no option `{}`", visible(other)), meant));
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_what_is_wrong_with_them_is_said() {
        let options = read_options("done-dir: /srv/done/\nkeep-on-fail: true\n").unwrap();
        assert_eq!(options.done_directory.unwrap().to_string(), "/srv/done/");
        assert!(options.keep_on_fail && !options.no_log);
        assert_eq!(read_options("# nothing\n").unwrap(), ScriptOptions::default());
        let wrong = |text: &str| read_options(text).unwrap_err();
        assert_eq!(wrong("- a").0, "it has to be a map, and is a list");
        assert_eq!(
            wrong("no-log: 1").0,
            "`no-log` has to be `true` or `false`, and is a number"
        );
        assert_eq!(wrong("done-dir: done/").0, "`done-dir`: the path is not absolute");
        let (why, hint) = wrong("keep-on-fial: true");
        assert_eq!(why, "there is no option `keep-on-fial`");
        assert!(hint.unwrap().contains("keep-on-fail"));
        assert!(!wrong("no-log: [").0.is_empty());
    }
}
