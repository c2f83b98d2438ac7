//! Edits of files in all dialects.

use proptest::prelude::*;
use setpoint_engine::{IfSet, Words};

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn ini(dialect: Dialect, section: &str, settings: &[(&str, &str)]) -> Ini {
    Ini {
        file: "/f".to_owned(),
        section: section.to_owned(),
        settings: map(settings),
        lists: BTreeMap::new(),
        unset: Vec::new(),
        state: Presence::Exists,
        r#where: BTreeMap::new(),
        dialect,
        separator: None,
        ignore_case: false,
        create: true,
        validation: Validation {
            validate: String::new(),
            validate_timeout: IfSet::default(),
        },
        found: HomeFile::default(),
    }
}

fn edited(ini: &Ini, text: &str) -> Option<(String, Vec<String>)> {
    let new = ini.change(text.as_bytes()).unwrap()?;
    let told = new.differences.iter();
    let told = told.map(|one| format!("{}: {} -> {}", one.field, one.is, one.want));
    Some((String::from_utf8(new.text).unwrap(), told.collect()))
}

#[track_caller]
fn becomes(ini: &Ini, before: &str, after: &str, told: &[&str]) {
    let mut invalid = Vec::new();
    Resource::validate(ini, &MetaParameters::default(), &mut invalid);
    assert!(invalid.is_empty(), "{invalid:?}");
    let (text, differences) = edited(ini, before).expect("it changes");
    assert_eq!(text, after);
    assert_eq!(differences, told);
    assert_eq!(edited(ini, &text), None, "once is enough");
}

#[test]
fn a_setting_changes_where_it_stands() {
    let php = "; about [PHP]\r\n[PHP]\r\nengine = On ; always\r\n; memory_limit should be small\r\n;memory_limit = 128M\r\n[Date]\r\n";
    let wanted = ini(
        Dialect::Ini,
        "PHP",
        &[("engine", "Off"), ("memory_limit", "256M"), ("new", "1")],
    );
    becomes(
        &wanted,
        php,
        "; about [PHP]\r\n[PHP]\r\nengine = Off ; always\r\n; memory_limit should be small\r\nmemory_limit = 256M\r\nnew = 1\r\n[Date]\r\n",
        &[
            "PHP.engine: On -> Off",
            "PHP.memory_limit: (absent) -> 256M",
            "PHP.new: (absent) -> 1",
        ],
    );
    becomes(
        &ini(Dialect::Ini, "a", &[("k", "2")]),
        "[ a ]\n  k: 1\n  k: 0\n",
        "[ a ]\n  k: 2\n",
        &["a.k: 0 -> 2", "line 2:   k: 1 -> (absent)"],
    );
    assert_eq!(edited(&ini(Dialect::Ini, "a", &[("k", "1")]), "[a]\nk=1"), None);
    assert_eq!(
        edited(&ini(Dialect::Ini, "a", &[("k", "1 #2")]), "[a]\nk=1 #2"),
        None
    );
    becomes(
        &ini(Dialect::Ini, "a", &[("k", "1 #2")]),
        "[a]\nk=1 # x",
        "[a]\nk=1 #2",
        &["a.k: 1 -> 1 #2"],
    );
}

#[test]
fn a_section_that_is_missing_is_added() {
    becomes(
        &ini(Dialect::Ini, "b", &[("k", "1")]),
        "[a]\nx=1",
        "[a]\nx=1\n\n[b]\nk=1\n",
        &["b.k: (absent) -> 1"],
    );
    becomes(
        &ini(Dialect::Ini, "b", &[("k", "")]),
        "",
        "[b]\nk =\n",
        &["b.k: (absent) -> "],
    );
    becomes(
        &ini(Dialect::Ini, "", &[("k", "1")]),
        "# the file\n\n# about a\n[a]\nx=1\n",
        "# the file\n\nk=1\n\n# about a\n[a]\nx=1\n",
        &["k: (absent) -> 1"],
    );
    becomes(
        &ini(Dialect::Ini, "a", &[("k", "1")]),
        "\u{feff}[a]\n[b]\nx = 2\n",
        "\u{feff}[a]\nk = 1\n[b]\nx = 2\n",
        &["a.k: (absent) -> 1"],
    );
}

#[test]
fn a_list_stands_in_several_lines() {
    let mut wanted = ini(Dialect::Ini, "x", &[]);
    wanted.lists = [("Include".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into();
    becomes(
        &wanted,
        "[x]\nInclude = c\nk = 1\n",
        "[x]\nInclude = a\nInclude = b\nk = 1\n",
        &["x.Include: c -> a, b"],
    );
    becomes(
        &wanted,
        "[x]\nInclude = a\nInclude = b\nInclude = c\n",
        "[x]\nInclude = a\nInclude = b\n",
        &["x.Include: a, b, c -> a, b"],
    );
    wanted.dialect = Dialect::Systemd;
    becomes(
        &wanted,
        "[x]\n",
        "[x]\nInclude=\nInclude=a\nInclude=b\n",
        &["x.Include: (absent) -> , a, b"],
    );
}

#[test]
fn what_must_be_absent_goes() {
    let mut wanted = ini(Dialect::Ini, "x", &[]);
    wanted.unset = vec!["k".to_owned()];
    becomes(
        &wanted,
        "[x]\nk=1\n#k=3\nk=2\n",
        "[x]\n#k=3\n",
        &["x.k: 2 -> (absent)", "line 2: k=1 -> (absent)"],
    );
    wanted.unset.clear();
    wanted.state = Presence::Absent;
    becomes(
        &wanted,
        "[a]\n\n# about x\n[x]\nk=1\n\n# about b\n[b]\n",
        "[a]\n\n# about b\n[b]\n",
        &["x: \"# about x\\n[x]\\nk=1\\n\\n\" -> (absent)"],
    );
    assert_eq!(edited(&wanted, "[a]\n"), None);
}

#[test]
fn one_of_several_sections_is_picked() {
    let peers = "[Peer]\nPublicKey = a\nAllowedIPs = 1\n\n[Peer]\nPublicKey = b\nAllowedIPs = 2\n";
    let mut wanted = ini(Dialect::Ini, "Peer", &[("AllowedIPs", "3")]);
    let refused = wanted.change(peers.as_bytes()).unwrap_err();
    assert_eq!(
        refused,
        "the section [Peer] stands in lines 1, 5, each with `AllowedIPs`; `where` picks one of them"
    );
    wanted.r#where = map(&[("PublicKey", "b")]);
    becomes(
        &wanted,
        peers,
        "[Peer]\nPublicKey = a\nAllowedIPs = 1\n\n[Peer]\nPublicKey = b\nAllowedIPs = 3\n",
        &["Peer.AllowedIPs: 2 -> 3"],
    );
    wanted.r#where = map(&[("PublicKey", "c")]);
    becomes(
        &wanted,
        "[Peer]\nPublicKey = a\n",
        "[Peer]\nPublicKey = a\n\n[Peer]\nPublicKey = c\nAllowedIPs = 3\n",
        &["Peer.AllowedIPs: (absent) -> 3"],
    );
}

#[test]
fn dialects_read_and_write_their_own_values() {
    becomes(
        &ini(
            Dialect::Env,
            "",
            &[("GRUB_CMDLINE", "quiet splash"), ("A", "$x"), ("B", "it's \"\"")],
        ),
        "# GRUB\nGRUB_CMDLINE=\"quiet\"\nexport A=1 # one\n#export B=2\n",
        "# GRUB\nGRUB_CMDLINE=\"quiet splash\"\nexport A='$x' # one\nexport B=\"it's \\\"\\\"\"\n",
        &[
            "A: 1 -> $x",
            "B: (absent) -> it's \"\"",
            "GRUB_CMDLINE: quiet -> quiet splash",
        ],
    );
    assert_eq!(edited(&ini(Dialect::Env, "", &[("A", "a b")]), "A=a\\ b\n"), None);
    becomes(
        &ini(Dialect::Properties, "", &[("a.b", " x\\y"), ("c", "2")]),
        "a.b : one\\\n   two\nc 1\n",
        "a.b : \\ x\\\\y\nc 2\n",
        &["a.b: onetwo ->  x\\y", "c: 1 -> 2"],
    );
    becomes(
        &ini(
            Dialect::Systemd,
            "Service",
            &[("ExecStart", "/bin/b"), ("Type", "simple")],
        ),
        "[Service]\nExecStart=/bin/a \\\n  # why\n  -x\n",
        "[Service]\nExecStart=/bin/b\nType=simple\n",
        &[
            "Service.ExecStart: /bin/a -x -> /bin/b",
            "Service.Type: (absent) -> simple",
        ],
    );
    becomes(
        &ini(
            Dialect::Git,
            "remote \"o\"",
            &[("url", "a#b"), ("Prune", "false")],
        ),
        "[core]\n\tbare\n[Remote \"o\"]\n\turl = x ; y\n\tprune\n",
        "[core]\n\tbare\n[Remote \"o\"]\n\turl = \"a#b\" ; y\n\tprune = false\n",
        &["remote \"o\".Prune: true -> false", "remote \"o\".url: x -> a#b"],
    );
    assert_eq!(
        edited(
            &ini(Dialect::Git, "core", &[("bare", "true")]),
            "[core]\n\tbare\n"
        ),
        None
    );
    becomes(
        &ini(Dialect::Git, "x", &[("k", ";\\")]),
        "[x]\nk=;",
        "[x]\nk=\";\\\\\" ;",
        &["x.k:  -> ;\\"],
    );
    becomes(
        &ini(Dialect::Desktop, "Desktop Entry", &[("Name[de]", "b")]),
        "[Desktop Entry]\nName=a\nName[de]=a\n",
        "[Desktop Entry]\nName=a\nName[de]=b\n",
        &["Desktop Entry.Name[de]: a -> b"],
    );
}

#[test]
fn what_cannot_be_written_is_refused() {
    let refused = |ini: &Ini| {
        let mut invalid = Vec::new();
        Resource::validate(ini, &MetaParameters::default(), &mut invalid);
        let messages: Vec<String> = invalid.iter().map(|one| one.message.clone()).collect();
        messages.join("; ")
    };
    for (dialect, section, key, value, why) in [
        (Dialect::Ini, "x", "", "1", "`` cannot be a key in this dialect"),
        (
            Dialect::Ini,
            "x",
            "a=b",
            "1",
            "`a=b` cannot be a key in this dialect",
        ),
        (
            Dialect::Ini,
            "x",
            "#a",
            "1",
            "`#a` cannot be a key in this dialect",
        ),
        (
            Dialect::Ini,
            "x",
            "a",
            "1\n2",
            "the value of `a` must be one line in this dialect",
        ),
        (
            Dialect::Ini,
            "x",
            "a",
            " 1",
            "the value of `a` would be read back differently",
        ),
        (
            Dialect::Systemd,
            "x",
            "a",
            "1\\",
            "the value of `a` would be read back differently",
        ),
        (
            Dialect::Env,
            "",
            "a-b",
            "1",
            "`a-b` cannot be a key in this dialect",
        ),
        (
            Dialect::Env,
            "x",
            "a",
            "1",
            "files of this dialect have no sections",
        ),
        (Dialect::Ini, "x]", "a", "1", "must be one line without `]`"),
    ] {
        assert_eq!(refused(&ini(dialect, section, &[(key, value)])), why);
    }
}

/// Lines in which much can be confused.
fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[ \\t]{0,2}[#;]?[ ]?k(| ?[=:] ?[ab \"\\\\#;]{0,4})",
        "\\[ ?[xy]( \"k\")? ?\\]",
        "[#;]? ?[xk=\\[\\]]{0,4}",
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    let lines = prop::collection::vec((line, end), 0..8);
    (lines, any::<bool>()).prop_map(|(lines, is_ended)| {
        let text: String = lines.into_iter().map(|(line, end)| line + end).collect();
        match is_ended {
            true => text,
            false => text.trim_end_matches(['\r', '\n']).to_owned(),
        }
    })
}

proptest! {
    /// Reading and writing is the identity, and a second edit finds nothing.
    #[test]
    fn once_is_enough(
        text in texts(),
        dialect in prop::sample::select(Dialect::words().map(|(_, word)| word).collect::<Vec<_>>()),
        value in "[ab\"\\\\$'#;]{0,4}",
        operation in 0..3,
    ) {
        let section = if dialect.has_sections() { "x" } else { "" };
        let mut wanted = ini(dialect, section, &[("k", &value)]);
        match operation {
            0 => {}
            1 => wanted.lists = [("k".to_owned(), vec![value.clone(), value])].into(),
            _ => wanted.unset = vec!["k".to_owned()],
        }
        if operation > 0 {
            wanted.settings.clear();
        }
        let mut invalid = Vec::new();
        Resource::validate(&wanted, &MetaParameters::default(), &mut invalid);
        let rules = Rules { dialect, ignore_case: false, separator: None };
        let Ok(document) = Document::read(text.as_bytes(), &rules) else { return Ok(()) };
        prop_assert_eq!(document.text(), text.as_bytes());
        if let (true, Ok(Some(new))) = (invalid.is_empty(), wanted.change(text.as_bytes())) {
            let again = wanted.change(&new.text);
            prop_assert_eq!(again, Ok(None), "{:?} became {:?}", text, String::from_utf8_lossy(&new.text));
        }
    }
}

/// An edit is refused only for texts that hardly any file has.
#[test]
fn few_edits_are_refused() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut refused = 0;
    for _ in 0..500 {
        let text = texts().new_tree(&mut runner).unwrap().current();
        let wanted = ini(Dialect::Ini, "x", &[("k", "a b")]);
        refused += usize::from(wanted.change(text.as_bytes()).is_err());
    }
    assert!(refused < 50, "{refused} of 500");
}
