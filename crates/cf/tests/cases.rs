//! Cases in files, and laws that all of them obey. Each module has one kind of case.

mod analysis;
mod execute;
mod resolve;
mod syntax;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let all = [
        ("analysis", analysis::trials()),
        ("execute", execute::trials()),
        ("resolve", resolve::trials()),
        ("syntax", syntax::trials()),
    ];
    let trials = all
        .into_iter()
        .flat_map(|(kind, trials)| trials.into_iter().map(move |trial| trial.with_kind(kind)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
