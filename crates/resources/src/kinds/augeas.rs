//! The `augeas` kind: values in a structured text file, by the lenses of Augeas.
//!
//! Augeas is asked through its program `augtool`, which speaks its own language on its standard input, and not through its library: the library is one of
//! C, whose faults would be ours, and that it is loaded at run time would need code that no compiler checks. What is set is in no argument.

use std::collections::BTreeMap;
use std::ffi::OsString;

use setpoint_engine::{
    Apply, DriftValue, Failure, ParameterStruct, Resource, Wanted, WantedOrder, WantedReach, Watch,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::AbsolutePath;
use setpoint_host::processes::{Command, Environment, Finished, Stop};

use crate::sorts::{FILE, PACKAGE_FILE};

/// Values in a structured text file, set through a lens of [Augeas](https://augeas.net), which has to be installed (`augeas-tools`).
///
/// ```mcl
/// augeas "forwarding" {
///     file => "/etc/sysctl.conf",
///     lens => "Sysctl.lns",
///     sets => [struct{path => "net.ipv4.ip_forward", value => "1",},],
/// }
/// ```
///
/// ```mcl
/// augeas "sshd" {
///     file => "/etc/ssh/sshd_config",
///     lens => "Sshd.lns",
///     sets => [
///         struct{path => "PermitRootLogin", value => "no",},
///         struct{path => "PasswordAuthentication", value => "no",},
///     ],
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "augeas", autoedge, asynchronous)]
pub(crate) struct Augeas {
    /// The file.
    file: String,
    /// The lens that knows what is in the file; ends in `.lns`.
    lens: String,
    /// What is set, in order: a path below that of the file, and its value.
    sets: Vec<Set>,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq, ParameterStruct)]
pub(crate) struct Set {
    path: String,
    value: String,
}

/// The program.
const AUGTOOL: &str = "augtool";

/// Where programs of the system are.
const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The node that stands between answers. It is in no file.
const MARK: &str = "/setpoint/mark";

#[async_trait]
impl Resource for Augeas {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match AbsolutePath::new(&self.file) {
            Err(error) => invalid.push(Invalid::parameter("file", format!("{error}: `{}`", self.file))),
            Ok(file) if file.names_directory() => {
                invalid.push(Invalid::parameter("file", "must be a file: it ends in a slash"));
            }
            Ok(_) => {}
        }
        if !self.lens.ends_with(".lns") || self.lens.len() == ".lns".len() {
            let message = format!("`{}` is not the name of a lens: it ends in `.lns`", self.lens);
            invalid
                .push(Invalid::parameter("lens", message).help("Augeas calls it `Hosts.lns`, for example"));
        }
        if self.lens.contains(char::is_whitespace) {
            invalid.push(Invalid::parameter("lens", "must have no white space"));
        }
        for Set { path, .. } in &self.sets {
            if let Some(why) = refused_path(path) {
                invalid.push(Invalid::parameter("sets", format!("`{path}`: {why}")));
            }
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let wanted = |identities| Wanted {
            order: WantedOrder::FoundFirst,
            identities,
            reach: WantedReach::Each,
        };
        let program = PACKAGE_FILE.identity(format!("/usr/bin/{AUGTOOL}").into_bytes());
        vec![wanted(vec![FILE.identity(self.file.as_bytes()), program])]
    }

    fn watches(&self) -> Vec<Watch> {
        AbsolutePath::new(&self.file)
            .ok()
            .into_iter()
            .map(Watch::path)
            .collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if self.sets.is_empty() {
            return Ok(());
        }
        let found = self.values(apply).await?;
        let mut wrong = Vec::new();
        for (set, is) in self.sets.iter().zip(found) {
            if is.as_deref() == Some(&set.value) {
                continue;
            }
            let is = is.map_or(DriftValue::Absent, DriftValue::from);
            let field = match apply.is_sensitive("sets") {
                true => "sets".to_owned(),
                false => set.path.clone(),
            };
            let repair = match apply.is_sensitive("sets") {
                true => apply.drift(field, DriftValue::Sensitive, DriftValue::Sensitive),
                false => apply.drift(field, is, set.value.as_str()),
            };
            if repair {
                wrong.push(set);
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let mut script = self.loading();
        for Set { path, value } in &wrong {
            script.push(format!("set {} {}", quoted(&self.node(path)), quoted(value)));
        }
        script.extend(["save".to_owned(), ask(MARK)]);
        script.extend(self.asking_for_problems());
        let answers = self.run(script, "write", apply).await?;
        let problems = answers.split(|line| line.starts_with(MARK)).nth(1);
        self.told(problems.unwrap_or_default(), "write")?;
        // What is in the file now: a new entry of a list may have got another number, and each run would add one more.
        for (set, is) in self.sets.iter().zip(self.values(apply).await?) {
            if is.as_ref() != Some(&set.value) {
                let why = format!(
                    "what was set at `{}` is not there when the file is read again; name the place as Augeas numbers it",
                    set.path
                );
                return Err(Failure::new("write").on(&self.file).because(why));
            }
        }
        Ok(())
    }
}

impl Augeas {
    /// The values that are there now, none for one that is not.
    async fn values(&self, apply: &Apply<'_>) -> Result<Vec<Option<String>>, Failure> {
        let mut script = self.loading();
        for Set { path, .. } in &self.sets {
            script.extend([ask(MARK), ask(&self.node(path))]);
        }
        let answers = self.run(script, "read", apply).await?;
        let mut sections = answers.split(|line| line.starts_with(MARK));
        self.told(sections.next().unwrap_or_default(), "read")?;
        Ok(sections
            .map(|section| section.first().and_then(|line| value(line)))
            .collect())
    }

    /// The path of a node in the tree.
    fn node(&self, path: &str) -> String {
        // In the language of paths two slashes mean *anywhere below*.
        format!("{}/{}", self.root(), path.trim_start_matches('/'))
    }

    fn root(&self) -> String {
        format!("/files{}", escaped(&self.file))
    }

    /// What reads the file, and then asks what went wrong.
    fn loading(&self) -> Vec<String> {
        let mut script = vec![
            format!("set /augeas/load/Setpoint/lens {}", quoted(&self.lens)),
            format!("set /augeas/load/Setpoint/incl {}", quoted(&glob_of(&self.file))),
            "load".to_owned(),
            format!("set {MARK} here"),
        ];
        script.extend(self.asking_for_problems());
        script
    }

    fn asking_for_problems(&self) -> [String; 2] {
        let of_file = format!("/augeas{}/error", self.root());
        [ask("/augeas/load/Setpoint/error"), ask(&of_file)]
    }

    /// Fails with what Augeas says of the file or of the lens, if it says something.
    fn told(&self, lines: &[String], attempted: &'static str) -> Result<(), Failure> {
        let Some(first) = lines.iter().find_map(|line| value(line)) else {
            return Ok(());
        };
        let of = |name: &str| {
            let ending = format!("/{name} = ");
            let line = lines.iter().find(|line| line.contains(&ending))?;
            value(line)
        };
        let mut why = match of("message") {
            Some(message) => message.trim().to_owned(),
            None => first,
        };
        if let (Some(line), Some(column)) = (of("line"), of("char")) {
            why = format!("line {line}, column {column}: {why}");
        }
        let target = format!("{} with the lens {}", self.file, self.lens);
        Err(Failure::new(attempted).on(target).because(why))
    }

    /// Runs a script, and answers the lines that it prints.
    async fn run(
        &self,
        script: Vec<String>,
        attempted: &'static str,
        apply: &Apply<'_>,
    ) -> Result<Vec<String>, Failure> {
        // A shell hands the script over, because what is in the environment nobody else can read, unlike arguments.
        let shell = format!("printf %s \"$SCRIPT\" | exec {AUGTOOL} --noautoload --root /");
        let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
        environment.insert("PATH".into(), SEARCH.into());
        environment.insert("LC_ALL".into(), "C.UTF-8".into());
        environment.insert("SCRIPT".into(), (script.join("\n") + "\n").into());
        let command = Command::shell("/bin/sh", shell).environment(Environment::Exactly(environment));
        let cancellation = apply.cancellation();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: cancellation.interrupt_token().clone(),
            ..Stop::default()
        };
        let failed = || Failure::new(attempted).on(&self.file);
        let finished = apply.handle().processes().run(&command, &stop).await;
        cancellation.check(attempted)?;
        let finished = finished.map_err(|error| failed().because(error))?;
        let said = String::from_utf8_lossy(&finished.output.stderr()).into_owned();
        if said.contains(&format!("{AUGTOOL}: not found"))
            || said.contains(&format!("{AUGTOOL}: No such file"))
        {
            let why = format!(
                "there is no program `{AUGTOOL}`; the package `augeas-tools` has it (`augeas` on Fedora)"
            );
            return Err(failed().because(why));
        }
        let lines = String::from_utf8_lossy(&finished.output.stdout()).into_owned();
        let lines: Vec<String> = lines.lines().map(ToOwned::to_owned).collect();
        // Problems of the file itself are asked for, and are said better there.
        if !finished.exit.is_success() && self.told(&lines, attempted).is_ok() {
            return Err(failed().because(complaint(&finished, &said)));
        }
        Ok(lines)
    }
}

/// What a script has to say if it did not run to its end.
fn complaint(finished: &Finished, said: &str) -> String {
    let said: Vec<&str> = said
        .lines()
        .map(|line| line.trim().trim_start_matches("error: "))
        .filter(|line| !line.is_empty() && *line != "Failed to execute command")
        .collect();
    match said.as_slice() {
        [] => format!("`{AUGTOOL}` ended with {}", finished.exit),
        said => said.join("; "),
    }
}

fn ask(node: &str) -> String {
    format!("print {}", quoted(node))
}

/// Why no value can be set at a path.
fn refused_path(path: &str) -> Option<&'static str> {
    if path.trim_matches('/').is_empty() {
        Some("it is empty")
    } else if path.contains("last()+1") || path.contains("last() + 1") {
        Some("each run would append one more; name the place, such as `[3]`")
    } else if path.contains("//") || path.contains('*') {
        Some("it means more than one place")
    } else if path.contains(['\n', '\r', '\0']) {
        Some("it is no more than one line")
    } else {
        None
    }
}

/// A text in quotes, as `augtool` reads it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            sign => quoted.push(sign),
        }
    }
    quoted + "\""
}

/// A pattern of file names that only this one fits.
fn glob_of(path: &str) -> String {
    let mut pattern = String::new();
    for sign in path.chars() {
        if "*?[]\\".contains(sign) {
            pattern.push('\\');
        }
        pattern.push(sign);
    }
    pattern
}

/// The path of a file, with what means something in the language of paths made to mean itself.
fn escaped(path: &str) -> String {
    let mut escaped = String::new();
    for sign in path.chars() {
        if "][|()=!, \t\\\"'".contains(sign) {
            escaped.push('\\');
        }
        escaped.push(sign);
    }
    escaped
}

/// The value in a line that says `PATH = "VALUE"`; none if there is none.
fn value(line: &str) -> Option<String> {
    // No label of a lens has this in it.
    let (_, rest) = line.split_once(" = \"")?;
    let quoted = rest.strip_suffix('"')?;
    let mut value = String::new();
    let mut signs = quoted.chars();
    while let Some(sign) = signs.next() {
        if sign != '\\' {
            value.push(sign);
            continue;
        }
        match signs.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some(other) => value.push(other),
            None => {}
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_quoted() {
        for text in ["", "a", "a b", "a\"b'c", "a\\b\n\tc", "ä = \"x\""] {
            assert_eq!(
                value(&format!("/files/etc/a/b[1] = {}", quoted(text))).as_deref(),
                Some(text)
            );
        }
        assert_eq!(value("/files/etc/a"), None);
    }
}
