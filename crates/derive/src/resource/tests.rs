//! What the derives refuse, and where they point. That what they emit compiles and works is tested by the kinds.

use quote::quote;

/// The messages of the compile errors in what was emitted.
fn errors(tokens: proc_macro2::TokenStream) -> Vec<String> {
    let text = tokens.to_string();
    text.split("compile_error ! {")
        .skip(1)
        .map(|rest| rest.split('"').nth(1).unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn mistakes_in_a_kind_are_named() {
    for (item, expected) in [
        (
            quote!(
                #[doc = "x"]
                struct X {}
            ),
            "a kind has a name: `#[resource(kind = \\",
        ),
        (
            quote!(
                #[resource(kind = "x")]
                struct X {}
            ),
            "has no doc comment: users read it in the reference and in completion",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x", flying)]
                struct X {}
            ),
            "`flying` is not an option of `#[resource]`",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x")]
                struct X {
                    #[doc = "p"]
                    #[param(colour = 1)]
                    p: u8,
                }
            ),
            "`colour` is not an option of `#[param]`",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x")]
                struct X {
                    #[doc = "p"]
                    #[param(default_from = "kind")]
                    p: u8,
                }
            ),
            "a default comes from the \\",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x")]
                struct X {
                    #[name]
                    #[state]
                    p: String,
                }
            ),
            "a field is one of `#[param]`, `#[name]` and `#[state]`",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x", constants(q(a = 1)))]
                struct X {
                    #[doc = "p"]
                    p: u8,
                }
            ),
            "there is no parameter `q`",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x", constants(p(OnStart = 1)))]
                struct X {
                    #[doc = "p"]
                    p: u8,
                }
            ),
            "a program cannot write capitals in the name of a constant",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x", constants(p(a = 1.5)))]
                struct X {
                    #[doc = "p"]
                    p: u8,
                }
            ),
            "expected a text or a number",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x")]
                struct X {
                    #[doc = "p"]
                    p: u8,
                    #[doc = "p"]
                    #[param(name = "p")]
                    q: u8,
                }
            ),
            "two parameters are called `p`",
        ),
        (
            quote!(
                #[doc = "x"]
                #[resource(kind = "x")]
                struct X {
                    #[doc = "p"]
                    p: u8,
                    #[param(flatten(q = "p"))]
                    group: Group,
                }
            ),
            "two parameters are called `p`",
        ),
        (
            quote!(
                #[resource(kind = "x")]
                enum X {
                    A,
                }
            ),
            "only a struct can be derived here",
        ),
        (
            quote!(
                #[resource(kind = "x")]
                struct X<T> {
                    x: T,
                }
            ),
            "generic parameters have no place here",
        ),
        (
            quote!(
                #[resource(kind = "x")]
                struct X(u8);
            ),
            "write a struct with named fields: `struct X {}`",
        ),
    ] {
        assert_eq!(errors(super::expand(item.clone())), [expected], "{item}");
    }
}

#[test]
fn each_field_without_documentation_is_named() {
    let item = quote!(
        #[doc = "x"]
        #[resource(kind = "x")]
        struct X {
            a: u8,
            #[doc = "b"]
            b: u8,
            c: u8,
        }
    );
    assert_eq!(errors(super::expand(item)).len(), 2);
    assert_eq!(
        errors(super::expand_sends(quote!(
            struct S {
                a: u8,
            }
        )))
        .len(),
        1
    );
}
