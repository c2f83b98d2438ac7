//! Arguments that several commands share.

use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use setpoint_agent::prefix::Prefix;
use setpoint_mcl::CompileOptions;
use setpoint_programs::capabilities::system_hostname;
use setpoint_programs::environment;
use setpoint_programs::failure::Failure;
use setpoint_programs::module_policy::{Fetch, ModulePolicy};
use setpoint_programs::program_input::{ProgramInput, ProgramLanguage};

use crate::headings;
use crate::later::CompileLater;
use crate::output::Output;

/// The languages in which programs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageArgument {
    /// Programs, `.mcl`
    Mcl,
    /// Models, `.cf`
    Cf,
    /// Graphs, `.yaml`
    Yaml,
}

/// The program, and the options of its compilation.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProgramArguments {
    /// Program (`.mcl`), model (`.cf`), graph (`.yaml`), or its directory
    ///
    /// A program is a `.mcl` file, a directory with `metadata.yaml` or `main.mcl`, a `metadata.yaml`, `-` for standard input, or code. A
    /// model is a `.cf` file, or a directory with `project.yml`. A graph is a `.yaml` file.
    #[arg(value_name = "INPUT", num_args = 1..=3, required = true)]
    words: Vec<String>,

    /// Directory of remote modules
    ///
    /// Ends in `/`. Also the variable SETPOINT_MODULE_PATH [default: `modules/` in the state directory]
    #[arg(long, value_name = "DIR", help_heading = headings::PROGRAM)]
    module_path: Option<String>,

    /// Host name that the program uses [default: name of the machine]
    #[arg(long, value_name = "NAME", help_heading = headings::PROGRAM)]
    hostname: Option<String>,

    /// Language of the program
    ///
    /// [default: from the name of the input; a directory with a `project.yml` is a model, `cf`]
    #[arg(long, value_enum, value_name = "LANGUAGE", help_heading = headings::PROGRAM, hide_short_help = true)]
    lang: Option<LanguageArgument>,

    /// Do not run the Python functions of a model
    ///
    /// Also the variable SETPOINT_NO_PYTHON
    #[arg(long, help_heading = headings::PROGRAM, hide_short_help = true)]
    no_python: bool,

    /// Value for an input of a model; can be repeated
    ///
    /// For example `domain=example.org` or `ports=[80, 443]`
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_assignment, help_heading = headings::PROGRAM)]
    input: Vec<(String, String)>,

    #[command(flatten)]
    later: CompileLater,
}

impl ProgramArguments {
    /// Parses the arguments into the program that the user names.
    pub(crate) fn parse(&self, output: &Output) -> Result<ProgramInput, Failure> {
        let hostname = hostname_argument(self.hostname.as_deref())?;
        self.later.check(output);
        let (argument, said) = self.argument()?;
        let language = match self.lang {
            Some(LanguageArgument::Mcl) => Some(ProgramLanguage::Mcl),
            Some(LanguageArgument::Cf) => Some(ProgramLanguage::Cf),
            Some(LanguageArgument::Yaml) => Some(ProgramLanguage::Yaml),
            None => said,
        };
        Ok(ProgramInput {
            argument: argument.to_owned(),
            language,
            hostname,
            has_hostname: self.hostname.is_some(),
            module_path: self.module_path.clone(),
            no_python: self.no_python,
            inputs: self.input.clone(),
        })
    }

    /// The program, and the language that a word before it says.
    fn argument(&self) -> Result<(&str, Option<ProgramLanguage>), Failure> {
        match self.words.as_slice() {
            [word] if word == "lang" => Err(Failure::usage("`lang` needs a program behind it")),
            [word] if word == "yaml" => Err(Failure::usage("`yaml` needs a file behind it")),
            [input] => Ok((input, None)),
            [frontend, input] if frontend == "lang" => Ok((input, Some(ProgramLanguage::Mcl))),
            [frontend, input] if frontend == "yaml" => Ok((input, Some(ProgramLanguage::Yaml))),
            [_, surplus] | [_, _, surplus] => Err(Failure::usage(format!("unexpected argument `{surplus}`"))),
            _ => Err(Failure::usage("a program is needed")),
        }
    }

    /// The words as they were given.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

/// The options of compiling a program. Its remote modules are in the directory that the user names, or else below `prefix` or the default state directory.
pub(crate) fn compile_options(
    input: &ProgramInput,
    modules: &mut ModulePolicy,
    prefix: Option<PathBuf>,
    skip_types: bool,
) -> Result<CompileOptions, Failure> {
    let named = input
        .module_path
        .clone()
        .or_else(|| environment::variable("MODULE_PATH"));
    let modules_directory = match named {
        Some(directory) => Some(absolute_directory(&directory)?),
        // Without a home there is no default, which only matters for programs with remote modules.
        None => Prefix::place(prefix).ok().map(|prefix| {
            let directory = format!("{}/modules/", prefix.display());
            modules.prefix = Some(prefix);
            directory
        }),
    };
    Ok(CompileOptions {
        modules_directory,
        skip_types,
    })
}

/// The directory of remote modules for a command that fetches none: as given, from the environment, or below the usual state directory.
pub(crate) fn modules_directory(given: Option<&str>) -> Result<Option<String>, Failure> {
    match given
        .map(str::to_owned)
        .or_else(|| environment::variable("MODULE_PATH"))
    {
        Some(directory) => absolute_directory(&directory).map(Some),
        None => Ok(Prefix::place(None)
            .ok()
            .map(|prefix| format!("{}/modules/", prefix.display()))),
    }
}

/// A modules directory that the user names, as an absolute path that ends in `/`.
fn absolute_directory(directory: &str) -> Result<String, Failure> {
    if !directory.ends_with('/') {
        return Err(Failure::usage(format!(
            "the module path `{directory}` must end in `/`"
        )));
    }
    let absolute = std::path::absolute(directory).map_err(|error| {
        Failure::io(
            format_args!("find the working directory for `{directory}`"),
            &error,
        )
    })?;
    let mut text = absolute.to_string_lossy().into_owned();
    if !text.ends_with('/') {
        text.push('/');
    }
    Ok(text)
}

/// A name of this host that was given, if it can be one; else the machine's.
pub(crate) fn hostname_argument(given: Option<&str>) -> Result<String, Failure> {
    let Some(name) = given else {
        return Ok(system_hostname());
    };
    let is_valid = (1..=253).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && name.bytes().any(|b| b.is_ascii_alphanumeric())
        && !name.starts_with(['.', '-']);
    if is_valid {
        return Ok(name.to_owned());
    }
    let rule =
        "1 to 253 letters, digits, dots, dashes and underscores, and neither a dot nor a dash in front";
    Err(Failure::usage(format!(
        "`{name}` is not a host name: it takes {rule}"
    )))
}

/// The policy for remote modules.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModuleArguments {
    /// Download missing modules with git
    ///
    /// These are the modules that are imported by address.
    #[arg(long, help_heading = headings::PROGRAM)]
    download: bool,

    /// With --download: update existing modules
    #[arg(long, help_heading = headings::PROGRAM, hide_short_help = true)]
    update: bool,

    /// Exit after resolving imports
    ///
    /// With --download, exit after the modules are downloaded.
    #[arg(long, help_heading = headings::PROGRAM, hide_short_help = true)]
    pub(crate) only_download: bool,

    /// Use only the module versions in the lock file
    ///
    /// The lock file is in the directory of the program.
    #[arg(long, help_heading = headings::PROGRAM)]
    locked: bool,

    #[command(flatten)]
    patience: DownloadPatience,
}

/// The time limit for fetching modules.
#[derive(Debug, Clone, Args)]
pub(crate) struct DownloadPatience {
    /// Timeout for one download, in seconds
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = parse_seconds, default_value = "300", help_heading = headings::PROGRAM, hide_short_help = true)]
    pub(crate) download_timeout: Duration,
}

impl ModuleArguments {
    /// The request of these arguments.
    pub(crate) fn policy(&self, output: &Output) -> ModulePolicy {
        if self.update && !self.download {
            output.warning("`--update` has no effect without `--download`");
        }
        ModulePolicy {
            fetch: self.download.then_some(Fetch {
                update: self.update,
                patience: self.patience.download_timeout,
            }),
            locked: self.locked,
            prefix: None,
        }
    }
}

/// Reads a name and what it stands for.
pub(crate) fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    match name.is_empty() {
        true => Err("the name is empty".to_owned()),
        false => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Reads a number of seconds, with or without a fraction.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "it must be a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "it must be a number of seconds, and not negative".to_owned())
}

/// Reads a whole number of whatever size the flag can take.
pub(crate) fn parse_whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow => "it is too large",
            IntErrorKind::NegOverflow => "it is too small",
            IntErrorKind::Zero => "it must be 1 or more",
            _ => "it must be a whole number",
        };
        why.to_owned()
    })
}
