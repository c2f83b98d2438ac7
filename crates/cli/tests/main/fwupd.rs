//! The kinds `fwupd:*` with the real fwupd, which has a device of its own for tests. A container is no machine with firmware to it, which it is told to overlook.

use setpoint_testing::Hermetic;

use crate::end_to_end::Engine;
use crate::kind::{changes, error, once, run};
use setpoint_testing::place::{Place, shell};

/// Lets fwupd run here, with its device for tests and the firmware that is shipped for that. The archives are not those that the metadata was made for: it is told of them.
pub(crate) const FWUPD: &str = "\
cd /usr/share/installed-tests/fwupd; for sum in 123-sha1 124-sha256; do archive=fakedevice${sum%-*}.cab; kind=${sum#*-}; \
sed -i \"s/\\(filename=.$archive. target=.container. type=.\\)[^>]*>[0-9a-f]*/\\1$kind\\\">$(${kind}sum $archive | cut -d' ' -f1)/\" fwupd-tests.xml; done; cd /; \
printf '[fwupd]\\nTestDevices=true\\nOnlyTrusted=false\\n' > /etc/fwupd/fwupd.conf; \
mkdir -p /etc/systemd/system/fwupd.service.d; printf '[Unit]\\nConditionVirtualization=\\n' > /etc/systemd/system/fwupd.service.d/here.conf; \
systemctl daemon-reload; systemctl start fwupd";

const DEVICE: &str = "08d460be0f1f9f128413f816022a6439e0078018";
const GUID: &str = "B585990A-003E-5270-89D5-3705A17F9A43";

/// A run that finds this drift and repairs it; a second run finds none.
#[track_caller]
fn repairs(program: &str, wanted: &[&str]) {
    let finished = run(program, &[]);
    assert_eq!(changes(&finished), wanted, "{program}");
    assert_eq!(error(&finished), None, "{program}");
    assert_eq!(once(program), (Vec::new(), None), "{program}");
}

/// The error of a run that fails.
#[track_caller]
fn fails(program: &str) -> String {
    let (_, error) = once(program);
    error.unwrap_or_else(|| panic!("it fails: {program}"))
}

fn version() -> String {
    shell(
        "busctl call org.freedesktop.fwupd / org.freedesktop.fwupd GetDevices | grep -o '\"Version\" s \"1.2[^\"]*\"' | cut -d'\"' -f4",
    )
}

#[test]
fn devices_get_their_versions() {
    let machine = Place::machine("fwupd::devices_get_their_versions");
    machine.needing(&["fwupdmgr"]).run(|| {
        shell(FWUPD);
        assert_eq!(version(), "1.2.2");
        let device = |name: &str, parameters: &str| format!("fwupd:device \"{name}\" {{ {parameters} }}\n");
        repairs(&device(DEVICE, "version => \"1.2.4\","), &["version: 1.2.2 -> 1.2.4"]);
        assert_eq!(version(), "1.2.4");
        let named = format!("device => \"{GUID}\", version => \"1.2.3\",");
        let said = fails(&device("webcam", &named));
        assert!(said.contains("1.2.3 is lower than what it has; `allow_downgrade => true` allows to go back"), "{said}");
        assert_eq!(version(), "1.2.4");
        repairs(&device("webcam", &format!("{named} allow_downgrade => true,")), &["version: 1.2.4 -> 1.2.3"]);
        let said = fails(&device(DEVICE, "version => \"9\","));
        assert!(said.ends_with("there is no version 9 of it; there are: 1.2.4, 1.2.3"), "{said}");
        let said = fails(&device("nothing", "version => \"9\","));
        assert!(said.starts_with("find the device nothing: fwupd has no such device; there are: "), "{said}");
        assert!(said.contains(DEVICE), "{said}");
        // All of them, without one.
        let system = |more: &str| format!("fwupd:system \"all\" {{ state => \"newest\", {more} }}\n");
        repairs(&system(&format!("exclude => [\"{GUID}\",],")), &[]);
        repairs(&system(""), &["version of Integrated Webcam™: 1.2.3 -> 1.2.4"]);
        // A file that is not what its metadata says is not installed.
        shell("sed -i 's/sha256\">[0-9a-f]\\{8\\}/sha256\">00000000/' /usr/share/installed-tests/fwupd/fwupd-tests.xml; systemctl restart fwupd");
        let said = fails(&device(DEVICE, "version => \"1.2.4\","));
        assert!(said.ends_with("which is not that of its metadata"), "{said}");
        // Nobody is there who could be asked.
        shell("systemctl mask --now fwupd 2>/dev/null");
        let said = fails(&device(DEVICE, "version => \"1.2.4\","));
        assert!(said.starts_with("ask fwupd for its devices: "), "{said}");
    });
}

#[test]
fn remotes_are_enabled_and_fetched() {
    let machine = Place::machine("fwupd::remotes_are_enabled_and_fetched");
    machine.needing(&["fwupdmgr", "python3"]).run(|| {
        shell("mkdir /srv/remote; cp /usr/share/installed-tests/fwupd/fwupd-tests.xml /srv/remote/list.xml");
        shell("systemd-run --quiet --collect --unit=server -p WorkingDirectory=/srv/remote -p StandardError=file:/srv/requests python3 -m http.server --bind 127.0.0.1 18080; until ss -ltn | grep -q 18080; do sleep 0.02; done");
        shell("printf '[fwupd Remote]\\nEnabled=false\\nTitle=ours\\nMetadataURI=http://127.0.0.1:18080/list.xml\\n' > /etc/fwupd/remotes.d/ours.conf");
        shell(FWUPD);
        let remote = |parameters: &str| format!("fwupd:remote \"ours\" {{ {parameters} }}\n");
        // One that is neither enabled nor managed is not fetched.
        repairs(&remote("refresh_age => \"1h\","), &[]);
        repairs(&remote("enabled => true,"), &["enabled: disabled -> enabled"]);
        let said = fails(&remote("enabled => true, refresh_age => \"1h\","));
        assert_eq!(said, "download http://127.0.0.1:18080/list.xml.jcat: the server answers 404 Not Found");
        shell("cp /usr/share/installed-tests/fwupd/fakedevice124.jcat /srv/remote/list.xml.jcat");
        // What is signed is the daemon's to judge.
        let said = fails(&remote("refresh_age => \"1h\","));
        assert!(said.starts_with("use the metadata of ours: "), "{said}");
        assert!(shell("cat /srv/requests").contains("GET /list.xml.jcat HTTP/1.1\" 200"));
        let said = fails("fwupd:remote \"other\" { enabled => true, }\n");
        assert!(said.contains("fwupd has no such remote; there are: "), "{said}");
        // What is changed by hand is seen.
        let place = Hermetic::new();
        let mut engine = Engine::of_program(&place, remote("enabled => true,"));
        engine.event("convergence", |event| event["event"] == "converged");
        let modify = "busctl call org.freedesktop.fwupd / org.freedesktop.fwupd ModifyRemote sss ours Enabled false";
        shell(modify);
        engine.repaired_until("fwupd:remote", "ours", || shell("grep Enabled /etc/fwupd/remotes.d/ours.conf") == "Enabled=true");
        shell("systemctl restart fwupd");
        shell(modify);
        engine.repaired_until("fwupd:remote", "ours", || shell("grep Enabled /etc/fwupd/remotes.d/ours.conf") == "Enabled=true");
        engine.stop();
    });
}
