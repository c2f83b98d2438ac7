//! Parameters that are made sensitive: what was given is then nowhere in what is said, whatever happens.

use super::Secret;

const fn secret(
    row: &'static str,
    written: &'static str,
    hidden: &'static str,
    text: &'static str,
) -> Secret {
    Secret {
        row,
        written,
        hidden,
        text,
        told: text,
    }
}

/// One of which a run tells something else.
const fn told_as(told: &'static str, secret: Secret) -> Secret {
    Secret { told, ..secret }
}

/// One for each kind at least.
pub(super) const SECRETS: &[Secret] = &[
    secret(
        "a service that shall run and start by itself",
        "\"enabled\"",
        "sensitive(\"enabled\")",
        "\"enabled\"",
    ),
    secret(
        "a package that shall not be installed",
        "\"uninstalled\"",
        "sensitive(\"uninstalled\")",
        "uninstalled",
    ),
    told_as(
        "85 bytes",
        secret(
            "a source of packages",
            "\"file:/srv/ours\"",
            "sensitive(\"file:/srv/ours\")",
            "/srv/ours",
        ),
    ),
    secret(
        "a timer and what it runs",
        "\"*-*-* 03:00\"",
        "sensitive(\"*-*-* 03:00\")",
        "*-*-* 03:00",
    ),
    secret("a file system", "\"1m\"", "sensitive(\"1m\")", "1m"),
    secret(
        "a machine of systemd-nspawn",
        "\"running\"",
        "sensitive(\"running\")",
        "\"running\"",
    ),
    secret(
        "a network interface",
        "\"192.0.2.1\"",
        "sensitive(\"192.0.2.1\")",
        "192.0.2.1",
    ),
    secret(
        "services and ports of the firewall",
        "\"8080/tcp\"",
        "sensitive(\"8080/tcp\")",
        "8080",
    ),
    secret(
        "an account",
        "\"/bin/bash\"",
        "sensitive(\"/bin/bash\")",
        "/bin/bash",
    ),
    secret("a group with members", "4711", "sensitive(4711)", "4711"),
    secret(
        "several numbers of a parameter of the kernel, until the next start",
        "\"20000 30000\"",
        "sensitive(\"20000 30000\")",
        "20000 30000",
    ),
    secret(
        "a key with which somebody may log in",
        "\"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\"",
        "sensitive(\"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\")",
        "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
    ),
    secret(
        "a value of a structured file",
        "\"prohibit-password\"",
        "sensitive(\"prohibit-password\")",
        "prohibit-password",
    ),
    told_as(
        "62 bytes",
        secret(
            "a block of lines",
            "\"10.0.0.7 db\\n\"",
            "sensitive(\"10.0.0.7 db\\n\")",
            "10.0.0.7",
        ),
    ),
    secret(
        "a line of a file of somebody's home",
        "\"alias ll='ls -l'\"",
        "sensitive(\"alias ll='ls -l'\")",
        "alias ll='ls -l'",
    ),
    secret(
        "a line that replaces others",
        "\"Port 22\"",
        "sensitive(\"Port 22\")",
        "Port 22",
    ),
    secret(
        "text that is replaced",
        "\"\\${1}127.0.0.1\"",
        "sensitive(\"\\${1}127.0.0.1\")",
        "127.0.0.1",
    ),
    secret("settings of a section", "\"256M\"", "sensitive(\"256M\")", "256M"),
    secret(
        "the names of an address",
        "[\"db.example.org\", \"db\",]",
        "sensitive([\"db.example.org\", \"db\",])",
        "db.example.org",
    ),
    told_as(
        "87 bytes",
        secret(
            "rights to run commands",
            "[\"/bin/systemctl reload nginx\",]",
            "sensitive([\"/bin/systemctl reload nginx\",])",
            "reload nginx",
        ),
    ),
    secret(
        "the time zone",
        "{}",
        "{ zone => sensitive(\"Europe/Berlin\"), }",
        "zoneinfo/Europe/Berlin",
    ),
    secret(
        "an entry of a JSON document",
        "\".log.level = \\\"warn\\\"\"",
        "sensitive(\".log.level = \\\"warn\\\"\")",
        "warn",
    ),
    told_as(
        "s dark'",
        secret(
            "a setting of somebody's desktop",
            "\"It's dark\"",
            "sensitive(\"It's dark\")",
            "It's dark",
        ),
    ),
    secret(
        "the name that the kernel has",
        "\"web2\"",
        "sensitive(\"web2\")",
        "web2",
    ),
    secret(
        "the name for people",
        "\"The ‹web› server\"",
        "sensitive(\"The ‹web› server\")",
        "The ‹web› server",
    ),
    secret(
        "a source of firmware",
        "true",
        "sensitive(true)",
        "\"want\":\"enabled\"",
    ),
    secret(
        "the firmware of a device",
        "\"1.2.4\"",
        "sensitive(\"1.2.4\")",
        "1.2.4",
    ),
    secret(
        "the firmware of all devices",
        "\"newest\"",
        "sensitive(\"newest\")",
        "newest",
    ),
    secret(
        "a file that keeps copies of what it was",
        "\"kept right\"",
        "sensitive(\"kept right\")",
        "kept right",
    ),
    secret(
        "a command that makes a file",
        "\"/usr/bin/touch /small/made\"",
        "sensitive(\"/usr/bin/touch /small/made\")",
        "/usr/bin/touch",
    ),
    told_as(
        "11 bytes",
        secret(
            "a compressed text",
            "\"packed text\"",
            "sensitive(\"packed text\")",
            "packed text",
        ),
    ),
    secret(
        "a file from a server",
        "[\"file:///srv/fetched\",]",
        "sensitive([\"file:///srv/fetched\",])",
        "file:///srv/fetched",
    ),
    told_as(
        "sha256 ",
        secret(
            "a directory from an archive",
            "\"/srv/packed.tar\"",
            "sensitive(\"/srv/packed.tar\")",
            "/srv/packed.tar",
        ),
    ),
    secret(
        "a checkout",
        "\"/srv/origin\"",
        "sensitive(\"/srv/origin\")",
        "/srv/origin",
    ),
    told_as(
        "an archive of 1 member",
        secret(
            "an archive",
            "\"/small/inputs/\"",
            "sensitive(\"/small/inputs/\")",
            "/small/inputs",
        ),
    ),
    told_as(
        "an archive of 2 members",
        secret(
            "an archive of the program",
            "\"/small/program.tar\"",
            "sensitive(\"/small/program.tar\")",
            "/small/program.tar",
        ),
    ),
    secret(
        "a password that is kept",
        "20",
        "sensitive(20)",
        "FILE PLACE/prefix/engine/state/*/var/password",
    ),
    secret(
        "a string that hosts share",
        "\"festina lente\"",
        "sensitive(\"festina lente\")",
        "festina lente",
    ),
    secret(
        "a host that stands for something",
        "\"alpha\"",
        "sensitive(\"alpha\")",
        "alpha",
    ),
    secret(
        "a message to the journal",
        "\"hello from here\"",
        "sensitive(\"hello from here\")",
        "hello from here",
    ),
    secret(
        "a setting of the firmware",
        "\"Rack-12\"",
        "sensitive(\"Rack-12\")",
        "Rack-12",
    ),
];
