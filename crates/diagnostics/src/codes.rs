//! Stages and codes: the stable names of what can be wrong.

/// The step of the pipeline that rejects a text.
///
/// The order is the order in which the stages run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Characters into tokens.
    Lex,
    /// Tokens into a tree.
    Parse,
    /// Structural rules of single statements.
    Init,
    /// Strings are expanded, colon classes nested.
    Interpolate,
    /// Imports are followed and names resolved.
    Scope,
    /// Types are inferred.
    Type,
    /// The dataflow program is built.
    Lower,
    /// Values flow.
    Eval,
    /// Values become a resource graph.
    Interpret,
    /// The layout of the text.
    Format,
}

impl Stage {
    /// The name in machine-readable output: `lex`, `parse`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Lex => "lex",
            Stage::Parse => "parse",
            Stage::Init => "init",
            Stage::Interpolate => "interpolate",
            Stage::Scope => "scope",
            Stage::Type => "type",
            Stage::Lower => "lower",
            Stage::Eval => "eval",
            Stage::Interpret => "interpret",
            Stage::Format => "format",
        }
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
/// Each is a name, the code, the rule of the language (`""` where there is none), the stage that raises it, and the summary, which is
/// its documentation too: `CYCLE = "E0106" "S6" Scope "a definition that depends on itself";`
#[macro_export]
macro_rules! codes {
    ($visibility:vis $($name:ident = $code:literal $rule:literal $stage:ident $summary:literal;)*) => {
        $(
            #[doc = concat!("`", $code, "`: ", $summary, ".")]
            $visibility static $name: $crate::CodeInfo = $crate::CodeInfo {
                code: $code,
                rule: $rule,
                stage: $crate::Stage::$stage,
                summary: $summary,
            };
        )*

        /// Every code of this table, in the order of their numbers.
        $visibility static CODES: &[&$crate::CodeInfo] = &[$(&$name),*];
    };
}
