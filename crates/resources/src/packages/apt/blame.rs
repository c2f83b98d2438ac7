//! What `apt-get`, `apt-mark` and `dpkg` say when something goes wrong, in English.

use super::Ended;

/// Whom a failed command blames, and for what, of each name; none of those that it does not blame.
pub(super) fn blamed(ended: &Ended, names: &[&str]) -> Vec<Option<String>> {
    let found = complaints(ended);
    names
        .iter()
        .map(|name| {
            let bare = name.split(':').next().unwrap_or(name);
            let of_it: Vec<&str> = found
                .iter()
                .filter(|(blamed, _)| blamed.split(':').next() == Some(bare))
                .map(|(_, why)| why.as_str())
                .collect();
            (!of_it.is_empty()).then(|| of_it.join("; "))
        })
        .collect()
}

/// Packages that are blamed, and for what.
fn complaints(ended: &Ended) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = ended.stdout.lines().chain(ended.stderr.lines()).collect();
    let quoted = |line: &str, begin: &str| {
        let rest = line.strip_prefix(begin)?;
        Some(rest.split('\'').next().unwrap_or(rest).to_owned())
    };
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = line.strip_prefix("E: Unable to locate package ") {
            found.push((
                name.trim().to_owned(),
                "no source of packages has one of this name".to_owned(),
            ));
        } else if let Some(name) = quoted(line, "E: Package '") {
            found.push((name, line.trim_start_matches("E: ").to_owned()));
        } else if let Some(rest) = line.strip_prefix("E: Version '")
            && let Some((version, rest)) = rest.split_once("' for '")
            && let Some((name, _)) = rest.split_once('\'')
        {
            found.push((name.to_owned(), format!("there is no version {version} of it")));
        } else if let Some(name) = quoted(line, "E: Couldn't find any package by glob '") {
            found.push((name, "no source of packages has one of this name".to_owned()));
        } else if let Some(rest) = line.strip_prefix("dpkg: error processing package ") {
            let name = rest.split([' ', ':']).next().unwrap_or(rest);
            let why = lines.get(at + 1).map_or(*line, |next| next.trim());
            found.push((name.to_owned(), why.to_owned()));
        } else if let Some(rest) = line.strip_prefix("dpkg: error processing archive ") {
            // The archive is called like its package, which dpkg names only here.
            let file = rest.split(' ').next().and_then(|path| path.rsplit('/').next());
            let name = file.and_then(|file| file.split('_').next()).unwrap_or_default();
            let why = lines.get(at + 1).map_or(*line, |next| next.trim());
            found.push((name.to_owned(), why.to_owned()));
        } else if line.starts_with("The following packages have unmet dependencies:") {
            let mut blamed = String::new();
            for line in &lines[at + 1..] {
                let Some(rest) = line.strip_prefix(' ') else {
                    break;
                };
                if let Some((name, why)) = rest.split_once(" : ") {
                    blamed = name.trim().to_owned();
                    found.push((blamed.clone(), why.trim().to_owned()));
                } else if !blamed.is_empty() {
                    found.push((blamed.clone(), rest.trim().to_owned()));
                }
            }
        } else if line.contains("The following packages cannot be authenticated!") {
            let names = lines[at + 1..].iter().take_while(|line| line.starts_with(' '));
            for name in names.flat_map(|line| line.split_whitespace()) {
                let why = "it is not signed; `allowuntrusted => true` allows that";
                found.push((name.to_owned(), why.to_owned()));
            }
        } else if let Some((list, why)) = list_before(&lines, at) {
            for name in list {
                found.push((name.to_owned(), why.to_owned()));
            }
        }
    }
    found
}

/// Packages in a list that `apt-get` prints before it refuses to do to them what it lists, if the line begins such a list.
fn list_before<'a>(lines: &[&'a str], at: usize) -> Option<(Vec<&'a str>, &'static str)> {
    let says = |text: &str| lines.iter().any(|line| line.contains(text));
    let why = if lines[at].starts_with("The following packages will be DOWNGRADED:")
        && says("Packages were downgraded and -y was used")
    {
        "a later version is installed; `allowdowngrade => true` allows to go back"
    } else if lines[at].starts_with("The following held packages will be changed:")
        && says("Held packages were changed and -y was used")
    {
        "it is held; set `hold`, or let go of it with `apt-mark unhold`"
    } else {
        return None;
    };
    let names = lines[at + 1..].iter().take_while(|line| line.starts_with(' '));
    Some((names.flat_map(|line| line.split_whitespace()).collect(), why))
}

/// Whether dpkg did not come to an end before.
pub(super) fn was_interrupted(ended: &Ended) -> bool {
    ended.stderr.contains("dpkg was interrupted") || ended.stderr.contains("dpkg --configure -a")
}

/// Whether it may be that what can be had is not known well enough.
pub(super) fn may_be_outdated(ended: &Ended) -> bool {
    [
        "Unable to locate package",
        "has no installation candidate",
        "was not found",
        "Failed to fetch",
        "Unable to fetch some archives",
        "Couldn't find any package",
    ]
    .into_iter()
    .any(|sign| ended.stderr.contains(sign))
}

/// Who has locked the packages, if that is why it failed.
pub(super) fn holder_of_the_lock(ended: &Ended) -> Option<String> {
    let said = &ended.stderr;
    let is_locked = [
        "Could not get lock",
        "is another process using it",
        "lock was locked by",
        "is locked by another process",
    ]
    .into_iter()
    .any(|sign| said.contains(sign));
    if !is_locked {
        return None;
    }
    // «It is held by process 4242 (apt-get)», «… is locked by another process with pid 4242»
    let by = said.split_once("held by process ").map(|(_, rest)| rest);
    let by = by.or_else(|| said.split_once("with pid ").map(|(_, rest)| rest));
    let holder = by.and_then(|rest| {
        let process: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let name = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        let name = name
            .map(|(name, _)| name)
            .filter(|_| rest[process.len()..].starts_with(" ("));
        (!process.is_empty()).then(|| match name {
            Some(name) => format!("{name} (process {process})"),
            None => format!("process {process}"),
        })
    });
    Some(holder.unwrap_or_else(|| "somebody else".to_owned()))
}

/// The most that it says of why it failed.
pub(super) fn said(ended: &Ended) -> String {
    let is_error =
        |line: &&str| !line.starts_with("N: ") && (!line.starts_with("W: ") || line.contains("GPG error"));
    let errors = ended.stderr.lines().filter(is_error);
    let errors = errors.map(|line| line.trim_start_matches("E: ").trim_start_matches("W: ").trim());
    let mut said: Vec<&str> = errors.filter(|line| !line.is_empty()).collect();
    said.dedup();
    match said.as_slice() {
        [] => format!("it ended with {}", ended.how),
        said => said.iter().take(6).copied().collect::<Vec<&str>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(stdout: &str, stderr: &str) -> Ended {
        Ended {
            is_success: false,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            how: "status 100".to_owned(),
        }
    }

    #[test]
    fn who_is_named_is_blamed() {
        let of = |stdout: &str, stderr: &str| {
            let blamed = blamed(&ended(stdout, stderr), &["good", "bad"]);
            assert_eq!(blamed[0], None);
            blamed[1].clone().unwrap_or_default()
        };
        assert!(of("", "E: Unable to locate package bad\n").contains("no source of packages"));
        assert!(
            of("", "E: Package 'bad' has no installation candidate\n").contains("no installation candidate")
        );
        assert_eq!(
            of("", "E: Version '9' for 'bad' was not found\n"),
            "there is no version 9 of it"
        );
        let unmet = "The following packages have unmet dependencies:\n bad : Depends: nothing but it is not installable\n       Conflicts: other\n";
        assert_eq!(
            of(
                unmet,
                "E: Unable to correct problems, you have held broken packages.\n"
            ),
            "Depends: nothing but it is not installable; Conflicts: other"
        );
        let script = "dpkg: error processing package bad (--configure):\n installed bad package post-installation script subprocess returned error exit status 3\n\
            Errors were encountered while processing:\n bad\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n";
        assert_eq!(
            of("", script),
            "installed bad package post-installation script subprocess returned error exit status 3"
        );
        let archive = "dpkg: error processing archive /var/cache/apt/archives/bad_1_all.deb (--unpack):\n trying to overwrite '/x', which is also in package y 1\n";
        assert!(of("", archive).contains("trying to overwrite"));
        let lower = "The following packages will be DOWNGRADED:\n  bad\n0 upgraded\n";
        let refused = "E: Packages were downgraded and -y was used without --allow-downgrades.\n";
        assert!(of(lower, refused).contains("allowdowngrade"));
    }

    #[test]
    fn who_holds_the_lock_is_named() {
        let of = |said: &str| holder_of_the_lock(&ended("", said));
        let locked =
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4242 (apt-get)\n";
        assert_eq!(of(locked).as_deref(), Some("apt-get (process 4242)"));
        let locked = "dpkg: error: dpkg frontend lock was locked by another process with pid 17\n";
        assert_eq!(of(locked).as_deref(), Some("process 17"));
        assert_eq!(
            of("E: Could not get lock /x - open (11: Try again)").as_deref(),
            Some("somebody else")
        );
        assert_eq!(of("E: Unable to locate package x"), None);
    }
}
