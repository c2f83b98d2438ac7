//! The kinds `user` and `group`, with the real tools on the files of a machine of its own.

use setpoint_testing::Hermetic;

use crate::end_to_end::Engine;
use crate::kind::{failure, fields, run};
use setpoint_testing::place::{Place, shell};

/// Runs a program that must succeed, and returns the fields in which it found drift.
#[track_caller]
fn repair(program: &str) -> Vec<String> {
    let finished = run(program, &[]);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    let again = run(program, &[]);
    assert_eq!(fields(&again), [""; 0], "a second run: {}", again.stdout);
    fields(&finished)
}

fn passwd(name: &str) -> String {
    shell(&format!("grep '^{name}:' /etc/passwd || true"))
}

#[test]
fn accounts_are_made_changed_and_removed() {
    let test = "accounts::accounts_are_made_changed_and_removed";
    Place::machine(test)
        .needing(&["useradd", "gpasswd", "chpasswd"])
        .run(|| {
            each_parameter();
            homes();
            names();
            numbers_and_groups();
            members_of_groups();
            passwords();
            what_is_in_the_way();
            tools_that_do_nothing_without_an_error();
        });
}

fn each_parameter() {
    let program = "\
group \"team\" {
	state => \"exists\",
	gid => 4711,
}
group \"extra\" {
	state => \"exists\",
	system => true,
}
user \"ada\" {
	state => \"exists\",
	uid => 4242,
	group => \"team\",
	groups => [\"extra\", \"audio\"],
	homedir => \"/home/ada/\",
	shell => \"/bin/bash\",
	comment => \"Ada L.\",
	create_home => true,
	home_mode => \"0710\",
}
";
    assert_eq!(repair(program), ["state", "state", "state"]);
    assert_eq!(passwd("ada"), "ada:x:4242:4711:Ada L.:/home/ada:/bin/bash");
    assert_eq!(
        shell("id -nG ada | tr ' ' '\\n' | sort | xargs"),
        "audio extra team"
    );
    assert_eq!(shell("stat -c '%U %a' /home/ada"), "ada 710");
    assert!(
        shell("getent group extra | cut -d: -f3")
            .parse::<u32>()
            .is_ok_and(|gid| gid < 1000)
    );
    // Each by itself, in one run of the tool.
    let changed = program
        .replace("4242", "4243")
        .replace("[\"extra\", \"audio\"]", "[]")
        .replace("/bin/bash", "/bin/sh")
        .replace("/home/ada/", "/srv/ada/")
        .replace("Ada L.", "Ada");
    assert_eq!(
        repair(&changed),
        ["uid", "groups", "homedir", "shell", "comment", "home"]
    );
    assert_eq!(passwd("ada"), "ada:x:4243:4711:Ada:/srv/ada:/bin/sh");
    assert_eq!(shell("id -nG ada"), "team");
    // What is not set is left alone; the order of groups says nothing.
    shell("usermod -c Other -G video,audio -s /bin/bash ada");
    assert_eq!(repair("user \"ada\" {\n\tstate => \"exists\",\n}\n"), [""; 0]);
    assert_eq!(
        repair("user \"ada\" {\n\tstate => \"exists\",\n\tgroups => [\"video\", \"audio\"],\n}\n"),
        [""; 0]
    );
    // A user goes before its group, whatever the order in the program; its home stays.
    let gone = "group \"team\" {\n\tstate => \"absent\",\n}\nuser \"ada\" {\n\tstate => \"absent\",\n\tgroup => \"team\",\n}\n";
    assert_eq!(repair(gone), ["state", "state"]);
    assert_eq!(
        (passwd("ada"), shell("ls -d /home/ada")),
        (String::new(), "/home/ada".to_owned())
    );
}

/// A home that could not be made with its account, and one that has gone, is made as soon as that is possible.
fn homes() {
    shell("mkdir /ro; mount -t tmpfs tmpfs /ro; mount -o remount,ro /ro");
    let program = "user \"hm\" {\n\tstate => \"exists\",\n\thomedir => \"/ro/hm/\",\n\tcreate_home => true,\n\thome_mode => \"0700\",\n}\n";
    for _ in 0..2 {
        let said = failure(program);
        assert!(said.contains("make the"), "{said}");
    }
    shell("mount -o remount,rw /ro");
    assert_eq!(repair(program), ["home"]);
    assert_eq!(shell("stat -c '%U %a' /ro/hm"), "hm 700");
    shell("rm -r /ro/hm");
    assert_eq!(repair(program), ["home"]);
    assert_eq!(repair(program), [""; 0]);
    // Without `create_home` there is no home.
    assert_eq!(
        repair("user \"without\" {\n\tstate => \"exists\",\n}\n"),
        ["state"]
    );
    assert_eq!(shell("ls -d /home/without 2>/dev/null || true"), "");
    // Without a password nothing can be unlocked, and the tool would not say so.
    let said = failure("user \"without\" {\n\tstate => \"exists\",\n\tlocked => false,\n}\n");
    assert!(said.contains("unlock the password: it has no password"), "{said}");
    shell("umount /ro");
}

fn names() {
    for name in ["john.doe", "host$", "a2345678901234567890123456789012"] {
        let program = format!("user \"{name}\" {{\n\tstate => \"exists\",\n}}\n");
        assert_eq!(repair(&program), ["state"], "{name}");
        assert_eq!(repair(&program), [""; 0], "{name}");
        assert_eq!(repair(&program.replace("exists", "absent")), ["state"], "{name}");
    }
}

fn numbers_and_groups() {
    // A group of the user's name is there already, and becomes its first one.
    shell("groupadd -g 5001 eve");
    assert_eq!(repair("user \"eve\" {\n\tstate => \"exists\",\n}\n"), ["state"]);
    assert!(passwd("eve").contains(":5001:"), "{}", passwd("eve"));
    // By number, by name, and the same one by another name.
    assert_eq!(
        repair("user \"eve\" {\n\tstate => \"exists\",\n\tgid => 5001,\n}\n"),
        [""; 0]
    );
    assert_eq!(
        repair("user \"eve\" {\n\tstate => \"exists\",\n\tgroup => \"users\",\n}\n"),
        ["group"]
    );
    assert_eq!(
        repair("user \"eve\" {\n\tstate => \"exists\",\n\tgid => 5001,\n}\n"),
        ["gid"]
    );
    let taken = "user \"mallory\" {\n\tstate => \"exists\",\n\tuid => 0,\n}\n";
    let said = failure(taken);
    assert!(
        said.contains("use the uid 0: it belongs to the user `root`"),
        "{said}"
    );
    let shared =
        "user \"mallory\" {\n\tstate => \"exists\",\n\tuid => 5555,\n\tallowduplicateuid => true,\n}\n";
    shell("useradd -u 5555 bob");
    assert_eq!(repair(shared), ["state"]);
    assert_eq!(
        repair(
            "user \"mallory\" {\n\tstate => \"exists\",\n\tallowduplicateuid => true,\n\tcomment => \"M\",\n}\n"
        ),
        ["comment"]
    );
    let said = failure("group \"mine\" {\n\tstate => \"exists\",\n\tgid => 0,\n}\n");
    assert!(
        said.contains("use the gid 0: it belongs to the group `root`"),
        "{said}"
    );
    assert_eq!(
        repair("group \"eve\" {\n\tstate => \"exists\",\n\tgid => 5002,\n}\n"),
        ["gid"]
    );
    // Lines of other sorts, and a last line without a line feed, disturb nobody and stay.
    shell("printf '+@netgroup::::::\\n# comment\\nlast:x:6000:6000::/:/bin/sh' >> /etc/passwd");
    assert_eq!(
        repair("user \"last\" {\n\tstate => \"exists\",\n\tuid => 6000,\n\thomedir => \"/\",\n}\n"),
        [""; 0]
    );
    shell("sed -i '/^+@netgroup/d; /^# comment/d; /^last:/d' /etc/passwd");
}

fn members_of_groups() {
    let program = "group \"crew\" {\n\tstate => \"exists\",\n\tmembers => [\"eve\", \"bob\"],\n}\n";
    assert_eq!(repair(program), ["state", "members"]);
    assert_eq!(
        shell("getent group crew | cut -d: -f4 | tr , '\\n' | sort | xargs"),
        "bob eve"
    );
    shell("gpasswd -d eve crew");
    assert_eq!(repair(program), ["members"]);
    assert_eq!(repair(&program.replace("[\"eve\", \"bob\"]", "[]")), ["members"]);
    assert_eq!(shell("getent group crew | cut -d: -f4"), "");
}

fn passwords() {
    let hash = shell("openssl passwd -6 -salt abc correct-horse");
    let program = format!(
        "user \"eve\" {{\n\tstate => \"exists\",\n\tpassword => sensitive(\"{}\"),\n\texpires => \"2031-02-03\",\n}}\n",
        hash.replace('$', "\\$")
    );
    let field = |number: u8| shell(&format!("grep '^eve:' /etc/shadow | cut -d: -f{number}"));
    let first = run(&program, &[]);
    assert_eq!(first.code, 0, "{}{}", first.stdout, first.stderr);
    assert_eq!(field(2), hash);
    assert_eq!(field(8), shell("echo $(( $(date -ud 2031-02-03 +%s) / 86400 ))"));
    let said = format!("{}{}", first.stdout, first.stderr);
    assert!(!said.contains(&hash) && !said.contains("$6$"), "{said}");
    assert_eq!(repair(&program), [""; 0]);
    // Locked and open again, and the password stays what it is.
    let locked = program.replace("\tstate", "\tlocked => true,\n\tstate");
    assert_eq!(repair(&locked), ["locked"]);
    assert_eq!(field(2), format!("!{hash}"));
    assert_eq!(
        repair(&program),
        [""; 0],
        "who says nothing of it leaves it locked"
    );
    let open = program
        .replace("\tstate", "\tlocked => false,\n\tstate")
        .replace("2031-02-03", "never");
    assert_eq!(repair(&open), ["locked", "expires"]);
    assert_eq!((field(2), field(8)), (hash.clone(), String::new()));
    // Another password of an account that is locked, and one that is made with all of it.
    shell("usermod -p '!$6$x$y' eve");
    assert_eq!(repair(&program), ["password", "expires"]);
    assert_eq!(field(2), format!("!{hash}"));
    let made = locked.replace("\"eve\"", "\"new\"");
    assert_eq!(repair(&made), ["state", "password", "expires"]);
    assert_eq!(
        shell("grep '^new:' /etc/shadow | cut -d: -f2"),
        format!("!{hash}")
    );
}

fn what_is_in_the_way() {
    let said = failure("user \"zoe\" {\n\tstate => \"exists\",\n\tgroups => [\"nowhere\"],\n}\n");
    assert!(
        said.contains("make the account: `useradd`: group 'nowhere' does not exist"),
        "{said}"
    );
    // Nobody but `useradd` is asked, so nothing of it is made by half.
    assert_eq!(passwd("zoe"), "");
    let said = failure("group \"root\" {\n\tstate => \"absent\",\n}\n");
    assert!(
        said.contains("remove the group: `groupdel`: cannot remove the primary group of user 'root'"),
        "{said}"
    );
    // Somebody else is at work: they are named and waited for.
    let place = Hermetic::new();
    let program = "user \"zoe\" {\n\tstate => \"exists\",\n}\n";
    let main = place.write("main.mcl", program);
    shell("touch /etc/.pwd.lock; (exec 3>/etc/passwd.lock; echo $$ >&3); true");
    let mut holder = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep is there");
    std::fs::write("/etc/passwd.lock", holder.id().to_string()).expect("the machine is ours");
    let mut engine = Engine::start(&place, &[main.to_str().expect("a plain name")]);
    let told = engine.event("who waits", |event| {
        event["event"] == "log"
            && event["message"]
                .as_str()
                .is_some_and(|text| text.contains("locked the account files"))
    });
    assert_eq!(told["name"], "zoe");
    assert_eq!(passwd("zoe"), "");
    std::fs::remove_file("/etc/passwd.lock").expect("it is there");
    engine.event("the repair", |event| {
        event["event"] == "repaired" && event["name"] == "zoe"
    });
    holder.kill().expect("it runs");
    holder.wait().expect("it ended");
    assert!(passwd("zoe").starts_with("zoe:"));
    // What somebody changes is seen when it happens.
    shell("userdel zoe");
    engine.event("the next repair", |event| {
        event["event"] == "repaired" && event["name"] == "zoe"
    });
    engine.stop();
}

const HOME_OF_A_USER_TO_COME: &str = "\
user \"later\" {
	state => \"exists\",
	create_home => true,
}
line \"alias\" {
	file => \"~later/.aliases\",
	state => \"exists\",
	content => \"alias ll='ls -l'\",

	Depend => User[\"later\"],
}
";

#[test]
fn a_file_in_the_home_of_a_user_who_is_made_first_is_watched() {
    let test = "accounts::a_file_in_the_home_of_a_user_who_is_made_first_is_watched";
    Place::machine(test).needing(&["useradd"]).run(|| {
        let place = Hermetic::new();
        let path = place.write("main.mcl", HOME_OF_A_USER_TO_COME);
        let path = path.to_str().expect("the place has a plain name");
        let mut engine = Engine::start(&place, &[path]);
        let is_there = || shell("cat ~later/.aliases 2>/dev/null || true") == "alias ll='ls -l'";
        engine.repaired_until("line", "alias", is_there);
        // At once: what writes into a file that is replaced meanwhile writes into the old one.
        shell("echo none > ~later/other; mv ~later/other ~later/.aliases");
        engine.repaired_until("line", "alias", || {
            shell("cat ~later/.aliases") == "none\nalias ll='ls -l'"
        });
        engine.stop();
    });
}

/// The result of a tool is compared with the wish, whatever the tool reports.
fn tools_that_do_nothing_without_an_error() {
    shell("groupadd --gid 4998 lied; useradd -g lied lied");
    shell("for tool in usermod groupmod gpasswd; do ln -sf /bin/true $(command -v $tool); done");
    for (program, field, is) in [
        (
            "user \"lied\" { state => \"exists\", comment => \"true\", }",
            "comment",
            "",
        ),
        (
            "group \"lied\" { state => \"exists\", gid => 4999, }",
            "gid",
            "4998",
        ),
    ] {
        let told = format!("repair {field}: it is still `{is}`, although no error was reported");
        let failure = failure(program);
        assert!(failure.contains(&told), "{failure}");
    }
}
