//! Words of other languages, and what is written here instead of them.
//!
//! None of them is reserved: each may be the name of a kind, a class or a field. They are looked at only where something is wrong.

/// What is written instead of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instead {
    /// One sentence.
    pub(crate) help: &'static str,
    /// What replaces the word, where that is all there is to do.
    pub(crate) replacement: Option<&'static str>,
}

const fn say(help: &'static str) -> Option<Instead> {
    Some(Instead {
        help,
        replacement: None,
    })
}

const fn replace(help: &'static str, replacement: &'static str) -> Option<Instead> {
    Some(Instead {
        help,
        replacement: Some(replacement),
    })
}

/// Of a word with which a statement begins.
pub(crate) fn statement(word: &str) -> Option<Instead> {
    match word {
        "foreach" | "each" | "loop" | "with_items" => say(
            "a loop over a list is `for $index, $value in $list { … }`, one over a map `forkv $key, $value in $map { … }`",
        ),
        "while" | "until" | "repeat" => say(
            "a program describes a state and repeats nothing; a loop over a list is `for $index, $value in $list { … }`",
        ),
        "elsif" | "elif" | "elseif" => replace("a further condition is `else if`", "else if"),
        "unless" => say("the opposite of a condition is written with `not`: `if not ($a == $b) { … }`"),
        "switch" | "case" | "match" | "when" => {
            say("one of several blocks is chosen with `if … { … } else if … { … } else { … }`")
        }
        "def" | "function" | "fn" | "fun" | "sub" | "proc" => say(
            "a function is `func name($parameter) { value }`; what makes resources is a class: `class name($parameter) { … }`",
        ),
        "define" | "role" | "profile" => say(
            "what makes resources is a class: `class name($parameter) { … }`, used with `include name(…)`",
        ),
        "let" | "var" | "const" | "set" | "val" | "local" | "export" | "declare" | "my" | "readonly"
        | "locals" => say("a variable is defined with its name alone: `$name = …`"),
        "return" | "yield" => say("a function has one expression, which is its value; there is no `return`"),
        "from" | "require" | "use" | "using" | "source" | "load" => say(
            "a module is imported by its name in quotes, and its functions are called through that: `import \"fmt\"`, `fmt.printf(…)`",
        ),
        "resource" | "data" => say("a resource begins with its kind: `file \"/etc/motd\" { … }`"),
        "module" => say("a module is `import \"name\"`, its classes are used with `include name.class`"),
        "node" | "hosts" | "host" => say(
            "what is for one machine only stands in an `if` over the machine's name, `$hostname`, or its facts",
        ),
        "try" | "catch" | "rescue" => {
            say("where a value may fail, `<|>` gives another one: `$map[\"key\"] <|> \"none\"`")
        }
        "raise" | "throw" | "fail" | "die" => say("a program ends itself with `panic($condition, \"why\")`"),
        "echo" | "puts" | "printf" | "notice" | "println" => {
            say("a message is a resource: `print \"name\" { msg => \"…\", }`")
        }
        "fi" | "done" | "then" | "do" | "end" | "begin" | "esac" | "endif" => {
            say("a block stands in braces: `if $condition { … }`")
        }
        _ => None,
    }
}

/// Of a bare word in place of a value.
pub(super) fn value(word: &str) -> Option<Instead> {
    match word {
        "null" | "nil" | "none" | "undef" | "undefined" | "void" | "None" | "Nil" | "NULL" => say(
            "there is no empty value: a parameter is left out, or set only sometimes with `name => $condition ?: value,`",
        ),
        "yes" | "on" | "True" | "TRUE" => replace("a `bool` is `true` or `false`", "true"),
        "no" | "off" | "False" | "FALSE" => replace("a `bool` is `true` or `false`", "false"),
        "lambda" | "fn" | "function" => say("a function as a value is `func($x) { $x + 1 }`"),
        "return" => replace("a function has one expression, which is its value", ""),
        "present" => say("a text has quotes; what is there has the state `\"exists\"`"),
        "absent" => replace("a text has quotes", "\"absent\""),
        _ => None,
    }
}

/// Of the name of a type.
pub(super) fn type_name(word: &str) -> Option<Instead> {
    match word {
        "string" | "text" => replace("the type of texts is `str`", "str"),
        "integer" | "long" | "int64" => replace("the type of whole numbers is `int`", "int"),
        "boolean" => replace("the type of `true` and `false` is `bool`", "bool"),
        "double" | "float64" | "real" => replace("the type of numbers with a point is `float`", "float"),
        "number" => say("whole numbers are `int`, those with a point `float`"),
        "list" | "array" | "tuple" | "set" => say("a list is written with the type of its elements: `[]str`"),
        "dict" | "hash" | "object" => {
            say("a map is written with the types of keys and values: `map{str: int}`")
        }
        "any" | "auto" => say("without a type the value decides it"),
        _ => None,
    }
}

/// The kinds, one of which may be meant by a kind that there is not.
pub(crate) fn kind(word: &str) -> &'static [&'static str] {
    match word {
        "command" | "shell" | "script" | "execute" | "bash" | "run" => &["exec"],
        "directory" | "folder" | "symlink" | "link" | "copy" | "template" | "lineinfile" | "remote_file" => {
            &["file"]
        }
        "debug" | "notify" | "log" | "message" => &["print"],
        "service" | "systemd" | "systemd_service" => &["svc"],
        "package" | "apt" | "yum" | "dnf" | "apt_package" => &["pkg"],
        "schedule" => &["cron", "timer"],
        _ => &[],
    }
}

/// The parameter or edge that may be meant by a parameter that there is not.
pub(crate) fn parameter(word: &str) -> Option<&'static str> {
    match word {
        "ensure" => Some("state"),
        "command" => Some("cmd"),
        "dest" | "destination" | "name" | "target_path" => Some("path"),
        "src" => Some("source"),
        "contents" | "text" | "body" => Some("content"),
        "perms" | "permissions" | "chmod" => Some("mode"),
        "chown" => Some("owner"),
        "message" => Some("msg"),
        "unless" => Some("nifcmd"),
        "onlyif" => Some("ifcmd"),
        "refreshonly" => Some("refresh_only"),
        _ => None,
    }
}

/// The edge property that is meant by a word.
pub(crate) fn edge(word: &str) -> Option<&'static str> {
    match word {
        "before" => Some("Before"),
        "notify" => Some("Notify"),
        "depend" | "depends" | "require" | "requires" | "depends_on" | "after" | "Require" | "Requires"
        | "After" => Some("Depend"),
        "listen" | "subscribe" | "Subscribe" => Some("Listen"),
        _ => None,
    }
}

/// A word as names are written: lower case, with underscores between its parts.
pub(super) fn snake_case(word: &str) -> String {
    let mut name = String::with_capacity(word.len() + 4);
    let mut before = '_';
    for char in word.chars() {
        let is_new = char.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if (is_new || char == '-') && !name.is_empty() {
            name.push('_');
        }
        if char != '-' {
            name.push(char.to_ascii_lowercase());
        }
        before = char;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_habits_become_ours() {
        for (word, name) in [
            ("myPort", "my_port"),
            ("PORT", "port"),
            ("my-port", "my_port"),
            ("a2B", "a2_b"),
        ] {
            assert_eq!(snake_case(word), name);
        }
    }
}
