//! The macros `#[derive(Resource)]` and `#[function]`: they turn a definition into a static description.

use proc_macro::TokenStream;

/// Turns a function into a `FunctionSpec`.
#[proc_macro_attribute]
pub fn function(_attributes: TokenStream, item: TokenStream) -> TokenStream {
    item
}
