//! The pages of `docs/errors`, compiled in.

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code, in any case of letters.
#[must_use]
pub fn page(code: &str) -> Option<&'static str> {
    let code = code.to_ascii_uppercase();
    PAGES
        .binary_search_by_key(&&*code, |(code, _)| code)
        .ok()
        .map(|at| PAGES[at].1)
}
