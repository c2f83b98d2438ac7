//! The `augeas` kind: values in a structured text file, by the lenses of Augeas.
//!
//! Augeas is asked through its program `augtool`, which speaks its own language on its standard input, and not through its library: the library is one of
//! C, whose faults would be ours, and that it is loaded at run time would need code that no compiler checks. What is set is in no argument.
//!
//! It writes a copy in the private directory of the resource. What has become of that is put in the place of the file as all kinds do it: by whoever follows no link of
//! another user, and whole.

use std::collections::BTreeMap;
use std::ffi::OsString;

use setpoint_engine::{
    Apply, Attempting, Claim, DriftValue, Failure, Identity, ParameterStruct, Resource, Stake, Wanted, Watch,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::processes::{Command, Environment, Finished, Stop};
use tokio::task::block_in_place;

use crate::edited_file::EditedFile;
use crate::sorts::{ENTRY, PACKAGE_FILE};
use crate::text_lines::read;
use crate::turns::Turn;

/// Values in a structured text file, set through a lens of [Augeas](https://augeas.net), which has to be installed (`augeas-tools`).
///
/// ```mcl
/// augeas "forwarding" {
///     file => "/etc/sysctl.conf",
///     lens => "Sysctl.lns",
///     sets => [struct{path => "net.ipv4.ip_forward", value => "1"}],
/// }
/// ```
///
/// ```mcl
/// augeas "sshd" {
///     file => "/etc/ssh/sshd_config",
///     lens => "Sshd.lns",
///     sets => [
///         struct{path => "PermitRootLogin", value => "no"},
///         struct{path => "PasswordAuthentication", value => "no"},
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

/// What starts the program as somebody without a home; the first that is allowed is taken.
///
/// It keeps a history of what is typed in the home of its real user, also when nothing is typed, and has no option against that. A look must change nothing,
/// so its real user is 65535, which systemd and the kernel's 16-bit calls keep free of accounts; the rights are those of the effective user, which stays, also when
/// `access` asks for those of the real one. An ordinary user gets the same number in a name space of users. Where neither is allowed, the history is made.
const WITHOUT_HOME: [&str; 2] = [
    "setpriv --ruid=65535 --securebits=+no_setuid_fixup",
    "unshare --user --map-user=65535",
];

/// Where programs of the system are.
const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The node that stands between answers. It is in no file.
const MARK: &str = "/setpoint/mark";

/// How much of a script is in one variable of the environment. The kernel takes up to 128 KiB.
const PIECE: usize = 64 << 10;

/// How much is told of what Augeas says. It shows the whole tree of a file that it cannot write.
const LONGEST_COMPLAINT: usize = 300;

/// The name of the copy in which is written.
const COPY: &str = "copy";

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

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        let file = EditedFile::named(&self.file);
        // Of several for one path the last one holds.
        let last: BTreeMap<&str, &str> = self
            .sets
            .iter()
            .map(|set| (set.path.as_str(), set.value.as_str()))
            .collect();
        let parts = last
            .iter()
            .map(|(path, value)| file.part(&ENTRY, path.as_bytes(), Stake::value(value.as_bytes())));
        match self.sets.is_empty() {
            true => Vec::new(),
            false => file.claims(parts),
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let program = PACKAGE_FILE.identity(format!("/usr/bin/{AUGTOOL}").into_bytes());
        let mut wanted = EditedFile::named(&self.file).wanted();
        wanted.push(Wanted::first_of_each([program]));
        wanted
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
        let path = AbsolutePath::new(&self.file).attempting("use the file", &self.file)?;
        let _turn = Turn::at_file(&path, apply).await?;
        // Augeas follows every link; this refuses those that another user may have planted.
        let before = block_in_place(|| read(&path))?;
        let found = self.values(&View::of_file(&self.file), "read", apply).await?;
        let mut wrong = Vec::new();
        for (set, is) in self.sets.iter().zip(found) {
            if is.as_deref() == Some(&set.value) {
                continue;
            }
            let is = is.map_or(DriftValue::Absent, DriftValue::from);
            let repair = match apply.is_sensitive("sets") {
                true => apply.drift("sets", DriftValue::Sensitive, DriftValue::Sensitive),
                false => apply.drift(set.path.clone(), is, set.value.as_str()),
            };
            if repair {
                wrong.push(set);
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let copy = Draft::of(before.as_deref(), apply)?;
        let after = self.write(&wrong, &copy, apply).await?;
        let mode = if apply.has_sensitive() { 0o600 } else { 0o644 };
        let request = Replace::bytes(path, after).mode(before.is_none().then_some(mode));
        block_in_place(|| apply.replace_at_once(request))?;
        Ok(())
    }
}

/// A file as Augeas sees it: the root of its file system, and the path below that.
struct View {
    root: String,
    file: String,
}

impl View {
    fn of_file(file: &str) -> View {
        View {
            root: "/".to_owned(),
            file: file.to_owned(),
        }
    }

    /// Where the file is in the tree.
    fn tree(&self) -> String {
        format!("/files{}", escaped(&self.file))
    }

    /// The path of a node in the tree.
    fn node(&self, path: &str) -> String {
        // In the language of paths two slashes mean *anywhere below*.
        format!("{}/{}", self.tree(), path.trim_start_matches('/'))
    }
}

/// A copy of the file, for as long as it is written in.
struct Draft {
    entry: Entry,
    view: View,
}

impl Draft {
    fn of(content: Option<&[u8]>, apply: &Apply<'_>) -> Result<Draft, Failure> {
        let attempted = "make a copy to write in";
        let root = apply.handle().var_dir()?;
        let directory = root
            .as_path()
            .to_str()
            .ok_or_else(|| Failure::new(attempted).because("the path of the state is not UTF-8"))?;
        let path = AbsolutePath::new(format!("{directory}/{COPY}")).attempting(attempted, &root)?;
        let copy = Draft {
            entry: Entry::at(&path).attempting(attempted, &path)?,
            view: View {
                root: directory.to_owned(),
                file: format!("/{COPY}"),
            },
        };
        copy.remove();
        if let Some(content) = content {
            let written = block_in_place(|| copy.entry.append(content, 0o600));
            written.attempting(attempted, &path)?;
        }
        Ok(copy)
    }

    fn remove(&self) {
        // What is left behind is removed by the next run.
        let _ = block_in_place(|| self.entry.remove_file());
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Augeas {
    /// The values that are there now, none for one that is not.
    async fn values(
        &self,
        view: &View,
        attempted: &'static str,
        apply: &Apply<'_>,
    ) -> Result<Vec<Option<String>>, Failure> {
        let mut script = self.loading(view);
        for Set { path, .. } in &self.sets {
            script.extend([ask(MARK), ask(&view.node(path))]);
        }
        let answers = self.run(script, view, attempted, apply).await?;
        let mut sections = answers.split(|line| line.starts_with(MARK));
        self.told(sections.next().unwrap_or_default(), attempted)?;
        Ok(sections
            .map(|section| section.first().and_then(|line| value(line)))
            .collect())
    }

    /// Sets values in a copy, and answers what it holds then.
    async fn write(&self, wrong: &[&Set], copy: &Draft, apply: &Apply<'_>) -> Result<Vec<u8>, Failure> {
        let attempted = "write";
        let view = &copy.view;
        let mut script = self.loading(view);
        for Set { path, value } in wrong {
            script.push(format!("set {} {}", quoted(&view.node(path)), quoted(value)));
        }
        script.extend(["save".to_owned(), ask(MARK)]);
        script.extend(asking_for_problems(view));
        let answers = self.run(script, view, attempted, apply).await?;
        let problems = answers.split(|line| line.starts_with(MARK)).nth(1);
        self.told(problems.unwrap_or_default(), attempted)?;
        // What is in it now: a new entry of a list may have got another number, and each run would add one more.
        for (set, is) in self.sets.iter().zip(self.values(view, attempted, apply).await?) {
            if is.as_ref() != Some(&set.value) {
                let why = format!(
                    "what was set at `{}` is not there when the file is read again; name the place as Augeas numbers it",
                    set.path
                );
                return Err(Failure::new(attempted).on(&self.file).because(why));
            }
        }
        let written = block_in_place(|| copy.entry.read());
        written.attempting(attempted, &self.file)
    }

    /// What reads the file, and then asks what went wrong.
    fn loading(&self, view: &View) -> Vec<String> {
        let mut script = vec![
            format!("set /augeas/load/Setpoint/lens {}", quoted(&self.lens)),
            format!("set /augeas/load/Setpoint/incl {}", quoted(&glob_of(&view.file))),
            "load".to_owned(),
            format!("set {MARK} here"),
        ];
        script.extend(asking_for_problems(view));
        script
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
            Some(message) => shortened(message.trim()),
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
        view: &View,
        attempted: &'static str,
        apply: &Apply<'_>,
    ) -> Result<Vec<String>, Failure> {
        // A shell hands the script over, because what is in the environment nobody else can read, unlike arguments.
        let script = script.join("\n") + "\n";
        let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
        environment.insert("PATH".into(), SEARCH.into());
        environment.insert("LC_ALL".into(), "C.UTF-8".into());
        environment.insert("ROOT".into(), view.root.clone().into());
        let mut shell = "printf %s".to_owned();
        for (number, piece) in pieces(&script).into_iter().enumerate() {
            environment.insert(format!("SCRIPT_{number}").into(), piece.into());
            shell.push_str(&format!(" \"$SCRIPT_{number}\""));
        }
        let start = format!("{AUGTOOL} --noautoload --root \"$ROOT\"");
        let ways =
            WITHOUT_HOME.map(|way| format!("if {way} true 2>/dev/null; then exec {way} {start}; fi; "));
        shell.push_str(&format!(" | {{ {}exec {start}; }}", ways.concat()));
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
        said => shortened(&said.join("; ")),
    }
}

/// The beginning of what is said, if that is long.
fn shortened(said: &str) -> String {
    match said.char_indices().nth(LONGEST_COMPLAINT) {
        Some((end, _)) => format!("{}…", said[..end].trim_end()),
        None => said.to_owned(),
    }
}

/// A script in pieces that the environment has room for.
fn pieces(script: &str) -> Vec<&str> {
    let mut rest = script;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, further) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = further;
    }
    pieces
}

fn asking_for_problems(view: &View) -> [String; 2] {
    let of_file = format!("/augeas{}/error", view.tree());
    [ask("/augeas/load/Setpoint/error"), ask(&of_file)]
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
            // It knows no others.
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
            Some('a') => value.push('\u{7}'),
            Some('b') => value.push('\u{8}'),
            Some('v') => value.push('\u{b}'),
            Some('f') => value.push('\u{c}'),
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
