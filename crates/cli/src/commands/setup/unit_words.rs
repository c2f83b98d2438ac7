//! Words of the command lines in units, systemd.service(5), section *Command lines*.

use std::fmt::Write;

/// A word that reaches the program as it is, whatever is in it: specifiers, variables, quotes and white space mean nothing.
pub(super) fn argument(text: &str) -> String {
    word(text, true)
}

/// The path of the program. In it systemd replaces no variables, so that a dollar is one.
pub(super) fn program(path: &str) -> String {
    word(path, false)
}

fn word(text: &str, has_variables: bool) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    for sign in text.chars() {
        match sign {
            '%' => written.push_str("%%"),
            '$' if has_variables => written.push_str("$$"),
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            sign if sign.is_ascii_control() => {
                let _ = write!(written, "\\x{:02x}", u32::from(sign));
            }
            sign => written.push(sign),
        }
    }
    let is_plain = |sign: char| sign.is_alphanumeric() || "/.,:_+=@%$-".contains(sign);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => written,
        false => format!("\"{written}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_systemd_is_taken_from_it() {
        let plain = "--etcd-endpoints=https://etcd-1.example.org:2379,https://[::1]:2379";
        assert_eq!(
            argument("--etcd-endpoints=http://a:1"),
            "--etcd-endpoints=http://a:1"
        );
        assert_eq!(argument(plain), format!("\"{plain}\""));
        assert_eq!(argument("--x=50%"), "--x=50%%");
        assert_eq!(argument("--x=$HOME"), "--x=$$HOME");
        assert_eq!(argument("a b"), "\"a b\"");
        assert_eq!(argument("say \"it's\""), "\"say \\\"it's\\\"\"");
        assert_eq!(argument("C:\\n\n\u{1b}"), "\"C:\\\\n\\n\\x1b\"");
        assert_eq!(argument(";"), "\";\"");
        assert_eq!(argument(""), "\"\"");
        assert_eq!(program("/opt/$x/100%/set point"), "\"/opt/$x/100%%/set point\"");
    }
}
