//! The kind `augeas`, with the real program on files of a machine of its own.

use setpoint_testing::Finished;

use crate::kind::shown;
use setpoint_testing::place::{Place, shell};

/// Sets `path` to `value` in a file, by a lens.
fn set(lens: &str, file: &str, sets: &[(&str, &str)]) -> Finished {
    let sets: String = sets
        .iter()
        .map(|(path, value)| format!("\t\tstruct{{path => {path:?}, value => {value:?},}},\n"))
        .collect();
    let program =
        format!("augeas \"a\" {{\n\tfile => {file:?},\n\tlens => {lens:?},\n\tsets => [\n{sets}\t],\n}}\n");
    shown(&program)
}

fn fails(finished: &Finished, why: &str) {
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(why), "{}", finished.stderr);
}

fn succeeds(finished: &Finished) {
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn values_are_set_and_what_goes_wrong_is_told() {
    let test = "augeas::values_are_set_and_what_goes_wrong_is_told";
    Place::machine(test).needing(&["augtool"]).run(|| {
        // In a file whose name means something in the language of paths.
        shell("mkdir -p '/etc/with [brackets] and blanks'; echo '127.0.0.1 localhost' > '/etc/with [brackets] and blanks/hosts'");
        let file = "/etc/with [brackets] and blanks/hosts";
        succeeds(&set("Hosts.lns", file, &[("1/canonical", "here"), ("2/ipaddr", "192.0.2.7"), ("2/canonical", "db")]));
        assert_eq!(shell(&format!("cat '{file}'")), "127.0.0.1 here\n192.0.2.7\tdb");
        fails(&set("Hosts.lns", file, &[("01/ipaddr", "192.0.2.8"), ("01/canonical", "web")]), "name the place as Augeas numbers it");
        // A file that is not there yet, and a value of every sign.
        succeeds(&set("Shellvars.lns", "/etc/new.conf", &[("GREETING", "'it says \"hi\" \\ there'")]));
        assert_eq!(shell("cat /etc/new.conf"), "GREETING='it says \"hi\" \\ there'");
        let again = set("Shellvars.lns", "/etc/new.conf", &[("GREETING", "'it says \"hi\" \\ there'")]);
        assert!(again.stderr.contains("1 unchanged in "), "{}", again.stderr);

        shell("printf 'one\\n[ not closed\\n' > /etc/broken.ini");
        let before = shell("cat /etc/broken.ini");
        fails(&set("Puppet.lns", "/etc/broken.ini", &[("main/a", "1")]), "line 1, column 0");
        assert_eq!(shell("cat /etc/broken.ini"), before);
        fails(&set("NoSuch.lns", "/etc/hosts", &[("1/canonical", "x")]), "NoSuch.lns");
        fails(&set("Hosts.lns", "/etc/hosts", &[("1/canonical", "two words")]), "Failed to match tree");
        fails(&set("Hosts.lns", "/etc/hosts", &[("1/canonical[", "x")]), "/etc/hosts");
        // What fails has left the file as it was.
        assert_eq!(shell(&format!("cat '{file}'")), "127.0.0.1 here\n192.0.2.7\tdb");

        // A link of another user leads nowhere that this one could not write.
        shell("useradd --create-home mallory; echo 'PermitRootLogin yes' > /root/victim; runuser -u mallory -- ln -s /root/victim /home/mallory/sshd_config");
        fails(&set("Sshd.lns", "/home/mallory/sshd_config", &[("PermitRootLogin", "no")]), "what it leads to belongs to uid 0");
        assert_eq!(shell("cat /root/victim; stat -c %F /home/mallory/sshd_config"), "PermitRootLogin yes\nsymbolic link");
        // A link of our own is followed, and stays.
        shell("ln -s /root/victim /etc/link.test; chmod 640 /root/victim; chgrp games /root/victim");
        succeeds(&set("Sshd.lns", "/etc/link.test", &[("PermitRootLogin", "no")]));
        assert_eq!(shell("cat /root/victim; stat -c '%F %a %G' /etc/link.test /root/victim"), "PermitRootLogin no\nsymbolic link 777 root\nregular file 640 games");
        // More than one variable of the environment has room for.
        let value = "x".repeat(1000);
        let names: Vec<String> = (0..200).map(|number| format!("NAME_{number}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        succeeds(&set("Shellvars.lns", "/etc/many.conf", &many));
        assert_eq!(shell("grep -c ^NAME_ /etc/many.conf"), "200");
        // What Augeas says of a file that it cannot write would show all of it.
        let said = set("Shellvars.lns", "/etc/many.conf", &[("NAME_0", "two words")]);
        fails(&said, "Failed to match tree");
        assert!(said.stderr.len() < 1500, "{}", said.stderr);

        shell("rm /usr/bin/augtool");
        fails(&set("Hosts.lns", "/etc/hosts", &[("1/canonical", "x")]), "the package `augeas-tools` has it");
    });
}
