//! Texts and the trees or diagnostics that they give: `tests/cases/syntax/**/NAME.cf` with `NAME.expect` beside it, which `UPDATE=1`
//! rewrites. Laws hold for every case: spans point at what they say, and each beginning of a text parses without trouble.

#![expect(clippy::disallowed_methods, reason = "cases are files")]

mod cases;
mod laws;
mod printed;

use std::fmt::Write;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use setpoint_cf::syntax;
use setpoint_diagnostics::{Diagnostics, FileId, SourceMap};
use setpoint_testing::cases::diagnostics_text;

pub(crate) fn trials() -> Vec<Trial> {
    let found = match cases::find("syntax") {
        Ok(found) => Arc::new(found),
        Err(error) => {
            let trial = Trial::test("cases_are_well_formed", move || Err(Failed::from(error)));
            return vec![trial];
        }
    };
    let mut trials: Vec<Trial> = Vec::new();
    for case in found.iter().cloned() {
        let name = case.name.clone();
        trials.push(Trial::test(name, move || {
            cases::compare(&case, &given(&case.text)).map_err(Failed::from)
        }));
    }
    let layouts = match cases::find("format") {
        Ok(layouts) => layouts,
        Err(error) => {
            let trial = Trial::test("layouts_are_well_formed", move || Err(Failed::from(error)));
            return vec![trial];
        }
    };
    for case in layouts {
        trials.push(Trial::test(format!("format/{}", case.name), move || {
            let formatted =
                setpoint_cf::format::format(FileId(0), &case.text).map_err(|found| format!("{found:?}"))?;
            cases::compare(&case, &formatted).map_err(Failed::from)
        }));
    }
    for (name, law) in laws::OF_CASES {
        let found = found.clone();
        trials.push(Trial::test(*name, move || {
            for case in found.iter() {
                law(&case.text).map_err(|error| Failed::from(format!("{}: {error}", case.name)))?;
            }
            Ok(())
        }));
    }
    for (name, law) in laws::OF_ANYTHING {
        trials.push(Trial::test(*name, move || law().map_err(Failed::from)));
    }
    trials
}

/// What a text gives: what is wrong with it, then its tree, if there is no error.
fn given(text: &str) -> String {
    let mut sources = SourceMap::new();
    let id = sources.add("main.cf", text);
    let mut diagnostics = Diagnostics::new();
    let file = syntax::parse(id, text, &mut diagnostics);
    let mut out = String::new();
    for diagnostic in &diagnostics {
        let mut one = Diagnostics::new();
        one.push(diagnostic.clone());
        let _ = writeln!(
            out,
            "{} {}",
            diagnostic.class,
            diagnostics_text(&one, &sources).trim_end()
        );
        out.push('\n');
    }
    if !diagnostics.has_errors() {
        out.push_str(&printed::file(&file));
    }
    out
}
