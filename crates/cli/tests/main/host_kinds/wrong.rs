//! What each kind refuses: a resource with one parameter that is wrong, in between `«` and `»`.

/// One for each kind at least: the kind, its resource, and what is said of the parameter.
pub(super) const WRONG: &[(&str, &str, &str)] = &[
    ("file", "file \"/w\" {\n\t«mode => \"0999\",»\n}", "mode"),
    (
        "exec",
        "exec \"w\" {\n\tcmd => \"/bin/true\",\n\t«sig => \"SIGNONE\",»\n}",
        "SIGNONE",
    ),
    (
        "svc",
        "svc \"w\" {\n\t«state => \"runing\",»\n}",
        "`runing` is not a state of a service",
    ),
    ("pkg", "pkg \"w\" {\n\t«state => \"1 2\",»\n}", "1 2"),
    (
        "pkg:repository",
        "pkg:repository \"w\" {\n\tstate => \"exists\",\n\t«uris => [\"somewhere\",],»\n}",
        "`somewhere` is not an address",
    ),
    (
        "cron",
        "cron \"w\" {\n\t«trigger => \"OnSundays\",»\n\ttime => \"1h\",\n}",
        "OnSundays",
    ),
    (
        "mount",
        "mount \"/w\" {\n\t«state => \"mounted\",»\n\tdevice => \"d\",\n\ttype => \"tmpfs\",\n}",
        "mounted",
    ),
    ("nspawn", "nspawn \"w\" {\n\t«state => \"paused\",»\n}", "paused"),
    ("hostname", "hostname \"w\" {\n\t«hostname => \"a b\",»\n}", "a b"),
    (
        "net",
        "net \"w\" {\n\tstate => \"up\",\n\t«addrs => [\"192.0.2.300/24\",],»\n}",
        "192.0.2.300/24",
    ),
    ("firewalld", "firewalld \"w\" {\n\t«ports => [\"80\",],»\n}", "80"),
    (
        "user",
        "user \"w\" {\n\tstate => \"exists\",\n\t«shell => \"bash\",»\n}",
        "must be an absolute path",
    ),
    ("group", "group \"w\" {\n\t«state => \"there\",»\n}", "there"),
    (
        "sysctl",
        "sysctl \"vm.w\" {\n\tvalue => \"1\",\n\t«path => \"relative\",»\n}",
        "relative",
    ),
    (
        "line",
        "line \"w\" {\n\tfile => \"/w/line\",\n\t«state => \"there\",»\n\tcontent => \"a\",\n}",
        "there",
    ),
    (
        "block",
        "block \"w\" {\n\tfile => \"/w/block\",\n\t«state => \"there\",»\n\tcontent => \"a\",\n}",
        "there",
    ),
    (
        "substitute",
        "substitute \"w\" {\n\tfile => \"/w/substitute\",\n\t«pattern => \"a(\",»\n\twith => \"b\",\n}",
        "unclosed group at column 2",
    ),
    (
        "ini",
        "ini \"/w/ini\" {\n\tsection => \"a\",\n\t«settings => {\"a=b\" => \"c\",},»\n}",
        "cannot be a key",
    ),
    (
        "ssh:authorized_key",
        "ssh:authorized_key \"w\" {\n\tstate => \"exists\",\n\tfile => \"/w/keys\",\n\ttype => \"ssh-ed25519\",\n\t«key => \"A B\",»\n}",
        "key",
    ),
    (
        "download",
        "download \"/w/download\" {\n\t«url => [\"ftp://example.org/a\",],»\n}",
        "`ftp:` is not supported",
    ),
    (
        "archive",
        "archive \"/w/archive/\" {\n\tsource => \"/w/a.tar\",\n\t«keep => [\"a[\",],»\n}",
        "unclosed character class",
    ),
    (
        "git",
        "git \"/w/git/\" {\n\turl => \"/w/origin\",\n\t«commit => \"abc\",»\n}",
        "must be a whole hash",
    ),
    (
        "hosts",
        "hosts \"192.0.2.7\" {\n\t«names => [\"a b\",],»\n}",
        "`a b` is not the name of a host",
    ),
    (
        "sudoers",
        "sudoers \"w\" {\n\tusers => [\"u\",],\n\t«commands => [\"reboot\",],»\n}",
        "`reboot` does not begin with an absolute path",
    ),
    (
        "timezone",
        "timezone \"w\" {\n\t«zone => \"../etc\",»\n}",
        "`../etc` is not the name of a time zone",
    ),
    (
        "json:edit",
        "json:edit \"/w/document\" {\n\t«edits => [\".a =\",],»\n}",
        ".a =",
    ),
    (
        "augeas",
        "augeas \"w\" {\n\tfile => \"/w/augeas\",\n\t«lens => \"Sshd\",»\n\tsets => [struct{path => \"a\", value => \"b\",},],\n}",
        "Sshd",
    ),
    ("gzip", "gzip \"/w/gzip\" {\n\t«level => 12,»\n}", "from -2 to 9"),
    ("tar", "tar \"/w/tar\" {\n\t«format => 3,»\n}", "2 for ustar"),
    (
        "deploy:tar",
        "deploy:tar \"/w/program\" {\n\t«format => 3,»\n}",
        "2 for ustar",
    ),
    (
        "gsettings",
        "gsettings \"org.example w\" {\n\t«type => \"text\",»\n\tvalue => \"x\",\n}",
        "text",
    ),
    (
        "fwattr",
        "fwattr \"w\" {\n\t«key => \"a/b\",»\n\tvalue => \"x\",\n}",
        "must have no slash",
    ),
    (
        "fwupd:device",
        "fwupd:device \"w\" {\n\t«version => \"\",»\n}",
        "must be set",
    ),
    (
        "fwupd:remote",
        "fwupd:remote \"w\" {\n\tenabled => true,\n\t«refresh_age => \"soon\",»\n}",
        "soon",
    ),
    (
        "fwupd:system",
        "fwupd:system \"w\" {\n\t«state => \"new\",»\n}",
        "new",
    ),
    (
        "password",
        "password \"w\" {\n\t«length => 0,»\n}",
        "must be at least 1",
    ),
    ("kv", "kv \"w\" {\n\t«skipcmpstyle => 7,»\n}", "must be 0"),
    (
        "schedule",
        "schedule \"w\" {\n\t«strategy => \"random\",»\n}",
        "random",
    ),
    (
        "msg",
        "msg \"w\" {\n\tbody => \"x\",\n\t«priority => \"Loud\",»\n}",
        "Loud",
    ),
    ("timer", "timer \"w\" {\n\t«interval => -1,»\n}", "interval"),
    ("exit", "exit \"w\" {\n\t«code => 300,»\n}", "300"),
    (
        "remote",
        "remote \"w\" {\n\t«remote => \"https://w\",»\n}",
        "`https://` is not SSH",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«remote => \"ssh://w:0\",»\n}",
        "`0` is no port",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«remote => \"ssh://root:hush@w\",»\n}",
        "there is a password in the URL, which is not allowed",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«hostname => \"a b\",»\n}",
        "`a b` is not a host name",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«state => \"paused\",»\n}",
        "`paused` is not a state of a remote program",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«ssh_id => \"key\",»\n}",
        "`key` is not the path of a private key",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«ssh_id => \"\",»\n}",
        "there is nothing to log in with",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«hostkey => \"SHA256:abc\",»\n}",
        "a fingerprint is not the key",
    ),
    (
        "remote",
        "remote \"w\" {\n\tinteractive => true,\n\t«interactive_timeout => -1,»\n}",
        "-1 is no number of seconds",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«transient => false,»\n}",
        "a tunnel lasts as long as we wait",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«tunnel_addr => \"2379\",»\n}",
        "`2379` is not an address like",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«tunnel_addr => \"localhost:65536\",»\n}",
        "`65536` is no port",
    ),
    (
        "remote",
        "remote \"w\" {\n\t«converger_timeout => -1,»\n}",
        "-1 is no number of seconds",
    ),
    (
        "remote",
        "remote \"w\" {\n\ttransient => false,\n\ttunnelled => false,\n\t«converger_timeout => 5,»\n}",
        "a program that ends when nothing is left to do is `transient`",
    ),
];
