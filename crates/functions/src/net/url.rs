//! URLs and `host:port`, read by the rules of Go's `net/url` and `net`.

/// The parts of a URL.
#[derive(Debug, PartialEq)]
pub(super) struct Url {
    /// In lower case.
    pub scheme: Vec<u8>,
    /// With its port, without user and password.
    pub host: Vec<u8>,
    /// Decoded.
    pub path: Vec<u8>,
    /// As it is written, without its question mark.
    pub query: Vec<u8>,
}

/// Takes a URL apart.
pub(super) fn parse(text: &[u8]) -> Result<Url, String> {
    if text.iter().any(|b| *b < b' ' || *b == 0x7f) {
        return Err("invalid control character in URL".to_owned());
    }
    let (text, fragment) = cut(text, b'#');
    if let Some(fragment) = fragment {
        unescape(fragment, Part::Other)?;
    }
    let (scheme, rest) = split_scheme(text)?;
    if scheme.is_empty() {
        return Err("empty schemes are invalid".to_owned());
    }
    let (rest, query) = cut(rest, b'?');
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        host: Vec::new(),
        path: Vec::new(),
        query: query.unwrap_or_default().to_vec(),
    };
    // Without a slash it is opaque, like `mailto:a@b`, and has neither host nor path.
    if !rest.starts_with(b"/") {
        return Ok(url);
    }
    let path = match rest.strip_prefix(b"//") {
        Some(after) => {
            let slash = after.iter().position(|b| *b == b'/').unwrap_or(after.len());
            url.host = authority(&after[..slash])?;
            &after[slash..]
        }
        None => rest,
    };
    url.path = unescape(path, Part::Other)?;
    Ok(url)
}

/// What stands before the first `mark`, and after it if there is one.
fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|b| *b == mark) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn split_scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index > 0 => return Ok((&text[..index], &text[index + 1..])),
            b':' => return Err("missing protocol scheme".to_owned()),
            _ => break,
        }
    }
    Ok((b"", text))
}

/// The host of `user:password@host:port`, with the port.
fn authority(text: &[u8]) -> Result<Vec<u8>, String> {
    let Some(at) = text.iter().rposition(|b| *b == b'@') else {
        return host(text);
    };
    let valid = |b: &u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(b);
    if !text[..at].iter().all(valid) {
        return Err("invalid userinfo".to_owned());
    }
    unescape(&text[..at], Part::Other)?;
    host(&text[at + 1..])
}

fn host(text: &[u8]) -> Result<Vec<u8>, String> {
    if text.starts_with(b"[") {
        let close = text
            .iter()
            .rposition(|b| *b == b']')
            .ok_or_else(|| "missing ']' in host".to_owned())?;
        check_port(&text[close + 1..])?;
        // What follows `%25` inside the brackets is a zone, in which anything may be escaped.
        if let Some(zone) = text[..close].windows(3).position(|w| w == b"%25") {
            let mut out = unescape(&text[..zone], Part::Host)?;
            out.extend(unescape(&text[zone..close], Part::Zone)?);
            out.extend(unescape(&text[close..], Part::Host)?);
            return Ok(out);
        }
    } else if let Some(colon) = text.iter().rposition(|b| *b == b':') {
        check_port(&text[colon..])?;
    }
    unescape(text, Part::Host)
}

fn check_port(text: &[u8]) -> Result<(), String> {
    match text {
        [] => Ok(()),
        [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err(format!("invalid port {} after host", setpoint_value::quote(text))),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Host,
    Zone,
    Other,
}

fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            let allowed =
                |b: u8| b >= 0x80 || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b);
            if part != Part::Other && !allowed(*byte) {
                return Err(format!(
                    "invalid character {} in host name",
                    setpoint_value::quote(&[*byte])
                ));
            }
            out.push(*byte);
            continue;
        }
        let escape = match rest {
            [high, low, ..] => hexadecimal(*high).zip(hexadecimal(*low)),
            _ => None,
        };
        let Some((high, low)) = escape else {
            let shown = &text[text.len() - rest.len() - 1..];
            let shown = setpoint_value::quote(&shown[..shown.len().min(3)]);
            return Err(format!("invalid URL escape {shown}"));
        };
        let decoded = high << 4 | low;
        // In host names only bytes beyond ASCII may be escaped, and the percent sign of a zone.
        let refused = match part {
            Part::Host => high < 8 && decoded != b'%',
            Part::Zone => decoded != b'%' && decoded != b' ' && high < 8 && !decoded.is_ascii_graphic(),
            Part::Other => false,
        };
        if refused {
            return Err(format!("invalid URL escape \"%{high:X}{low:X}\""));
        }
        out.push(decoded);
        rest = &rest[2..];
    }
    Ok(out)
}

fn hexadecimal(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Host and port of `host:port`, `[host]:port` or `:port`.
pub(super) fn split_host_port(text: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    const MISSING: &str = "missing port in address";
    const COLONS: &str = "too many colons in address";
    let colon = text.iter().rposition(|b| *b == b':').ok_or(MISSING)?;
    let (host, mut open_from, mut close_from) = if text[0] == b'[' {
        let end = text
            .iter()
            .position(|b| *b == b']')
            .ok_or("missing ']' in address")?;
        if end + 1 == text.len() {
            return Err(MISSING);
        }
        if end + 1 != colon {
            return Err(if text[end + 1] == b':' { COLONS } else { MISSING });
        }
        (&text[1..end], 1, end + 1)
    } else {
        let host = &text[..colon];
        if host.contains(&b':') {
            return Err(COLONS);
        }
        (host, 0, 0)
    };
    open_from = open_from.min(text.len());
    close_from = close_from.min(text.len());
    if text[open_from..].contains(&b'[') {
        return Err("unexpected '[' in address");
    }
    if text[close_from..].contains(&b']') {
        return Err("unexpected ']' in address");
    }
    Ok((host, &text[colon + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<[String; 4]> {
        let url = parse(text.as_bytes()).ok()?;
        Some([url.scheme, url.host, url.path, url.query].map(|p| String::from_utf8_lossy(&p).into_owned()))
    }

    #[test]
    fn urls_come_apart_as_in_go() {
        for (text, scheme, host, path, query) in [
            (
                "https://a.example:8080/x/y?z=1&q#f",
                "https",
                "a.example:8080",
                "/x/y",
                "z=1&q",
            ),
            ("HTTP://user:pa%20ss@host/a%20b", "http", "host", "/a b", ""),
            ("mailto:a@b", "mailto", "", "", ""),
            ("file:///etc/hosts", "file", "", "/etc/hosts", ""),
            ("http://[::1]:80/", "http", "[::1]:80", "/", ""),
            ("http://[fe80::1%25eth0]/", "http", "[fe80::1%eth0]", "/", ""),
            ("http://host?", "http", "host", "", ""),
            ("http://host/?", "http", "host", "/", ""),
        ] {
            assert_eq!(
                parts(text),
                Some([scheme, host, path, query].map(str::to_owned)),
                "{text}"
            );
        }
        for text in [
            "",
            "/path",
            "host/path",
            ":x",
            "http://a b/",
            "http://[::1/",
            "http://h:p/",
            "http://h/%zz",
            "http://h%41/",
            "http://h/\n",
            "1http://h",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn hosts_and_ports_come_apart_as_in_go() {
        for (text, host, port) in [
            ("a:80", "a", "80"),
            (":80", "", "80"),
            ("[::1]:80", "::1", "80"),
            ("[::1%eth0]:http", "::1%eth0", "http"),
            ("a:", "a", ""),
        ] {
            assert_eq!(
                split_host_port(text.as_bytes()),
                Ok((host.as_bytes(), port.as_bytes())),
                "{text}"
            );
        }
        for text in [
            "", "a", "::1:80", "[::1]", "[::1", "[a]b:80", "a]:80", "[[a]:80", "[a]:80]", "[a]:8:0",
        ] {
            assert!(split_host_port(text.as_bytes()).is_err(), "{text}");
        }
    }
}
