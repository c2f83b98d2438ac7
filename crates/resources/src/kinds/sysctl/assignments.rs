//! Assignments in files of sysctl.d(5). An edit changes one assignment and keeps every other byte.

use super::{even, parts};
use crate::text_lines::{end_last_line, end_of_lines, lines};

/// The values that a text assigns to a parameter, in order.
pub(super) fn assigned(text: &[u8], name: &str) -> Vec<String> {
    let found = lines(text).into_iter().filter_map(|line| assignment(line, name));
    found.map(|(_, value)| value).collect()
}

/// The value of the last assignment, which holds.
pub(super) fn value_in(text: &[u8], name: &str) -> Option<String> {
    assigned(text, name).pop()
}

/// The text with this value assigned to the parameter; none if it holds already.
pub(super) fn edited(text: &[u8], name: &str, value: &str) -> Option<Vec<u8>> {
    let lines = lines(text);
    let last = lines
        .iter()
        .enumerate()
        .filter_map(|(number, line)| Some((number, assignment(line, name)?)))
        .next_back();
    let end = end_of_lines(text);
    let Some((number, (ignores_errors, is))) = last else {
        let mut edited = text.to_vec();
        end_last_line(&mut edited, end);
        edited.extend_from_slice(format!("{name} = {value}").as_bytes());
        edited.extend_from_slice(end);
        return Some(edited);
    };
    if is == even(value) {
        return None;
    }
    let sign = if ignores_errors { "-" } else { "" };
    let mut edited = lines[..number].concat();
    edited.extend_from_slice(format!("{sign}{name} = {value}").as_bytes());
    edited.extend_from_slice(if lines[number].ends_with(b"\n") { end } else { b"" });
    edited.extend(lines[number + 1..].concat());
    Some(edited)
}

/// The value that a line assigns to the parameter, and whether the line ignores errors.
fn assignment(line: &[u8], name: &str) -> Option<(bool, String)> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (ignores_errors, line) = match line.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (found, value) = line.split_once('=')?;
    let is_it = parts(found.trim()).ok()? == parts(name).ok()?;
    is_it.then(|| (ignores_errors, even(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, value: &str) -> Option<String> {
        edited(text.as_bytes(), "net.ipv4.ip_forward", value).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn one_assignment_is_edited_and_everything_else_stays() {
        for (text, wanted) in [
            ("", "net.ipv4.ip_forward = 1\n"),
            (
                "# mine\nvm.swappiness = 10",
                "# mine\nvm.swappiness = 10\nnet.ipv4.ip_forward = 1\n",
            ),
            ("a.b=2\r\n", "a.b=2\r\nnet.ipv4.ip_forward = 1\r\n"),
            (
                "  -net/ipv4/ip_forward=0\nx.y = 1\n",
                "-net.ipv4.ip_forward = 1\nx.y = 1\n",
            ),
            (
                "net.ipv4.ip_forward = 1\nnet.ipv4.ip_forward = 0",
                "net.ipv4.ip_forward = 1\nnet.ipv4.ip_forward = 1",
            ),
            (
                "#net.ipv4.ip_forward = 1\n",
                "#net.ipv4.ip_forward = 1\nnet.ipv4.ip_forward = 1\n",
            ),
            (
                "net.ipv4.ip_forward\n",
                "net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n",
            ),
        ] {
            assert_eq!(edit(text, "1").as_deref(), Some(wanted), "{text}");
            assert_eq!(edit(wanted, "1"), None, "{wanted}");
        }
        assert_eq!(edit("net.ipv4.ip_forward=4096\t 8192\n", "4096 8192"), None);
    }
}
