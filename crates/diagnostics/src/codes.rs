//! Stages and codes: the stable names of what can be wrong. Which there are is each language's own.

/// A step of the way from a text to what it describes. Each language declares its own, as constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stage(&'static str);

impl Stage {
    /// The stage of this name, which is one word in lower case.
    #[must_use]
    pub const fn new(name: &'static str) -> Stage {
        Stage(name)
    }

    /// The name in machine-readable output: `parse`, `type`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// One kind of diagnostic. Declared once, as a `static` in the `codes` table of the front end that raises it.
#[derive(Debug)]
pub struct CodeInfo {
    /// `E0101`. Never changes its meaning.
    pub code: &'static str,
    /// The rule of the language specification, `S1`; empty where there is none.
    pub rule: &'static str,
    /// The stage that raises it.
    pub stage: Stage,
    /// One line without a full stop, for lists.
    pub summary: &'static str,
}

impl PartialEq for CodeInfo {
    fn eq(&self, other: &CodeInfo) -> bool {
        self.code == other.code
    }
}

impl Eq for CodeInfo {}

/// Declares the codes of a front end, and the table `CODES` of them in the order in which they stand.
///
/// Each is a name, the code, the rule of the language (`""` where there is none), the stage that raises it, which is a constant that the
/// table can see, and the summary, which is its documentation too: `CYCLE = "E0106" "S6" SCOPE "a definition that depends on itself";`
#[macro_export]
macro_rules! codes {
    ($visibility:vis $($name:ident = $code:literal $rule:literal $stage:ident $summary:literal;)*) => {
        $(
            #[doc = concat!("`", $code, "`: ", $summary, ".")]
            $visibility static $name: $crate::CodeInfo = $crate::CodeInfo {
                code: $code,
                rule: $rule,
                stage: $stage,
                summary: $summary,
            };
        )*

        /// Every code of this table, in the order of their numbers.
        $visibility static CODES: &[&$crate::CodeInfo] = &[$(&$name),*];
    };
}
