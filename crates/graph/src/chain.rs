//! How a statement comes to be there: through which includes, calls, elements of loops and conditions.
//!
//! A chain is a list of steps that begins with the innermost and is shared by everything that is put in place by it, so that a resource
//! in the graph knows where it comes from at the price of one reference.

use std::fmt;
use std::sync::Arc;

use setpoint_diagnostics::Span;
use setpoint_value::Value;

/// A step on the way to a statement or an expression, with the steps around it.
#[derive(Debug)]
pub struct Link {
    /// Why the body is there that the statement belongs to.
    pub cause: Cause,
    /// The include, the call, what a loop goes over, or the condition.
    pub span: Span,
    /// The step around this one; none for what the program itself says.
    pub outer: Option<Arc<Link>>,
}

/// What puts a body in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The body of this name (`the class …`) is included.
    Include(Arc<str>),
    /// The body of this name (`the function …`) is called.
    Call(Arc<str>),
    /// A loop comes to the element with this index.
    Index(usize),
    /// A loop comes to the entry with this key.
    Key(Value),
    /// A condition holds, or does not.
    Condition(bool),
    /// The host with this name exports the resource, and the statement collects it.
    Collect(Arc<str>),
}

/// The step in words: `in the class "web", included here`. They stand beside its place.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Longer keys are cut.
        const SHOWN: usize = 60;
        match self {
            Cause::Include(name) => write!(f, "in {name}, included here"),
            Cause::Call(name) => write!(f, "in {name}, called here"),
            Cause::Index(index) => write!(f, "for the index {index}"),
            Cause::Key(key) => {
                let text = key.to_string();
                match text.char_indices().nth(SHOWN) {
                    Some((at, _)) => write!(f, "for the key `{}…`", &text[..at]),
                    None => write!(f, "for the key `{text}`"),
                }
            }
            Cause::Collect(host) => write!(f, "of the host `{host}`, collected here"),
            Cause::Condition(true) => f.write_str("where this condition holds"),
            Cause::Condition(false) => f.write_str("where this condition does not hold"),
        }
    }
}

impl Link {
    /// This step and those around it.
    pub fn outwards(&self) -> impl Iterator<Item = &Link> {
        std::iter::successors(Some(self), |link| link.outer.as_deref())
    }
}

impl PartialEq for Link {
    /// The chains of one instance are one object; those of a rebuilt one need comparing, without recursion.
    fn eq(&self, other: &Link) -> bool {
        let (mut a, mut b) = (self, other);
        loop {
            if std::ptr::eq(a, b) {
                return true;
            }
            if a.span != b.span || a.cause != b.cause {
                return false;
            }
            match (&a.outer, &b.outer) {
                (Some(x), Some(y)) => (a, b) = (x, y),
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

impl Eq for Link {}

impl Drop for Link {
    /// A chain can be as long as calls are deep, so it is taken apart in a loop.
    fn drop(&mut self) {
        let mut next = self.outer.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.outer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u32) -> Span {
        Span::new(setpoint_diagnostics::FileId(0), start, start + 1)
    }

    fn chain(steps: &[(u32, Cause)]) -> Option<Arc<Link>> {
        steps.iter().fold(None, |outer, (start, cause)| {
            let (cause, span) = (cause.clone(), at(*start));
            Some(Arc::new(Link { cause, span, outer }))
        })
    }

    #[test]
    fn a_long_chain_of_calls_is_compared_and_dropped_without_recursion() {
        let build = || chain(&vec![(0, Cause::Call("f".into())); 200_000]);
        let (a, b) = (build(), build());
        assert!(a == b);
    }

    #[test]
    fn chains_are_equal_step_by_step() {
        let (class, function) = (Cause::Include("a".into()), Cause::Call("b".into()));
        let key = |text: &str| Cause::Key(Value::str(text));
        let steps = [
            (0, class.clone()),
            (5, function.clone()),
            (9, key("k")),
            (12, Cause::Index(3)),
            (15, Cause::Condition(true)),
        ];
        assert!(chain(&steps) == chain(&steps));
        let with = |at: usize, step: (u32, Cause)| {
            let mut other = steps.to_vec();
            other[at] = step;
            other
        };
        for other in [
            steps[1..].to_vec(),
            with(0, (1, class)),
            with(0, (0, Cause::Call("a".into()))),
            with(1, (5, Cause::Call("c".into()))),
            with(2, (9, key("l"))),
            with(3, (12, Cause::Index(4))),
            with(4, (15, Cause::Condition(false))),
        ] {
            let other = chain(&other);
            assert!(chain(&steps) != other && other != chain(&steps), "{other:?}");
        }
    }

    #[test]
    fn steps_are_told_in_words_and_secrets_and_long_keys_are_not() {
        let said = |cause: Cause| cause.to_string();
        assert_eq!(
            said(Cause::Include("the class `c`".into())),
            "in the class `c`, included here"
        );
        assert_eq!(
            said(Cause::Call("the function `f`".into())),
            "in the function `f`, called here"
        );
        assert_eq!(said(Cause::Index(7)), "for the index 7");
        assert_eq!(said(Cause::Key(Value::str("a"))), "for the key `\"a\"`");
        assert_eq!(
            said(Cause::Key(Value::str("a").sensitive())),
            "for the key `(sensitive)`"
        );
        let long = said(Cause::Key(Value::str("x".repeat(100))));
        assert_eq!(long, format!("for the key `\"{}…`", "x".repeat(59)));
        assert_eq!(said(Cause::Condition(true)), "where this condition holds");
        assert_eq!(
            said(Cause::Condition(false)),
            "where this condition does not hold"
        );
    }
}
