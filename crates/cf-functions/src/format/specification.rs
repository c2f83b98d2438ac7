//! The format specification: `[[fill]align][sign]["z"]["#"]["0"][width][grouping]["." precision][type]`.

/// Where a text stands in a wider field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    /// `<`.
    Left,
    /// `>`.
    Right,
    /// `^`.
    Center,
    /// `=`: the filling stands between the sign and the digits.
    AfterSign,
}

impl Align {
    fn of(c: char) -> Option<Align> {
        Some(match c {
            '<' => Align::Left,
            '>' => Align::Right,
            '^' => Align::Center,
            '=' => Align::AfterSign,
            _ => return None,
        })
    }
}

/// A format specification, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Specification {
    /// What the field is filled with.
    pub(super) fill: Option<char>,
    /// Where the text stands.
    pub(super) align: Option<Align>,
    /// `+`, `-` or a space.
    pub(super) sign: Option<char>,
    /// `z`: no negative zero.
    pub(super) no_negative_zero: bool,
    /// `#`.
    pub(super) alternate: bool,
    /// `0` before the width.
    pub(super) zero: bool,
    /// The least number of characters.
    pub(super) width: usize,
    /// `,` or `_`.
    pub(super) grouping: Option<char>,
    /// What stands behind the point.
    pub(super) precision: Option<usize>,
    /// The letter at the end.
    pub(super) kind: Option<char>,
}

impl Specification {
    /// Reads a specification for a value of the type that `ty` names.
    pub(super) fn parse(text: &str, ty: &str) -> Result<Specification, String> {
        let mut wanted = Specification::default();
        let mut rest = text;
        let mut first = rest.chars();
        let (fill, align) = (first.next(), first.next().and_then(Align::of));
        if let (Some(fill), Some(align)) = (fill, align) {
            (wanted.fill, wanted.align) = (Some(fill), Some(align));
            rest = first.as_str();
        } else if let Some(align) = fill.and_then(Align::of) {
            wanted.align = Some(align);
            rest = &rest[1..];
        }
        if let Some(sign) = rest.chars().next().filter(|c| "+- ".contains(*c)) {
            wanted.sign = Some(sign);
            rest = &rest[1..];
        }
        wanted.no_negative_zero = take(&mut rest, 'z');
        wanted.alternate = take(&mut rest, '#');
        wanted.zero = take(&mut rest, '0');
        if let Some(width) = number(&mut rest)? {
            wanted.width = width;
        }
        if take(&mut rest, ',') {
            wanted.grouping = Some(',');
        }
        if take(&mut rest, '_') {
            if wanted.grouping.is_some() {
                return Err("Cannot specify both ',' and '_'.".to_owned());
            }
            wanted.grouping = Some('_');
        }
        if rest.starts_with(',') {
            return Err(match wanted.grouping {
                Some('_') => "Cannot specify both ',' and '_'.".to_owned(),
                _ => "Cannot specify ',' with ','.".to_owned(),
            });
        }
        if take(&mut rest, '.') {
            let precision = number(&mut rest)?.ok_or("Format specifier missing precision")?;
            wanted.precision = Some(precision);
        }
        let mut kind = rest.chars();
        wanted.kind = kind.next();
        if !kind.as_str().is_empty() {
            return Err(format!(
                "Invalid format specifier '{text}' for object of type '{ty}'"
            ));
        }
        if let (Some(grouping), Some(kind)) = (wanted.grouping, wanted.kind) {
            let fits = match kind {
                'd' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%' => true,
                'b' | 'o' | 'x' | 'X' => grouping == '_',
                _ => false,
            };
            if !fits {
                return Err(format!("Cannot specify '{grouping}' with '{kind}'."));
            }
        }
        Ok(wanted)
    }
}

fn take(rest: &mut &str, c: char) -> bool {
    match rest.strip_prefix(c) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

fn number(rest: &mut &str) -> Result<Option<usize>, String> {
    let end = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at(end);
    if digits.is_empty() {
        return Ok(None);
    }
    *rest = behind;
    match digits.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err("Too many decimal digits in format string".to_owned()),
    }
}
