//! The options of the store as they were given, to be written down for a command that is started later.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command, FromArgMatches};

use crate::store_arguments::{StoreArguments, below_home};

/// The options of the store, whichever there are, read as every command reads them, and as words.
#[derive(Debug)]
pub(super) struct GivenStore {
    pub(super) store: StoreArguments,
    /// Those that the command line has, as `--name=value`; files by absolute paths, for another command has another working directory.
    pub(super) words: Vec<String>,
}

impl clap::Args for GivenStore {
    fn augment_args(command: Command) -> Command {
        StoreArguments::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        StoreArguments::augment_args_for_update(command)
    }
}

impl FromArgMatches for GivenStore {
    fn from_arg_matches(matches: &ArgMatches) -> Result<GivenStore, clap::Error> {
        Ok(GivenStore {
            store: StoreArguments::from_arg_matches(matches)?,
            words: words(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = GivenStore::from_arg_matches(matches)?;
        Ok(())
    }
}

fn words(matches: &ArgMatches) -> Vec<String> {
    use clap::Args;
    let options = StoreArguments::augment_args(Command::new("store"));
    let mut words = Vec::new();
    for option in options.get_arguments() {
        let id = option.get_id().as_str();
        let Some(name) = option.get_long() else { continue };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if matches!(option.get_action(), ArgAction::SetTrue | ArgAction::SetFalse) {
            words.push(format!("--{name}"));
            continue;
        }
        let of_files = option.get_value_names().is_some_and(|names| {
            names
                .iter()
                .any(|name| ["FILE", "DIR", "PATH"].contains(&name.as_str()))
        });
        let values = matches.get_raw(id).into_iter().flatten();
        for value in values.map(|value| value.to_string_lossy()) {
            let absolute = of_files
                .then(|| std::path::absolute(below_home(&value)).ok())
                .flatten();
            let value = absolute.map_or_else(|| value.to_string(), |path| path.display().to_string());
            words.push(format!("--{name}={value}"));
        }
    }
    words
}
