//! Tests of the expansion of `#[function]`.

use super::*;

fn expanded(attributes: TokenStream, item: TokenStream) -> String {
    expand(attributes, item).to_string()
}

#[test]
fn the_signature_follows_from_the_rust_types() {
    let text = expanded(
        quote!(example(call = "m.f(1)", result = "2")),
        quote! {
            /// Says something.
            fn f(
                /// First.
                a: i64,
                /// Second.
                r#type: &str,
                /// Third.
                c: Vec<&[u8]>,
                /// Fourth.
                d: Option<f64>,
            ) -> Result<Vec<u8>, CallError> { todo() }
        },
    );
    assert!(
        text.contains("\"func(a int, type str, c []str, d float?) str\""),
        "{text}"
    );
    assert!(
        text.contains("static F :") && text.contains("MODULE . name") && text.contains("\"Says something.\""),
        "{text}"
    );
    assert!(text.contains("allow_null : true"), "{text}");
}

#[test]
fn parameters_carry_documentation_and_defaults() {
    let text = expanded(
        quote!(
            signature = "func(stop int) int",
            signature = "func(start int, stop int) int"
        ),
        quote! {
            /// Counts.
            fn count(
                /// The first
                /// number.
                #[default(0)]
                start: i64,
                /// The last number.
                #[name = "stop"]
                end: i64,
            ) -> i64 { end - start }
        },
    );
    for part in [
        "name : \"start\" , doc : \"The first number.\" , default : \"0\"",
        "name : \"stop\" , doc : \"The last number.\" , default : \"\"",
        "1usize => :: setpoint_value :: native :: answer (count (0 ,",
        "fn count (start : i64 , end : i64 ,)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = expanded(
        quote!(
            shape,
            signature = "func(a int, b []int, …) int",
            parameters(
                /// A number.
                #[default = "the current one"]
                a,
                /// Lists.
                b
            )
        ),
        quote!(
            static F: Shape = Shape;
        ),
    );
    assert!(text.contains("default : \"the current one\""), "{text}");
}

#[test]
fn an_alias_is_the_same_function_of_another_module() {
    let text = expanded(
        quote!(
            alias = "golang/strings",
            example(call = "strings.f()", result = "1")
        ),
        quote!(
            /// One.
            pub(crate) fn f() -> i64 {
                1
            }
        ),
    );
    for part in [
        "static F :",
        "pure (MODULE . name , \"f\"",
        "static GOLANG_STRINGS_F :",
        "pure (\"golang/strings\" , \"f\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("strings.f()").count(), 2, "{text}");
    assert_eq!(text.matches("fn f").count(), 1, "{text}");
}

#[test]
fn mistakes_are_errors_that_keep_the_function() {
    for (attributes, item, problem) in [
        (
            quote!(modul = "m"),
            quote!(
                fn f() -> bool {
                    true
                }
            ),
            "is not an option",
        ),
        (
            quote!(),
            quote!(
                fn f(
                    /// Any value.
                    a: &Value,
                ) -> bool {
                    true
                }
            ),
            "says too little",
        ),
        (
            quote!(),
            quote!(
                fn f() {}
            ),
            "says too little",
        ),
        (
            quote!(example(result = "1")),
            quote!(
                fn f() -> bool {
                    true
                }
            ),
            "has a `call`",
        ),
        (
            quote!(),
            quote!(
                fn f(a: i64) -> bool {
                    true
                }
            ),
            "document the parameter `a`",
        ),
        (
            quote!(raw, signature = "func(a int, b func(a int) str) str"),
            quote!(
                fn f(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
                    todo()
                }
            ),
            "document the parameter `a`",
        ),
        (
            quote!(
                raw,
                signature = "func(a int, …) str",
                parameters(
                    /// A number.
                    a,
                    /// Numbers.
                    more
                )
            ),
            quote!(
                fn f(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
                    todo()
                }
            ),
            "document the parameter `args`",
        ),
        (
            quote!(
                raw,
                signature = "func(a int) str",
                parameters(
                    /// A number.
                    a,
                    /// Another number.
                    b
                )
            ),
            quote!(
                fn f(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
                    todo()
                }
            ),
            "no signature has a parameter `b`",
        ),
        (
            quote!(signature = "func() int", signature = "func(a int) int"),
            quote!(
                fn f(
                    /// A number.
                    a: i64,
                ) -> i64 {
                    a
                }
            ),
            "a signature leaves it out",
        ),
    ] {
        let text = expanded(attributes, item);
        assert!(text.contains("compile_error") && text.contains(problem), "{text}");
        assert!(text.contains("fn f"), "{text}");
    }
}
