//! The kind `fwattr`. No machine that can be thrown away has firmware with settings, so what the kernel would show of it lies in files of the test's own, at the
//! same place, on a machine of its own.

use setpoint_testing::Hermetic;

use crate::end_to_end::Engine;
use crate::kind::{shown, shows_error};
use setpoint_testing::place::{Place, shell};

pub(crate) const CLASS: &str = "\
mount -t tmpfs none /sys/class
of() { mkdir -p /sys/class/firmware-attributes/$1/attributes/$2; cd /sys/class/firmware-attributes/$1/attributes/$2; echo $3 > type; echo $4 > current_value; }
of thinklmi WakeOnLAN enumeration Disable; echo 'Disable;ACOnly;ACandBattery;Enable' > possible_values
of thinklmi SecureBoot enumeration Disable; echo 'Disable;Enable' > possible_values
of thinklmi Timeout integer 10; echo 5 > min_value; echo 50 > max_value; echo 5 > scalar_increment
of thinklmi AssetTag string none; echo 2 > min_length; echo 8 > max_length
of thinklmi BootOrder ordered-list HDD0
";

/// A program with one setting, and the parameters that it gets.
fn program(parameters: &str) -> String {
    format!("fwattr \"it\" {{\n\t{parameters}\n\tMeta:retry => 0,\n}}\n")
}

fn succeeds(parameters: &str) -> String {
    let finished = shown(&program(parameters));
    assert_eq!(finished.code, 0, "{parameters}: {}", finished.stderr);
    finished.stderr
}

#[track_caller]
fn fails(parameters: &str, why: &str) {
    shows_error(&program(parameters), why);
}

fn value(key: &str) -> String {
    shell(&format!(
        "cat /sys/class/firmware-attributes/thinklmi/attributes/{key}/current_value"
    ))
}

#[test]
fn settings_are_checked_written_and_followed() {
    let test = "firmware::settings_are_checked_written_and_followed";
    Place::machine(test).run(|| {
        fails("value => \"x\",", "this machine has none");
        let skipped = succeeds("value => \"x\", skip => true,");
        assert!(skipped.contains("nothing is done"), "{skipped}");
        shell(CLASS);
        succeeds("key => \"WakeOnLAN\", value => \"ACOnly\",");
        assert_eq!(value("WakeOnLAN"), "ACOnly");
        fails("key => \"WakeOnLAN\", value => \"Sometimes\",", "`Sometimes` is none of Disable, ACOnly, ACandBattery, Enable");
        // What means the same on this model.
        succeeds("key => \"SecureBoot\", value => \"Enabled\", driver => \"thinklmi\",");
        assert_eq!(value("SecureBoot"), "Enable");
        fails("key => \"SecureBoot\", value => \"Enabled\", strict => true,", "`Enabled` is none of");
        succeeds("key => \"Timeout\", value => \"25\",");
        for (wrong, why) in [("7", "and a multiple of 5"), ("55", "is not from 5 to 50"), ("soon", "is no whole number")] {
            fails(&format!("key => \"Timeout\", value => \"{wrong}\","), why);
        }
        fails("key => \"AssetTag\", value => \"0123456789\",", "is not from 2 to 8");
        fails("key => \"BootOrder\", value => \"HDD1\",", "`check => false` writes it all the same");
        succeeds("key => \"BootOrder\", value => \"HDD1\", check => false,");
        fails("key => \"Missing\", value => \"x\",", "the driver thinklmi has none of this name");
        succeeds("key => \"Missing\", value => \"x\", skip => true,");
        fails("key => \"Timeout\", value => \"5\", driver => \"thinklm\",", "there is no `thinklm`, only thinklmi");
        shell("mkdir -p /sys/class/firmware-attributes/dell-wmi-sysman");
        fails("key => \"Timeout\", value => \"5\",", "there are several: dell-wmi-sysman, thinklmi");
        shell("rmdir /sys/class/firmware-attributes/dell-wmi-sysman; echo 1 > /sys/class/firmware-attributes/thinklmi/attributes/pending_reboot");
        let told = succeeds("key => \"Timeout\", value => \"30\",");
        assert!(told.contains("when the machine is started anew"), "{told}");

        let place = Hermetic::new();
        let path = place.write("main.mcl", "fwattr \"Timeout\" {\n\tvalue => \"40\",\n}\n");
        let mut engine = Engine::start(&place, &[path.to_str().expect("the place has a plain name")]);
        engine.repaired_until("fwattr", "Timeout", || value("Timeout") == "40");
        shell("echo 10 > /sys/class/firmware-attributes/thinklmi/attributes/Timeout/current_value");
        engine.repaired_until("fwattr", "Timeout", || value("Timeout") == "40");
        engine.stop();
    });
}
