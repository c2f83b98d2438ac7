//! How `near` is let in by `far`: whom it trusts, with keys, with passwords.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use setpoint_testing::etcd::EtcdCluster;
use setpoint_testing::sshd::{PASSWORD, SshServer, add_line, make_key};

use super::fixture::Far;
use super::{ENDS, ENDS_WITH_3, SAYS, STAYS};
use crate::several_hosts::becomes;

/// Has the server take passwords, as many as one wants to try.
const TAKES_PASSWORDS: &str = "PasswordAuthentication yes\n";

impl Far {
    fn with_passwords(test: &str, sshd: &str) -> Option<Far> {
        let far = Far::start_with(test, || EtcdCluster::start(1), sshd)?;
        far.deploy(SAYS);
        Some(far)
    }

    /// A resource for which somebody is asked for the password.
    fn asking(&self, further: &str) -> String {
        self.resource_with(&format!(
            "hostkey => \"{}\",\n\tssh_id => \"\",\n\tinteractive => true,\n\t{ENDS}\n\t{further}",
            self.server.host_key("ed25519")
        ))
    }

    /// Runs it on a terminal of its own.
    fn at_terminal(&self, program: &str) -> Terminal {
        let command = self.command(&self.binary, &["--once"], program);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line: Vec<String> = words
            .map(|word| format!("'{}'", word.to_string_lossy()))
            .collect();
        let mut terminal = self.cluster.place.command("script");
        terminal
            .args(["-q", "-e", "-f", "-c"])
            .arg(format!("stty echo; exec {}", line.join(" ")))
            .arg("/dev/null")
            .env("SHELL", "/bin/sh");
        Terminal::start(terminal)
    }
}

/// A program on a terminal, at which somebody sits.
struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: Receiver<u8>,
    seen: String,
}

impl Terminal {
    fn start(mut command: Command) -> Terminal {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a `script`");
        let keyboard = child.stdin.take().expect("it was piped");
        let mut output = child.stdout.take().expect("it was piped");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut byte = [0];
            while output.read_exact(&mut byte).is_ok() && sender.send(byte[0]).is_ok() {}
        });
        Terminal {
            child,
            keyboard,
            screen,
            seen: String::new(),
        }
    }

    /// Waits until something is on the screen that was not there before.
    #[track_caller]
    fn shows(&mut self, wanted: &str) {
        let before = self.seen.len();
        while !self.seen[before..].contains(wanted) {
            match self.screen.recv_timeout(Duration::from_secs(60)) {
                Ok(byte) => self.seen.push(char::from(byte)),
                Err(_) => panic!("no `{wanted}` in\n{}", self.seen),
            }
        }
    }

    fn enter(&mut self, text: &str) {
        writeln!(self.keyboard, "{text}").expect("it listens");
    }

    /// Waits for its end, and gives its status and all that was on the screen.
    fn end(mut self) -> (i32, String) {
        let status = self.child.wait().expect("it is ours");
        while let Ok(byte) = self.screen.recv_timeout(Duration::from_secs(5)) {
            self.seen.push(char::from(byte));
        }
        (status.code().unwrap_or(-1), self.seen)
    }
}

#[test]
fn a_host_that_is_not_known_or_another_one_is_refused() {
    let Some(far) = Far::start("a_host_that_is_not_known_or_another_one_is_refused") else {
        return;
    };
    let other = SshServer::start(&["ed25519"], "");
    let key = far.server.user_key().display().to_string();
    let with = |further: &str| far.resource_with(&format!("ssh_id => \"{key}\",\n\t{ENDS}\n\t{further}"));
    far.fails(&[], &with(""), "is not known: it shows the key ssh-ed25519");
    let ran = far.once(
        &[],
        &with(&format!("hostkey => \"{}\",", other.host_key("ed25519"))),
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("and not the given ssh-ed25519"),
        "{}",
        ran.stderr
    );
    assert_eq!(far.server.there("ls -A /var/lib"), "");
    add_line(
        &far.cluster.place.home().join(".ssh/known_hosts"),
        &far.server.known_hosts_line("ed25519"),
    );
    far.deploy(SAYS);
    assert_eq!(far.once(&[], &with("")).code, 0);
}

#[test]
fn without_a_key_that_is_taken_nothing_is_done() {
    let Some(far) = Far::start("without_a_key_that_is_taken_nothing_is_done") else {
        return;
    };
    let stranger = far.cluster.place.path("stranger");
    make_key(&stranger, "ed25519", "");
    let host_key = format!("hostkey => \"{}\",", far.server.host_key("ed25519"));
    let ran = far.once(
        &[],
        &far.resource_with(&format!(
            "{host_key}\n\tssh_id => \"{}\",\n\t{STAYS}",
            stranger.display()
        )),
    );
    assert!(ran.stderr.contains("it does not take the key"), "{}", ran.stderr);
    let ran = far.once(&[], &far.resource_with(&format!("{host_key}\n\t{STAYS}")));
    assert!(
        ran.stderr.contains("there is no private key to show"),
        "{}",
        ran.stderr
    );
    // Found at home.
    let directory = far.cluster.place.home().join(".ssh");
    std::fs::create_dir_all(&directory).expect("the place is writable");
    for end in ["", ".pub"] {
        let from = format!("{}{end}", far.server.user_key().display());
        std::fs::copy(from, directory.join(format!("id_ed25519{end}"))).expect("the place is writable");
    }
    far.deploy(SAYS);
    let ran = far.once(&[], &far.resource_with(&format!("{host_key}\n\t{ENDS}")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = far.once(
        &[],
        &far.resource_with(&format!(
            "{host_key}\n\tssh_id => \"~/.ssh/id_ed25519\",\n\t{ENDS}"
        )),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_password_in_the_url_is_used_and_shown_nowhere() {
    let test = "a_password_in_the_url_is_used_and_shown_nowhere";
    let Some(far) = Far::with_passwords(test, TAKES_PASSWORDS) else {
        return;
    };
    let url = |password: &str| far.server.url().replace("root@", &format!("root:{password}@"));
    let with = |password: &str, further: &str| {
        far.resource_with(&format!(
            "remote => sensitive(\"{}\"),\n\tallow_cleartext_password => true,\n\tssh_id => \"\",\n\thostkey => \"{}\",\n\t{further}",
            url(password),
            far.server.host_key("ed25519")
        ))
    };
    let hidden = |said: &str, password: &str| assert!(!said.contains(password), "{said}");
    for further in [&["-v", "-v"][..], &["--json"], &["--noop", "-v"]] {
        let ran = far.once(further, &with(PASSWORD, ENDS));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        hidden(&ran.stderr, PASSWORD);
        hidden(&ran.stdout, PASSWORD);
    }
    becomes(&far.cluster.place.path("far.says"), "joined");
    let wrong = "wrong-hush-4459";
    for further in [&["-v", "-v"][..], &["--json"]] {
        let ran = far.once(further, &with(wrong, ENDS));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let said = ran.stderr + &ran.stdout;
        assert!(said.contains("it does not take the password"), "{said}");
        hidden(&said, wrong);
    }
    far.deploy(ENDS_WITH_3);
    let ran = far.once(&["-v"], &with(PASSWORD, ENDS));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    hidden(&ran.stderr, PASSWORD);
    no_side_keeps_the_password(&far);
    // Without leave it is refused where it stands; a secret keeps the reason to itself.
    let forbidden = with(PASSWORD, ENDS).replace("\tallow_cleartext_password => true,\n", "");
    let said = far.fails(&[], &forbidden, "error[E0411]");
    assert!(said.contains("near.mcl:3:2"), "{}", said);
    let plain = with(PASSWORD, ENDS).replace("sensitive(", "(");
    let in_name = format!(
        "remote \"{}\" {{\n\tallow_cleartext_password => true,\n}}\n",
        url(PASSWORD)
    );
    a_password_that_is_shown_is_warned_of(&far, plain, in_name.clone());
    let forbidden = in_name.replace("true", "false");
    let ran = far.once(&[], &forbidden);
    assert!(
        ran.code == 1
            && ran
                .stderr
                .contains("there is a password in the URL, which is not allowed"),
        "{}",
        ran.stderr
    );
}

fn no_side_keeps_the_password(far: &Far) {
    let kept = Command::new("grep")
        .args(["-r", "-a", "-l", PASSWORD])
        .arg(far.cluster.place.path("prefix-near"))
        .output()
        .expect("there is a `grep`");
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "");
    assert_eq!(
        far.server
            .there(&format!("grep -r -a -l {PASSWORD} /var/lib /run || true")),
        ""
    );
}

fn a_password_that_is_shown_is_warned_of(far: &Far, plain: String, in_name: String) {
    for (program, warning) in [
        (
            plain,
            "the password in the URL is shown wherever the parameter is",
        ),
        (
            in_name,
            "the password in the name is shown wherever the resource is",
        ),
    ] {
        let plain = far
            .cluster
            .place
            .write("plain.mcl", program)
            .display()
            .to_string();
        let checked = far.cluster.place.run(&far.binary, &["check", &plain]);
        assert!(checked.stderr.contains(warning), "{}", checked.stderr);
    }
}

#[test]
fn somebody_is_asked_for_the_password_and_nobody_sees_it() {
    let test = "somebody_is_asked_for_the_password_and_nobody_sees_it";
    let Some(far) = Far::with_passwords(test, TAKES_PASSWORDS) else {
        return;
    };
    let question = format!("Password of root at 127.0.0.1:{}: ", far.server.port());
    let mut terminal = far.at_terminal(&far.asking(""));
    terminal.shows(&question);
    terminal.enter("not-the-one-9917");
    terminal.shows(&format!("It was not right. {question}"));
    terminal.enter(PASSWORD);
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert!(
        !seen.contains("not-the-one-9917") && !seen.contains(PASSWORD),
        "{seen}"
    );
    becomes(&far.cluster.place.path("far.says"), "joined");
    // As often as is said, and no longer.
    let mut terminal = far.at_terminal(&far.asking("max_password_tries => 2,"));
    for _ in 0..2 {
        terminal.shows(&question);
        terminal.enter("wrong");
    }
    let (code, seen) = terminal.end();
    assert_eq!(code, 1, "{seen}");
    assert!(
        seen.contains("it does not take any of the 2 passwords that were entered"),
        "{seen}"
    );
    let mut terminal = far.at_terminal(&far.asking("interactive_timeout => 1,"));
    terminal.shows(&question);
    let (code, seen) = terminal.end();
    assert_eq!(code, 1, "{seen}");
    assert!(seen.contains("nobody has entered a password in 1 s"), "{seen}");
    // Where there is no terminal, nobody is asked.
    let mut apart = Command::new("setsid");
    let command = far.command(&far.binary, &["--once"], &far.asking(""));
    apart.arg(command.get_program()).args(command.get_args());
    apart.env("HOME", far.cluster.place.home()).stdin(Stdio::null());
    let ran = apart.output().expect("there is a `setsid`");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(
        said.contains("there is no terminal at which somebody could be asked"),
        "{said}"
    );
}

#[test]
fn a_server_that_hangs_up_after_some_tries_is_called_again_and_two_do_not_ask_at_once() {
    let test = "a_server_that_hangs_up_after_some_tries_is_called_again_and_two_do_not_ask_at_once";
    let Some(far) = Far::with_passwords(test, "PasswordAuthentication yes\nMaxAuthTries 2\n") else {
        return;
    };
    let question = format!("Password of root at 127.0.0.1:{}: ", far.server.port());
    // Both lead to one host, as another one of its own would be no different to them.
    let one = far.asking("");
    let two = one
        .replacen(&format!("\"{}\"", far.server.url()), "\"second\"", 1)
        .replace("\"far\"", "\"further\"")
        .replace(
            "\thostname",
            &format!("\tremote => \"{}\",\n\thostname", far.server.url()),
        );
    let mut terminal = far.at_terminal(&(one + &two));
    for _ in 0..3 {
        terminal.shows(&question);
        terminal.enter("wrong");
    }
    terminal.shows(&question);
    terminal.enter(PASSWORD);
    terminal.shows(&question);
    terminal.enter(PASSWORD);
    let (code, seen) = terminal.end();
    assert_eq!(code, 0, "{seen}");
    assert_eq!(seen.matches(&question).count(), 5, "{seen}");
    for host in ["far", "further"] {
        becomes(&far.cluster.place.path(&format!("{host}.says")), "joined");
    }
}

#[test]
fn ending_at_the_question_leaves_the_terminal_as_it_was() {
    let test = "ending_at_the_question_leaves_the_terminal_as_it_was";
    let Some(far) = Far::with_passwords(test, TAKES_PASSWORDS) else {
        return;
    };
    let question = format!("Password of root at 127.0.0.1:{}: ", far.server.port());
    let command = far.command(&far.binary, &["--once"], &far.asking(""));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<String> = words
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    // What the shell says of the terminal when the program has gone.
    let script = format!(
        "trap : INT; stty echo; stty -a > before; {}; echo ended with $?; stty -a > after; cmp before after && echo as before",
        line.join(" ")
    );
    let mut shell = far.cluster.place.command("script");
    shell
        .args(["-q", "-e", "-f", "-c", &script, "/dev/null"])
        .env("SHELL", "/bin/sh");
    let mut terminal = Terminal::start(shell);
    terminal.shows(&question);
    // Ctrl-C, as often as it takes.
    write!(terminal.keyboard, "\u{3}").expect("it listens");
    terminal.shows("stopping");
    write!(terminal.keyboard, "\u{3}").expect("it listens");
    terminal.shows("ended with 130");
    terminal.shows("as before");
    let (_, seen) = terminal.end();
    assert!(!seen.contains("differ"), "{seen}");
}

#[test]
fn a_server_that_asks_questions_is_answered_with_the_password() {
    let test = "a_server_that_asks_questions_is_answered_with_the_password";
    let sshd = "UsePAM yes\nKbdInteractiveAuthentication yes\n";
    let Some(far) = Far::with_passwords(test, sshd) else {
        return;
    };
    let url = far.server.url().replace("root@", &format!("root:{PASSWORD}@"));
    let program = far.resource_with(&format!(
        "remote => sensitive(\"{url}\"),\n\tallow_cleartext_password => true,\n\tssh_id => \"\",\n\thostkey => \"{}\",\n\t{ENDS}",
        far.server.host_key("ed25519")
    ));
    let ran = far.once(&[], &program);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    becomes(&far.cluster.place.path("far.says"), "joined");
}
