//! The kind `gsettings` with the real program, dconf and the session of a user.

use setpoint_testing::{Finished, Hermetic};

use crate::end_to_end::Engine;
use crate::kind::{shown, shows_error};
use setpoint_testing::place::{Place, shell};

const INTERFACE: &str = "org.gnome.desktop.interface";
const FOLDER: &str = "org.gnome.desktop.app-folders.folder:/a b/";

fn program(name: &str, value_type: &str, value: &str, more: &str) -> String {
    format!(
        "gsettings \"{name}\" {{\n\ttype => \"{value_type}\",\n\tvalue => {value},\n\tuser => \"games\",\n\t{more}\n}}\n"
    )
}

/// A run that repairs, and after which a second one finds nothing.
#[track_caller]
fn sets(name: &str, value_type: &str, value: &str, is: &str) {
    let program = program(name, value_type, value, "");
    let Finished {
        code, stderr: said, ..
    } = shown(&program);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 changed"), "{said}");
    let (schema, key) = name.rsplit_once(' ').expect("it is a schema and a key");
    assert_eq!(shell(&format!("as-games get '{schema}' {key}")), is);
    let said = shown(&program).stderr;
    assert!(said.contains("1 unchanged"), "{said}");
}

/// Has a program that asks as the user does, and with `session` a session of that user.
fn prepare(session: bool) {
    shell(
        "mkdir -p ~games; chown games ~games; printf '#!/bin/sh\nexec setpriv --reuid games --regid games --init-groups env -i \
         LC_ALL=C.UTF-8 PATH=/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/5/ DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/5/bus gsettings \"$@\"' \
         > /usr/local/bin/as-games; chmod 755 /usr/local/bin/as-games",
    );
    if session {
        shell("loginctl enable-linger games; systemctl start user@5.service");
    }
}

#[test]
fn values_are_compared_by_what_they_mean() {
    let test = "gsettings::values_are_compared_by_what_they_mean";
    Place::machine(test).needing(&["gsettings"]).run(|| {
        prepare(true);
        let of = |key: &str| format!("{INTERFACE} {key}");
        sets(&of("clock-show-seconds"), "bool", "true", "true");
        sets(&of("gtk-theme"), "str", "\"plain\"", "'plain'");
        sets(&of("gtk-theme"), "str", "\"'quoted'\"", "'quoted'");
        sets(
            &of("gtk-theme"),
            "str",
            "\"it's \\\\ \\\"ü\\\"\"",
            "\"it's \\\\ \\\"ü\\\"\"",
        );
        sets(&of("gtk-theme"), "str", "\"-1\"", "'-1'");
        sets(&of("gtk-theme"), "custom", "\"bare word\"", "'bare word'");
        sets(&of("color-scheme"), "str", "\"prefer-dark\"", "'prefer-dark'");
        sets(&of("cursor-size"), "int", "32", "32");
        sets(&of("cursor-size"), "custom", "\"0x10\"", "16");
        sets(&of("text-scaling-factor"), "int", "2", "2.0");
        sets("org.gnome.desktop.session idle-delay", "int", "60", "uint32 60");
        sets(
            "org.gnome.desktop.privacy recent-files-max-age",
            "int",
            "-5",
            "-5",
        );
        let sources = "org.gnome.desktop.input-sources sources";
        sets(sources, "custom", "\"[('xkb','us')]\"", "[('xkb', 'us')]");
        sets(sources, "custom", "\"[]\"", "@a(ss) []");
        sets(&format!("{FOLDER} apps"), "custom", "\"['a']\"", "['a']");
        // Our own.
        shell("loginctl enable-linger root; systemctl start user@0.service");
        let own = program("clock", "bool", "true", "schema => \"org.gnome.desktop.interface\",\n\tkey => \"clock-show-date\",");
        let own = own.replace("\tuser => \"games\",\n", "").replace("=> true", "=> false");
        let Finished { code, stderr: said, .. } = shown(&own);
        assert_eq!(code, 0, "{said}");
        let get = "XDG_RUNTIME_DIR=/run/user/0/ DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus gsettings get org.gnome.desktop.interface clock-show-date";
        assert_eq!(shell(get), "false");
        let said = shown(&own).stderr;
        assert!(said.contains("1 unchanged"), "{said}");
    });
}

#[test]
fn what_cannot_be_set_is_told() {
    let test = "gsettings::what_cannot_be_set_is_told";
    Place::machine(test).needing(&["gsettings"]).run(|| {
        prepare(true);
        let of = |key: &str, value: &str, more: &str| program(&format!("{INTERFACE} {key}"), "str", value, more);
        shows_error(
            &of("gtk-thme", "\"a\"", ""),
            "failed to read org.gnome.desktop.interface gtk-thme: No such key “gtk-thme”; did you mean `gtk-theme`?",
        );
        shows_error(
            &program("org.gnome.desktop.interfaces gtk-theme", "str", "\"a\"", ""),
            "No such schema “org.gnome.desktop.interfaces”; did you mean `org.gnome.desktop.interface`?",
        );
        shows_error(
            &of("color-scheme", "\"pink\"", ""),
            "failed to set org.gnome.desktop.interface color-scheme: The provided value is outside of the valid range",
        );
        let said = shown(&of("cursor-size", "sensitive(\"hush\")", "")).stderr;
        assert!(
            said.contains("failed to set (sensitive): `gsettings` ended with exit status 1") && !said.contains("hush"),
            "{said}"
        );
        shows_error(
            &of("gtk-theme", "\"a\"", "").replace("\"games\"", "\"nobody-here\""),
            "failed to find the user: there is no user `nobody-here`",
        );
        shows_error(
            &of("gtk-theme", "\"a\"", "").replace("\"games\"", "\"sync\""),
            "failed to find the session bus: the user `sync` has no session: nothing is at /run/user/4/bus; \
             it comes when that user logs in, or with `loginctl enable-linger sync`",
        );
        // The program believes that it has set a setting when nothing could be stored.
        shell("rm -rf ~games/.config; touch ~games/.config");
        shows_error(
            &of("gtk-theme", "\"a\"", "group => \"games\","),
            "failed to set org.gnome.desktop.interface gtk-theme: it is `'Adwaita'` all the same",
        );
        shell("mv /usr/bin/gsettings /usr/bin/elsewhere");
        shows_error(
            &of("gtk-theme", "\"a\"", ""),
            "there is no program `gsettings` in PATH; the package `libglib2.0-bin` has it",
        );
    });
}

#[test]
fn users_and_sessions_that_come_and_go_are_seen() {
    let test = "gsettings::users_and_sessions_that_come_and_go_are_seen";
    Place::machine(test).needing(&["gsettings"]).run(|| {
        prepare(false);
        shell("userdel games");
        let place = Hermetic::new();
        let main = place.write(
            "main.mcl",
            program(&format!("{INTERFACE} gtk-theme"), "str", "\"mine\"", ""),
        );
        let mut engine = Engine::start(&place, &[main.to_str().expect("the place has a plain name")]);
        let says = |engine: &mut Engine, wanted: &str| {
            engine.event(wanted, |event| {
                event["error"]
                    .as_str()
                    .is_some_and(|error| error.contains(wanted))
            });
        };
        let name = format!("{INTERFACE} gtk-theme");
        let is_right = || shell(&format!("as-games get {name}")) == "'mine'";
        says(&mut engine, "there is no user `games`");
        shell(
            "groupadd --gid 60 games; useradd --uid 5 --gid 60 --no-create-home --home-dir /usr/games games",
        );
        says(&mut engine, "the user `games` has no session");
        shell("chown games /usr/games; loginctl enable-linger games; systemctl start user@5.service");
        engine.repaired_until("gsettings", &name, is_right);
        // By hand, again and again: nothing of it is missed.
        for theme in ["one", "two", "three"] {
            shell(&format!("as-games set {name} {theme}"));
            engine.repaired_until("gsettings", &name, is_right);
        }
        shell("systemctl stop user@5.service user-runtime-dir@5.service");
        says(&mut engine, "the user `games` has no session");
        shell("systemctl start user@5.service; as-games set org.gnome.desktop.interface gtk-theme four");
        engine.repaired_until("gsettings", &name, is_right);
        engine.stop();
    });
}
