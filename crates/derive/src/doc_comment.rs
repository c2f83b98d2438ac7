//! The text of doc comments, as users read it in the reference, in completion and in a terminal.

use syn::{Attribute, Expr, Lit, Meta};

/// The doc comment of an item, without the space after the slashes. Empty when there is none.
pub(crate) fn doc_comment(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    let mut is_program = false;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(text) = &literal.lit
        {
            let text = text.value();
            let line = text.strip_prefix(' ').unwrap_or(&text);
            if line.starts_with("```") {
                is_program = line == "```mcl";
            }
            lines.push(if is_program {
                with_tabs(line)
            } else {
                line.to_owned()
            });
        }
    }
    lines.join("\n").trim().to_owned()
}

/// A line of a program, indented with tabs, as `setpoint fmt` writes it. Rust's comments have four spaces for each.
fn with_tabs(line: &str) -> String {
    let text = line.trim_start_matches(' ');
    let spaces = line.len() - text.len();
    format!("{}{}{text}", "\t".repeat(spaces / 4), " ".repeat(spaces % 4))
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn programs_are_indented_with_tabs() {
        let item: syn::ItemStruct = parse_quote! {
            /// A text.
            ///
            /// ```mcl
            /// a {
            ///     b {
            ///         c => 1,
            /// ```
            ///
            ///     four
            struct A;
        };
        let wanted = "A text.\n\n```mcl\na {\n\tb {\n\t\tc => 1,\n```\n\n    four";
        assert_eq!(doc_comment(&item.attrs), wanted);
    }
}
