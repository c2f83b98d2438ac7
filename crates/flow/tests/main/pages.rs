//! Every code has its page.

use std::path::Path;

use setpoint_flow::codes::CODES;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the pages of the repository"
)]
fn every_code_has_a_page_with_its_summary_and_an_example() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    for code in CODES {
        let page = std::fs::read_to_string(pages.join(format!("{}.md", code.code)));
        let page = page.unwrap_or_else(|error| panic!("{}: {error}", code.code));
        let title = format!("# {}: {}\n", code.code, code.summary);
        assert!(page.starts_with(&title), "{}", code.code);
        assert!(page.contains("\n```mcl\n"), "{} has an example", code.code);
    }
}
